# SPDX-License-Identifier: BSD-3-Clause
"""Operators that compute: how soon they return, how fast they run; and a transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from torch_conformance.authoring.device import Device
from torch_conformance.bench.timing import Row, Summary, alternate, alternate_issue

LARGE = 1_000_000
MATRIX = 512

Function = Callable[[Tensor, Tensor], Tensor]

POINTWISE: dict[str, Function] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "mul, Python scalar": lambda a, b: a * 2.0,
    "add_": lambda a, b: a.add_(b),
    "maximum": torch.maximum,
    "lt": torch.lt,
    "where": lambda a, b: torch.where(a > 0, a, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "clamp": lambda a, b: a.clamp(0.0, 1.0),
    "abs": lambda a, b: a.abs(),
    "neg": lambda a, b: -a,
    "sqrt": lambda a, b: a.abs().sqrt(),
    "rsqrt": lambda a, b: b.rsqrt(),
    "reciprocal": lambda a, b: b.reciprocal(),
    "exp": lambda a, b: a.exp(),
    "log": lambda a, b: b.log(),
    "sin": lambda a, b: a.sin(),
    "tanh": lambda a, b: a.tanh(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "erf": lambda a, b: a.erf(),
    "relu": lambda a, b: a.relu(),
    "gelu": lambda a, b: nn.functional.gelu(a),
    "silu": lambda a, b: nn.functional.silu(a),
}

# Of a matrix with as many rows as columns.
REDUCTIONS: dict[str, Callable[[Tensor], object]] = {
    "sum": lambda a: a.sum(),
    "sum of rows": lambda a: a.sum(1),
    "sum of columns": lambda a: a.sum(0),
    "mean": lambda a: a.mean(),
    "amax of rows": lambda a: a.amax(1),
    "max of rows, with indices": lambda a: a.max(1),
    "argmax": lambda a: a.argmax(),
    "var of rows": lambda a: a.var(1),
    "norm": lambda a: a.norm(),
    "all": lambda a: a.all(),
    "softmax": lambda a: a.softmax(1),
}

# Images, permutations and distributions.
SPECIAL: dict[str, tuple[tuple[int, ...], Callable[[Tensor], object]]] = {
    "bilinear, 8 x 16 x 64 x 64": (
        (8, 16, 64, 64),
        lambda x: nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    ),
    "trilinear, 2 x 8 x 16 x 32 x 32": (
        (2, 8, 16, 32, 32),
        lambda x: nn.functional.interpolate(x, scale_factor=2, mode="trilinear"),
    ),
    "depthwise, 8 x 144 x 56 x 56": (
        (8, 144, 56, 56),
        lambda x: nn.functional.conv2d(x, _taps(x), padding=1, groups=x.size(1)),
    ),
    "depthwise, stride 2, 8 x 96 x 112^2": (
        (8, 96, 112, 112),
        lambda x: nn.functional.conv2d(x, _taps(x), stride=2, padding=1, groups=x.size(1)),
    ),
    "depthwise, 8 x 384 x 14 x 14": (
        (8, 384, 14, 14),
        lambda x: nn.functional.conv2d(x, _taps(x), padding=1, groups=x.size(1)),
    ),
    "gamma, 100,000": ((100_000,), lambda x: torch._standard_gamma(x.abs() + 0.5)),
    "randperm, 10,000": ((1,), lambda x: torch.randperm(10_000, device=x.device)),
    "randperm, 1M": ((1,), lambda x: torch.randperm(LARGE, device=x.device)),
}


def _taps(images: Tensor) -> Tensor:
    """One filter of 3 x 3 for each channel."""
    return images.view(-1)[: 9 * images.size(1)].view(-1, 1, 3, 3)


def measure(dev: Device, rounds: int) -> Iterator[Row | Summary]:
    """Every operator, and the median of each group."""
    yield from _group("pointwise, 1 element, issue", _issue(dev, rounds))
    yield from _group("pointwise, 1M elements", _large(dev, rounds))
    yield from _group("reductions, 1M elements", _reductions(dev, rounds))
    yield from _special(dev, rounds)
    yield _matmul(dev, rounds)
    yield from _attention(dev, rounds)
    yield _transformer(dev, rounds)


def _group(title: str, rows: Iterator[Row]) -> Iterator[Row | Summary]:
    found = []
    for row in rows:
        found.append(row)
        yield row
    ratios = [row.ratio for row in found if row.ratio is not None]
    tails = [row.ratio_p95 for row in found if row.ratio_p95 is not None]
    yield Summary(f"= median of {title}", median(ratios), median(tails))


def _operands(device: torch.device, count: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    first, second = torch.randn(count), torch.rand(count) + 0.5
    return first.to(device), second.to(device)


def _issue(dev: Device, rounds: int) -> Iterator[Row]:
    cpu, there = _operands(torch.device("cpu"), 1), _operands(dev.device(), 1)
    for name, function in POINTWISE.items():
        yield alternate_issue(
            f"{name}, 1 element, issue",
            partial(function, *there),
            partial(function, *cpu),
            dev.synchronize,
            rounds,
        )


def _large(dev: Device, rounds: int) -> Iterator[Row]:
    cpu, there = _operands(torch.device("cpu"), LARGE), _operands(dev.device(), LARGE)
    for name, function in POINTWISE.items():
        yield alternate(
            f"{name}, 1M elements",
            partial(function, *there),
            partial(function, *cpu),
            dev.synchronize,
            rounds,
        )


def _reductions(dev: Device, rounds: int) -> Iterator[Row]:
    cpu = _operands(torch.device("cpu"), LARGE)[0].view(1000, 1000)
    there = cpu.to(dev.device())
    for name, function in REDUCTIONS.items():
        yield alternate(
            f"{name}, 1M elements",
            partial(function, there),
            partial(function, cpu),
            dev.synchronize,
            rounds,
        )


def _special(dev: Device, rounds: int) -> Iterator[Row]:
    for name, (shape, function) in SPECIAL.items():
        torch.manual_seed(0)
        cpu = torch.randn(shape)
        there = cpu.to(dev.device())
        yield alternate(
            name, partial(function, there), partial(function, cpu), dev.synchronize, rounds
        )


def _matmul(dev: Device, rounds: int) -> Row:
    torch.manual_seed(0)
    cpu = torch.randn(MATRIX, MATRIX)
    there = cpu.to(dev.device())
    name = f"matmul, {MATRIX} x {MATRIX}"
    return alternate(name, lambda: there @ there, lambda: cpu @ cpu, dev.synchronize, rounds)


def _attention(dev: Device, rounds: int) -> Iterator[Row]:
    """8 heads of 64 columns, length 1024: the forward pass, with a causal mask, and both passes."""

    def forward(causal: bool, q: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=causal)

    def both(q: Tensor) -> Tensor:
        return torch.autograd.grad(forward(False, q), q, grad_outputs=q)[0]

    torch.manual_seed(0)
    cpu = torch.randn(1, 8, 1024, 64)
    there = cpu.to(dev.device())
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "attention": partial(forward, False),
        "causal attention": partial(forward, True),
        "attention, forward and backward": both,
    }
    for name, function in functions.items():
        here, away = (x.requires_grad_(function is both) for x in (cpu, there))
        yield alternate(
            name, partial(function, away), partial(function, here), dev.synchronize, rounds
        )


def _transformer(dev: Device, rounds: int) -> Row:
    """Forward, backward and optimizer step of one encoder layer: batch 8, length 64, width 256."""
    here, there = _training(torch.device("cpu")), _training(dev.device())
    return alternate("train step of a transformer block", there, here, dev.synchronize, rounds)


def _training(device: torch.device) -> Callable[[], Tensor]:
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True).to(device)
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-4)
    inputs = torch.randn(8, 64, 256).to(device)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = block(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step
