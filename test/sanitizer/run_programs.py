# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs under the sanitizer: `python run_programs.py FILE` prints their reports as JSON.

Every program of the YAML file runs by itself, with a finished device before it and behind it. What
it finds there is in names(). Seed and driver come from the environment, as for any program.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
import yaml

import torch_puone


def ready(*sizes: int) -> torch.Tensor:
    """A tensor of ones that every stream may use."""
    made = torch.ones(*sizes, device="puone")
    torch.accelerator.synchronize()
    return made


def in_thread(work: Callable[..., object], *arguments: object) -> None:
    """Runs `work` in another thread and waits for the thread."""
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    thread.join()


def train(optimizer_of: Callable[[Any], torch.optim.Optimizer]) -> None:
    """Three steps of a small network."""
    layers = (torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    model = torch.nn.Sequential(*layers).to("puone")
    optimizer = optimizer_of(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(ready(8, 64)).mean().backward()
        optimizer.step()


def names() -> dict[str, Any]:
    """What a program may use."""
    mask = torch.zeros(1024, dtype=torch.bool, device="puone")
    index = torch.tensor([1, 5, 9], device="puone")
    result = {
        "torch": torch,
        "F": F,
        "on": torch_puone.stream,
        "main": torch_puone.default_stream(),
        "ready": ready,
        "in_thread": in_thread,
        "train": train,
        "mask": mask,
        "index": index,
        "host": torch.ones(1024).pin_memory(),
        "x": ready(1024),
        "y": ready(1024),
        "m": ready(64, 64),
        "n": ready(64, 64),
        "bucket": ready(2048),
        "peer": torch.ones(2048, device="puone:1"),
        **{name: torch_puone.Stream() for name in ("side", "other", "comm")},
    }
    for device in range(2):
        torch_puone.synchronize(device)
    return result


def run(code: str) -> list[dict[str, Any]]:
    """The reports of a program."""
    gc.collect()
    torch_puone.synchronize()
    torch_puone.empty_cache()
    sanitizer = torch_puone.sanitizer
    sanitizer.enable("collect")
    environment = names()
    sanitizer.clear()
    exec(compile(code, "<program>", "exec"), environment)
    found = sanitizer.reports()
    for device in range(2):
        torch_puone.synchronize(device)
    sanitizer.disable()
    return [
        {
            "kind": report.kind,
            "operators": [access.operator for access in report.accesses],
            "streams": [access.stream for access in report.accesses],
            "lines": [
                [frame.line for frame in access.stack if frame.file == "<program>"]
                for access in report.accesses
            ],
            "text": str(report),
        }
        for report in found
    ]


def main() -> None:
    programs = yaml.safe_load(Path(sys.argv[1]).read_text())
    wanted = set(sys.argv[2:])
    results = {}
    gc.freeze()  # what torch is made of: a collection would look at all of it, for each program
    for program in programs:
        if not wanted or program["name"] in wanted:
            results[program["name"]] = run(program["code"])
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
