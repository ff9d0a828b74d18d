# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs of views, reductions and sums: `python random_graphs.py FIRST COUNT`.

Each is compiled for puone and compared with float64 on the CPU, half of them with all intermediate
results as outputs, some with dynamic shapes. Prints what is wrong with a seed; ends with status 1
if anything is.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import torch

import torch_puone  # noqa: F401 - registers the device

Tensor = torch.Tensor
Step = tuple[str, Callable[[Tensor], Tensor]]

#: Around the lengths of vectors, tiles, groups of columns and rows.
SIZES = (1, 2, 3, 5, 8, 9, 16, 17, 31, 64, 65, 70, 100, 128, 130)
LARGEST = 300_000


def _permuted(chance: random.Random, x: Tensor) -> Step:
    order = list(range(x.dim()))
    chance.shuffle(order)
    return f"permute({order})", lambda t: t.permute(order)


def _flipped(chance: random.Random, x: Tensor) -> Step:
    dim = chance.randrange(x.dim())
    return f"flip({dim})", lambda t: t.flip(dim)


def _without_the_first(chance: random.Random, x: Tensor) -> Step:
    dim = chance.randrange(x.dim())
    return f"narrow({dim})", lambda t: t.narrow(dim, 1, t.shape[dim] - 1)


def _rolled(chance: random.Random, x: Tensor) -> Step:
    dim, by = chance.randrange(x.dim()), chance.randrange(1, 4)
    return f"roll({by}, {dim})", lambda t: t.roll(by, dim)


def _with_steps(chance: random.Random, x: Tensor) -> Step:
    dim, step = chance.randrange(x.dim()), chance.choice([2, 3])
    index = (slice(None),) * dim + (slice(None, None, step),)
    return f"[::{step}] of {dim}", lambda t: t[index]


def _joined(chance: random.Random, x: Tensor) -> Step:
    dim = chance.randrange(x.dim())
    return f"cat({dim})", lambda t: torch.cat([t, t * 2], dim)


def _unsqueezed(chance: random.Random, x: Tensor) -> Step:
    dim = chance.randrange(x.dim() + 1)
    return f"unsqueeze({dim})", lambda t: t.unsqueeze(dim)


def _flat(chance: random.Random, x: Tensor) -> Step:
    return "flatten", lambda t: t.reshape(-1)


def _padded(chance: random.Random, x: Tensor) -> Step:
    return "pad", lambda t: torch.nn.functional.pad(t, (1, 2))


def _scaled(chance: random.Random, x: Tensor) -> Step:
    return "scale", lambda t: t * 1.5 + 0.25


def _above_the_mean(chance: random.Random, x: Tensor) -> Step:
    return "add the mean", lambda t: t + t.mean(-1, keepdim=True)


def _reduced(chance: random.Random, x: Tensor) -> Step:
    dims = sorted(chance.sample(range(x.dim()), chance.randint(1, x.dim())))
    keep = chance.random() < 0.5
    steps: Sequence[Step] = (
        ("sum", lambda t: t.sum(dims, keepdim=keep)),
        ("amax", lambda t: t.amax(dims, keepdim=keep)),
        ("mean", lambda t: t.mean(dims, keepdim=keep)),
        ("var", lambda t: t.var(dims, correction=0, keepdim=keep)),
        ("logsumexp", lambda t: t.logsumexp(dims, keepdim=keep)),
        ("softmax", lambda t: t.softmax(dims[0])),
        ("argmax", lambda t: t.argmax(dims[0], keepdim=keep).to(t.dtype)),
        (
            "standardise",
            lambda t: (
                (t - t.mean(dims, keepdim=True))
                * (t.var(dims, correction=0, keepdim=True) + 1).rsqrt()
            ),
        ),
    )
    name, function = chance.choice(steps)
    return f"{name}({dims}, {keep})", function


MAKERS = (
    *(_permuted, _flipped, _without_the_first, _rolled, _with_steps, _joined, _unsqueezed),
    *(_flat, _padded, _scaled, _above_the_mean, _above_the_mean, _reduced, _reduced, _reduced),
)


def graph(chance: random.Random, x: Tensor) -> list[Step]:
    steps = []
    for _ in range(chance.randint(2, 6)):
        if x.dim() == 0:
            break
        name, function = chance.choice(MAKERS)(chance, x)
        result = function(x)
        if 0 < result.numel() <= LARGEST and result.dim() <= 5:
            steps.append((name, function))
            x = result
    return steps


def wrong(seed: int) -> str:
    """What is wrong with the graph of this seed; "" if nothing."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    shape = [chance.choice(SIZES) for _ in range(chance.randint(1, 4))]
    while torch.Size(shape).numel() > LARGEST // 2:
        shape[chance.randrange(len(shape))] = chance.choice([1, 2, 3])
    x = torch.randn(shape)
    steps = graph(chance, x)
    all_outputs, dynamic = chance.random() < 0.5, chance.random() < 0.3

    def function(x: Tensor) -> list[Tensor]:
        results = [x * 1.0]
        for _, step in steps:
            results.append(step(results[-1]))
        return results if all_outputs else results[-1:]

    torch._dynamo.reset()
    try:
        compiled = torch.compile(function, dynamic=dynamic)(x.to("puone"))
        for actual, expected in zip(compiled, function(x.double()), strict=True):
            torch.testing.assert_close(actual.cpu().double(), expected, rtol=2e-3, atol=2e-3)
    except Exception as error:
        names = ", ".join(name for name, _ in steps)
        return f"seed {seed}: {shape}: {names}: {type(error).__name__}: {error}"
    return ""


def main() -> int:
    first, count = map(int, sys.argv[1:])
    found = [text for seed in range(first, first + count) if (text := wrong(seed))]
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
