# SPDX-License-Identifier: BSD-3-Clause
"""Run as a program: whether replayed graphs of the suite's models equal ordinary calls to the bit.

    python graph_models.py MODEL...           in this process, under its own schedule
    python graph_models.py --seeds N [MODEL...]   in a process for each of N adversarial schedules

Without names, all models. Prints a line for each difference, and for N schedules a sum; status 1 if
there is a difference. PUONE_DRIVER chooses the driver.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator

import torch
import torch._dynamo  # what optimizers import at their first use

import torch_puone as puone
from torch_conformance.models.training import build, place
from torch_conformance.models.zoo import MODELS, Batch, Model

DEVICE = torch.device("puone")
STEPS = 3
State = dict[str, torch.Tensor]


def look_at_no_mask() -> None:
    """Let transformers make each mask, instead of asking the host whether it is needed."""
    for name in ("masking_utils", "modeling_attn_mask_utils"):
        module = importlib.import_module(f"transformers.{name}")
        # The checker knows no attribute of a module that is imported by its name.
        module.is_torchdynamo_compiling = lambda: True  # type: ignore[attr-defined]


def batches(model: Model) -> list[Batch]:
    generator = torch.Generator().manual_seed(11)
    return [model.batch(generator) for _ in range(STEPS)]


def on_device(batch: Batch) -> Batch:
    return tuple(tensor.to(DEVICE) for tensor in batch)


def update(static: Batch, batch: Batch) -> None:
    for target, source in zip(static, batch, strict=True):
        target.copy_(source)


def forward(model: Model, captured: bool) -> State:
    """The outputs in evaluation mode."""
    module = place(build(model, 3), DEVICE).eval()
    static = on_device(batches(model)[0])
    found: State = {}
    with torch.no_grad():
        model.logits(module, static)  # the first call may allocate what later ones reuse
        if captured:
            graph = puone.PUONEGraph()
            with puone.graph(graph):
                out = model.logits(module, static)
        for step, batch in enumerate(batches(model)):
            update(static, batch)
            if captured:
                graph.replay()
            else:
                out = model.logits(module, static)
            found[f"output {step}"] = out.cpu()
    return found


def train(model: Model, captured: bool) -> State:
    """Losses, and the weights after the steps: forward, backward and fused Adam."""
    module = place(build(model, 3), DEVICE).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True, capturable=True)
    static = on_device(batches(model)[0])

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(module, static)
        loss.backward()
        optimizer.step()
        return loss.detach()

    puone.manual_seed(5)
    side = puone.Stream()
    with puone.stream(side):
        step()  # makes the optimizer's state
    side.synchronize()
    if captured:
        graph = puone.PUONEGraph()
        with puone.graph(graph):
            loss = step()
    found: State = {}
    for number, batch in enumerate(batches(model)):
        update(static, batch)
        if captured:
            graph.replay()
        else:
            loss = step()
        found[f"loss {number}"] = loss.cpu()
    return found | {name: value.cpu() for name, value in module.state_dict().items()}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flatten().contiguous().view(torch.uint8)


def differences(name: str) -> Iterator[str]:
    for what in (forward, train):
        expected, actual = what(MODELS[name], False), what(MODELS[name], True)
        for key, value in expected.items():
            if not torch.equal(bits(value), bits(actual[key])):
                yield f"{name}: {what.__name__}: {key}"


def in_processes(seeds: int, names: list[str]) -> int:
    failed = 0
    for seed in range(seeds):
        environment = os.environ | {"PUONE_SIM_SEED": str(seed), "PUONE_STANDIN_SEED": str(seed)}
        done = subprocess.run(
            [sys.executable, __file__, *names],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            failed += 1
            print(f"seed {seed}:\n{done.stdout}{done.stderr[-2000:]}", flush=True)
    print(f"{seeds} schedules of {len(names or MODELS)} models: {failed} with differences")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="how many schedules")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    args = parser.parse_args()
    if args.seeds:
        return in_processes(args.seeds, args.models)
    look_at_no_mask()
    found = [text for name in args.models or MODELS for text in differences(name)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
