# SPDX-License-Identifier: BSD-3-Clause
"""Operands of 64-bit numbers, of many elements, far apart in memory, and with gaps or overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, far_apart, noise, ramp


@check(
    "operator/float64",
    "OP-026",
    cases=("copy", "add", "matmul", "sum", "scalar", "exp", "linspace"),
)
def float64_is_never_narrowed(dev: Device, case: str) -> None:
    """float64 keeps 53 bits through every step, or is refused; it never becomes float32."""
    fine = 1.0 + 2.0**-40
    try:
        x = torch.full((8, 8), fine, dtype=torch.float64).to(dev.device())
    except (RuntimeError, TypeError):
        dev.unsupported("the backend refuses float64")
    assert x.dtype == torch.float64
    eye = torch.eye(8, dtype=torch.float64)
    programs: dict[str, tuple[Callable[[], Tensor], Tensor]] = {
        "copy": (lambda: x.clone(), torch.full((8, 8), fine, dtype=torch.float64)),
        "add": (lambda: x + x, torch.full((8, 8), 2 * fine, dtype=torch.float64)),
        "matmul": (lambda: x @ eye.to(dev.device()), torch.full((8, 8), fine, dtype=torch.float64)),
        "sum": (lambda: x.sum(), torch.tensor(64 * fine, dtype=torch.float64)),
        "scalar": (lambda: x * fine, torch.full((8, 8), fine * fine, dtype=torch.float64)),
        "exp": (lambda: (x - 1).exp(), torch.full((8, 8), fine - 1, dtype=torch.float64).exp()),
        "linspace": (
            lambda: torch.linspace(0, 1, 7, dtype=torch.float64, device=dev.device()),
            torch.linspace(0, 1, 7, dtype=torch.float64),
        ),
    }
    work, expected = programs[case]
    actual = work()
    assert actual.dtype == torch.float64
    dev.assert_close(actual, expected, rtol=1e-14, atol=0.0)


@check("operator/int64", "OP-026", cases=("add", "mul", "sum", "compare", "arange", "remainder"))
def int64_is_never_narrowed(dev: Device, case: str) -> None:
    """int64 keeps its 64 bits through arithmetic, reductions and comparison."""
    large = 2**40 + 1

    def program(device: torch.device) -> Tensor:
        x = torch.full((5,), large, dtype=torch.int64).to(device)
        programs: dict[str, Callable[[], Tensor]] = {
            "add": lambda: x + 1,
            "mul": lambda: x * 3,
            "sum": lambda: x.sum(),
            "compare": lambda: x == large - 1,
            "arange": lambda: torch.arange(large, large + 3, device=device),
            "remainder": lambda: (x * 2**12 + 1).remainder(1000),
        }
        return programs[case]()

    agree(dev, program)


@check("operator/large", "OP-036", cases=("sum", "add", "sort", "matmul"))
def larger_problems_agree(dev: Device, case: str) -> None:
    """Sizes that need several blocks or threads agree with the CPU."""
    programs: dict[str, Program] = {
        "sum": lambda d: ramp((1000, 1003), torch.int64).to(d).sum(1),
        "add": lambda d: ramp((1_000_003,)).to(d) + ramp((1_000_003,)).to(d),
        "sort": lambda d: noise((100_001,)).to(d).sort().values,
        "matmul": lambda d: noise((257, 130)).to(d) @ noise((130, 129), seed=1).to(d),
    }
    agree(dev, programs[case], rtol=1e-4, atol=1e-4)


_FAR: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "in_place": lambda x: x.mul_(2),
    "fill": lambda x: x[2].fill_(9),
    "sum": lambda x: x.sum(1),
    "index": lambda x: x[torch.tensor([2, 0], device=x.device)],
    "cat": lambda x: torch.cat([x, x]),
}


@check("operator/far", "OP-036", cases=tuple(_FAR))
def operands_may_lie_far_apart(dev: Device, case: str) -> None:
    """Operators on elements that are more than 2 GiB apart in memory agree with the CPU."""
    expected, actual = ramp((3, 5), torch.uint8), far_apart(dev)
    for row, values in zip(actual, expected, strict=True):
        row.copy_(values)
    dev.assert_equal(_FAR[case](actual), _FAR[case](expected))
    dev.assert_equal(torch.stack(list(actual)), expected)


_STRIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x.flip(0),
    "exp": lambda x: x.exp(),
    "flip": lambda x: x.flip(0, 1),
    "matmul": lambda x: x @ x.mT,
    "dot": lambda x: x[:, 0].dot(x[:, -1]),
    "mv": lambda x: x @ x[0],
    "sum": lambda x: x.sum(0),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(dim=0).values,
    "where": lambda x: torch.where(x > 0, x, -2 * x),
    "softmax": lambda x: x.softmax(0),
    "cat": lambda x: torch.cat([x, x[:1]]),
}


@check("operator/strided", "OP-037", cases=tuple(_STRIDED))
def operands_may_be_views(dev: Device, case: str) -> None:
    """Operators on transposed, expanded, sliced and overlapping operands agree with the CPU."""

    def program(device: torch.device) -> list[Tensor]:
        base = noise((6, 6)).to(device)
        views = [base.t(), base[:1].expand(6, 6), base[::2, 1:], base.flatten()[3:28].view(5, 5)]
        return [_STRIDED[case](view) for view in [*views, base.as_strided((5, 4), (2, 1))]]

    agree(dev, program, rtol=1e-5, atol=1e-6)
