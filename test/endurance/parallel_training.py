# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E402 - a script, which finds its packages itself
"""Run as a program: whether parallel programs of several ranks equal one process.

    python parallel_training.py [--ranks 2 4] [CASE...]            in this process
    python parallel_training.py --seeds N [--ranks 2 4] [CASE...]  also under N other schedules

Every case must have the values of one process on the CPU: to the bit where values are only moved
(placements of distributed tensors, checkpoints), else within RTOL and ATOL, because ranks add in
another order. No schedule may change any value by a bit. Without names, all cases. Prints a line
for each difference; status 1 if there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("conformance/src", "reference_backend")]
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE), *sys.path[:2], *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ.setdefault("PUONE_DRIVER", "sim")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
import torch.distributed as dist
from torch import Tensor

import torch_puone as puone
from torch_conformance.authoring.api import noise
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.ranks import Rank, on_ranks
from torch_conformance.checks import process_group as chapter
from torch_conformance.spec import descriptor

RTOL, ATOL = 1e-5, 1e-6
#: Seconds that the ranks of a case may take.
LIMIT_S = 300.0

Tensors = list[Tensor]


# ---- in a rank: what the suite's chapter does not have ----


def train_compiled(rank: Rank) -> Tensors:
    """DistributedDataParallel, compiled without a code generator."""
    with rank.group():
        model = torch.nn.parallel.DistributedDataParallel(
            chapter._network(rank.device), device_ids=[rank.device.index]
        )
        compiled: Any = torch.compile(model, backend="aot_eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        chapter._train(compiled, optimizer, lambda step: chapter._batch(step, rank))
        return chapter._to_cpu(model)


STAGES, MICROBATCHES = 4, 4


def _stages(device: torch.device) -> list[torch.nn.Module]:
    torch.manual_seed(3)
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(STAGES)]
    return [layer.to(device) for layer in layers]


def _loss(out: Tensor, target: Tensor) -> Tensor:
    return (out - target).square().mean()


def train_pipeline(rank: Rank, schedule: str) -> Tensors:
    """Stages that exchange activations and gradients; every rank returns the whole model."""
    from torch.distributed import pipelining

    with rank.group():
        mine = torch.nn.Sequential(*_own(_stages(rank.device), rank))
        stage = pipelining.PipelineStage(mine, rank.index, rank.size, rank.device)
        run = getattr(pipelining, schedule)(stage, n_microbatches=MICROBATCHES, loss_fn=_loss)
        optimizer = torch.optim.SGD(mine.parameters(), lr=0.1)
        for step in range(chapter.STEPS):
            optimizer.zero_grad()
            inputs = [chapter._batch(step).to(rank.device)] if rank.index == 0 else []
            last = rank.index == rank.size - 1
            target = {"target": _target(step).to(rank.device), "losses": []} if last else {}
            run.step(*inputs, **target)
            optimizer.step()
        everyone: list[Any] = [None] * rank.size
        dist.all_gather_object(everyone, chapter._to_cpu(mine))
        return [parameter for parameters in everyone for parameter in parameters]


def _own(stages: list[torch.nn.Module], rank: Rank) -> list[torch.nn.Module]:
    share = len(stages) // rank.size
    return stages[rank.index * share : (rank.index + 1) * share]


def _target(step: int) -> Tensor:
    return noise((chapter.BATCH, 8), seed=100 + step)


def whole_pipeline() -> Tensors:
    model = torch.nn.Sequential(*_stages(torch.device("cpu")))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(chapter.STEPS):
        optimizer.zero_grad()
        _loss(model(chapter._batch(step)), _target(step)).backward()
        optimizer.step()
    return chapter._to_cpu(model)


def load_in_one_process(rank: Rank, folder: str) -> Tensors:
    """A checkpoint that all ranks wrote from shards, as a process without a group reads it."""
    import torch.distributed.checkpoint as checkpoint

    chapter.save_and_load(rank, folder)
    model = chapter._network(torch.device("cpu"))
    for parameter in model.parameters():
        parameter.detach().zero_()
    state = {"model": model.state_dict()}
    checkpoint.load(state, checkpoint_id=folder, no_dist=True)
    return chapter._to_cpu(model)


# ---- the cases: what each rank has, and what it must have ----

Case = Callable[[Device, int], "tuple[list[Tensors], Tensors, bool]"]


def _trained(program: Callable[..., Tensors], **arguments: Any) -> Case:
    def case(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
        found = on_ranks(dev, program, size=ranks, limit=LIMIT_S, **arguments)
        return found, chapter._one_process(), False

    return case


def _pipeline(schedule: str) -> Case:
    def case(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
        found = on_ranks(dev, train_pipeline, size=ranks, limit=LIMIT_S, schedule=schedule)
        return found, whole_pipeline(), False

    return case


def _products(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
    a, b = noise((6, 4)), noise((4, 6), seed=1)
    found = on_ranks(dev, chapter.distribute, size=ranks, limit=LIMIT_S)
    return [[product, total] for product, _, total in found], [a @ b, a.sum()], False


def _placements(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
    found = on_ranks(dev, chapter.distribute, size=ranks, limit=LIMIT_S)
    return [[turned] for _, turned, _ in found], [noise((6, 4))], True


def _checkpoint(program: Callable[..., Tensors]) -> Case:
    def case(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
        wanted = chapter._to_cpu(chapter._network(torch.device("cpu")))
        with tempfile.TemporaryDirectory() as folder:
            found = on_ranks(dev, program, size=ranks, limit=LIMIT_S, folder=folder)
        return found, wanted, True

    return case


def _torchrun(dev: Device, ranks: int) -> tuple[list[Tensors], Tensors, bool]:
    with tempfile.TemporaryDirectory() as folder:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        done = subprocess.run(
            [sys.executable, *launcher, __file__, "--under-torchrun", folder],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"torchrun: status {done.returncode}\n{done.stderr[-3000:]}")
        found = [torch.load(Path(folder, str(rank))) for rank in range(ranks)]
    return found, chapter._one_process(), False


def under_torchrun(folder: str) -> None:
    """What torchrun starts: the rank and the size come from the environment."""
    device = torch.device("puone", int(os.environ["LOCAL_RANK"]) % puone.device_count())
    dist.init_process_group(device_id=device)
    model = torch.nn.parallel.DistributedDataParallel(
        chapter._network(device), device_ids=[device.index]
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def batch(step: int) -> Tensor:
        parts = chapter._batch(step).chunk(dist.get_world_size())
        return parts[dist.get_rank()].to(device)

    chapter._train(model, optimizer, batch)
    torch.save(chapter._to_cpu(model), Path(folder, str(dist.get_rank())))
    dist.destroy_process_group()


CASES: dict[str, Case] = {
    "ddp": _trained(chapter.train_ddp),
    "ddp_compiled": _trained(train_compiled),
    "fsdp2": _trained(chapter.train_fsdp2),
    "tensor_parallel": _trained(chapter.train_tensor_parallel),
    "zero": _trained(chapter.train_zero),
    "dtensor_products": _products,
    "dtensor_placements": _placements,
    "pipeline_gpipe": _pipeline("ScheduleGPipe"),
    "pipeline_1f1b": _pipeline("Schedule1F1B"),
    "checkpoint": _checkpoint(chapter.save_and_load),
    "checkpoint_in_one_process": _checkpoint(load_in_one_process),
    "torchrun": _torchrun,
}


# ---- under one schedule ----


def _device() -> Device:
    """The handle of puone, in a process that uses no device itself."""
    target = descriptor.find("puone")
    present = frozenset(name for name, has in target.capabilities.items() if has)
    return Device(target, capabilities=present)


def _compare(found: list[Tensors], wanted: Tensors, exact: bool) -> str:
    """In what the ranks differ from one process, or ""."""
    rtol, atol = (0.0, 0.0) if exact else (RTOL, ATOL)
    for rank, tensors in enumerate(found):
        if len(tensors) != len(wanted):
            return f"rank {rank} has {len(tensors)} tensors, not {len(wanted)}"
        for index, (got, expected) in enumerate(zip(tensors, wanted, strict=True)):
            try:
                torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
            except AssertionError as error:
                return f"tensor {index} of rank {rank}: {error}"
    return ""


def _digest(found: list[Tensors]) -> str:
    digest = hashlib.sha256()
    for tensors in found:
        for tensor in tensors:
            digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def run_cases(names: list[str], sizes: list[int]) -> dict[str, dict[str, str]]:
    """By case and number of ranks: a digest of all values, or what is wrong."""
    dev = _device()
    digests, problems = {}, {}
    for size in sizes:
        for name in names:
            key = f"{name}, {size} ranks"
            try:
                found, wanted, exact = CASES[name](dev, size)
                digests[key] = _digest(found)
                if problem := _compare(found, wanted, exact):
                    problems[key] = problem
            except Exception as error:
                problems[key] = f"{type(error).__name__}: {error}"
    return {"digests": digests, "problems": problems}


# ---- under several ----


def run_under(seed: int | None, names: list[str], sizes: list[int]) -> dict[str, dict[str, str]]:
    """The cases in a process of their own, with a schedule of its own; None: the plain one."""
    environment = {key: value for key, value in os.environ.items() if key != "PUONE_SIM_SEED"}
    if seed is not None:
        environment["PUONE_SIM_SEED"] = str(seed)
    with tempfile.NamedTemporaryFile() as answer:
        ranks = ["--ranks", *map(str, sizes)]
        command = [sys.executable, __file__, *names, *ranks, "--answer", answer.name]
        done = subprocess.run(command, env=environment, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"seed {seed}: status {done.returncode}")
        return json.loads(Path(answer.name).read_text())


def compare_schedules(count: int, names: list[str], sizes: list[int]) -> int:
    """The number of differences, each of which is printed."""
    plain = run_under(None, names, sizes)
    problems = [f"plain schedule: {key}: {text}" for key, text in plain["problems"].items()]
    for seed in range(1, count + 1):
        begun = time.monotonic()
        found = run_under(seed, names, sizes)
        problems += [f"seed {seed}: {key}: {text}" for key, text in found["problems"].items()]
        problems += [
            f"seed {seed}: {key}: other bits than under the plain schedule"
            for key, digest in found["digests"].items()
            if digest != plain["digests"].get(key, digest)
        ]
        cases = len(found["digests"])
        print(f"seed {seed}: {cases} cases in {time.monotonic() - begun:.0f} s", flush=True)
    for problem in problems:
        print(problem)
    print(f"{len(plain['digests'])} cases, {count} adversarial schedules: {len(problems)} differ")
    return len(problems)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], choices=(2, 4))
    parser.add_argument("--seeds", type=int, metavar="N", help="how many adversarial schedules")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--under-torchrun", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.under_torchrun:
        under_torchrun(options.under_torchrun)
        return 0
    names = options.cases or list(CASES)
    if unknown := set(names) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}")
    if options.seeds is not None:
        return 1 if compare_schedules(options.seeds, names, options.ranks) else 0
    found = run_cases(names, options.ranks)
    if options.answer:
        options.answer.write_text(json.dumps(found))
    else:
        for key, problem in found["problems"].items():
            print(f"{key}: {problem}")
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    # The ranks import their functions from the module by its own name.
    sys.exit(importlib.import_module("parallel_training").main())
