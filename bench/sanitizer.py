# SPDX-License-Identifier: BSD-3-Clause
"""What the stream sanitizer costs: `python -m bench.sanitizer [--rounds N]`.

A train step of a small transformer with it and without, in turn, and the smallest operator without
it, before it was ever on and after: off, it must cost nothing that can be measured. Ends with
status 1 if a train step takes more than LIMIT times as long.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import torch_puone

LIMIT = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sanitizer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    x = torch.ones(1, device="puone")
    before = median_seconds(lambda: adds(x), rounds)
    step = train_step()
    off, on = [], []
    for _ in range(rounds):
        off.append(seconds(step))
        torch_puone.sanitizer.enable("collect")
        on.append(seconds(step))
        torch_puone.sanitizer.disable()
    after = median_seconds(lambda: adds(x), rounds)
    ratio = statistics.median(b / a for a, b in zip(off, on, strict=True))
    print(f"train step, off           {statistics.median(off) * 1e3:8.2f} ms")
    print(f"train step, on            {statistics.median(on) * 1e3:8.2f} ms  {ratio:5.2f}x")
    print(f"1-element add, never on   {before * 1e6 / ADDS:8.3f} us")
    print(f"1-element add, off again  {after * 1e6 / ADDS:8.3f} us  {after / before:5.2f}x")
    found = torch_puone.sanitizer.reports()
    print(f"reports                   {len(found):8d}")
    return int(ratio > LIMIT or bool(found))


ADDS = 1000


def adds(x: torch.Tensor) -> None:
    for _ in range(ADDS):
        x + 1


def train_step() -> Callable[[], None]:
    """A step of forward, backward and Adam."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
    model = torch.nn.Sequential(layer, torch.nn.Linear(64, 10)).to("puone")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(8, 32, 64, device="puone")

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    step()
    return step


def seconds(work: Callable[[], None]) -> float:
    torch_puone.synchronize()
    start = time.perf_counter()
    work()
    torch_puone.synchronize()
    return time.perf_counter() - start


def median_seconds(work: Callable[[], None], rounds: int) -> float:
    return statistics.median(seconds(work) for _ in range(rounds))


if __name__ == "__main__":
    raise SystemExit(main())
