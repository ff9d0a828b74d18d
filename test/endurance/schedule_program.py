# SPDX-License-Identifier: BSD-3-Clause
"""Run as a program: digests of everything a mixed workload computes, one fork for each schedule.

Prints JSON: {"plain": {name: digest}, "0": {...}, ...}, the keys being seeds of the sim driver's
adversarial schedule. The workload is correctly synchronised, apart from `race`, which is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo  # what optimizers import at their first use: here once for all forks
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import torch_puone  # noqa: F401 - registers the device; starts no driver
from torch_conformance.authoring.device import run_forked
from torch_conformance.checks.random.reproducibility import digests

DEVICE = torch.device("puone", 0)
OTHER = torch.device("puone", 1)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def training() -> Iterator[Tensor]:
    """Mixed precision, dropout, checkpointing, asynchronous input, two kinds of optimizer."""
    torch.manual_seed(1)
    stem = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(144, 5))
    stem.to(DEVICE), head.to(DEVICE)
    optimizers = [
        torch.optim.Adam(stem.parameters(), lr=0.01, foreach=True),
        torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9, fused=True),
    ]
    scaler = torch.amp.GradScaler("puone", init_scale=256.0)
    loader = torch.Stream("puone")
    for step in range(3):
        with loader:
            x = noise(8, 1, 8, 8, seed=step).pin_memory().to(DEVICE, non_blocking=True)
            y = (torch.arange(8) % 5).pin_memory().to(DEVICE, non_blocking=True)
        torch.accelerator.current_stream().wait_stream(loader)
        for tensor in (x, y):
            tensor.record_stream(torch.accelerator.current_stream())
        with torch.autocast("puone", dtype=torch.bfloat16):
            hidden: Any = checkpoint(stem, x, use_reentrant=False)
            loss = functional.cross_entropy(head(hidden).float(), y)
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
            optimizer.zero_grad()
        scaler.update()
        yield loss.detach()
    yield from (p.detach() for p in (*stem.parameters(), *head.parameters()))
    yield from stem.buffers()


def operators() -> Iterator[Tensor]:
    """One of each kind of kernel, small and large."""
    for size in (33, 300):
        x = noise(size, size, seed=size).to(DEVICE)
        index = (torch.arange(size, device=DEVICE) * 7) % size
        yield x @ x.t()
        yield from (x.sum(), x.sum(0), x.mean(1), x.var(1), x.norm(), x.logsumexp(1), x.prod(1))
        yield from (x.cumsum(1), x.softmax(1), functional.layer_norm(x, (size,)))
        yield from (*x.sort(1), *x.topk(5, 1), x.argmax(1), x.median(1).values)
        yield torch.zeros_like(x).index_add_(0, index, x)
        yield torch.zeros_like(x).scatter_add_(1, index.expand(size, size), x)
        yield x.index_put((index,), x, accumulate=True)
        yield torch.cat([x[:, ::2], x.t()[:, 1::2]], 1)
        yield functional.conv1d(x[None], x[:8, None].repeat(1, size, 1)[:, :, :3])
        yield torch.where(x > 0, x, x.exp())
        yield from torch._foreach_mul([x, x[0], x[:0]], 3.0)
        yield (x * 10).long().unique()
        yield x.half() + x.bfloat16() * 2


def streams() -> Iterator[Tensor]:
    """Values handed round between three streams, with memory that is freed while in use."""
    lanes = [torch.Stream("puone") for _ in range(3)]
    value = torch.zeros(257, device=DEVICE)
    for turn in range(24):
        lane = lanes[turn % 3]
        lane.wait_stream(torch.accelerator.current_stream() if turn == 0 else lanes[(turn - 1) % 3])
        with lane:
            scratch = torch.full((257,), float(turn), device=DEVICE)
            value.record_stream(lane)
            value = value * 0.5 + scratch
            del scratch
    torch.accelerator.current_stream().wait_stream(lanes[23 % 3])
    value.record_stream(torch.accelerator.current_stream())
    yield value + 1


def devices() -> Iterator[Tensor]:
    """A graph over two devices, and copies both ways."""
    x = noise(64, 64).to(DEVICE).requires_grad_()
    w = noise(64, 64, seed=1).to(OTHER).requires_grad_()
    out = ((x.sin().to(OTHER) @ w).tanh().to(DEVICE) * x).sum()
    out.backward()
    yield from (out.detach(), x.grad, w.grad)  # type: ignore[misc]  # set by backward()


def backward() -> Iterator[Tensor]:
    """Branches of a graph on streams of their own, gradients read without a wait."""
    x = noise(128, 128).to(DEVICE).requires_grad_()
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    sides = [torch.Stream("puone") for _ in range(3)]
    here = torch.accelerator.current_stream()
    for factor, side in enumerate(sides):
        side.wait_stream(here)
        with side:
            part = (x * (factor + 1)).sin().sum()
        part.backward()
    assert x.grad is not None
    yield x.grad * 2
    for side in sides:
        here.wait_stream(side)


def threads() -> Iterator[Tensor]:
    """Four threads, each with a stream and a generator of its own."""
    results: dict[int, Tensor] = {}

    def work(index: int) -> None:
        generator = torch.Generator("puone").manual_seed(index)
        with torch.Stream("puone") as stream:
            x = torch.randn(100, 100, device=DEVICE, generator=generator)
            for _ in range(5):
                x = (x @ x).tanh() + torch.rand(100, 100, device=DEVICE, generator=generator)
        stream.synchronize()
        results[index] = x

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    yield from (results[i] for i in range(4))


def race() -> Iterator[Tensor]:
    """The control: one stream writes what another reads, and nobody waits."""
    writer, reader = torch.Stream("puone"), torch.Stream("puone")
    value = torch.zeros(1, device=DEVICE)
    torch.accelerator.synchronize()
    seen = []
    # Often: on a busy machine the device keeps up with the host most of the time.
    for _ in range(400):
        with writer:
            value.add_(1)
        with reader:
            seen.append(value.clone())
    torch.accelerator.synchronize()
    yield torch.cat(seen)


PARTS: tuple[Callable[[], Iterator[Tensor]], ...] = (
    training,
    operators,
    streams,
    devices,
    backward,
    threads,
    race,
)


def digest(results: Iterator[Tensor]) -> str:
    total = hashlib.sha256()
    for result in results:
        total.update(result.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def everything(seed: int | None) -> dict[str, str]:
    """Digests of all parts under one schedule; the driver starts, and reads its options, here."""
    if seed is not None:
        os.environ["PUONE_SIM_SEED"] = str(seed)
        os.environ["PUONE_SIM_POISON"] = str(seed % 2)
        os.environ["PUONE_SIM_CORES"] = str(1 + seed % 3 // 2)
    found = {part.__name__: digest(part()) for part in PARTS}
    return found | {f"random: {name}": d for name, d in digests(DEVICE).items()}


def main() -> None:
    """Fork once for each schedule: importing torch costs more than all the rest."""
    torch.set_num_threads(1)
    runs: dict[str, Any] = {}
    for seed in (None, *range(int(sys.argv[1]))):
        status, value = run_forked(lambda s=seed: everything(s), timeout=120)  # type: ignore[misc]  # a lambda with a default
        assert status == 0, value
        runs["plain" if seed is None else str(seed)] = value
    json.dump(runs, sys.stdout)


if __name__ == "__main__":
    main()
