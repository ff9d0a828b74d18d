# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose blocks wait for each other or add to one place, in whatever order blocks run, and
however many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from digests import digest_of
from suites import STANDIN, needs_standin

if TYPE_CHECKING:
    from interpreter import Python

pytestmark = needs_standin

#: Blocks at the same time, and whether they begin with the last.
SCHEDULES: tuple[dict[str, str], ...] = (
    {},
    {"PUONE_STANDIN_BLOCKS": "4"},
    {"PUONE_STANDIN_BLOCKS": "2", "PUONE_STANDIN_SEED": "1"},
)


def with_one_right_result(device: str) -> Iterator[torch.Tensor]:
    source = torch.Generator().manual_seed(5)

    def numbers(end: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, end, shape, generator=source)

    yield numbers(1 << 62, 3, 40_001).to(device).cumsum(1)
    yield numbers(100, 600_001).to(device).cumsum(0)  # more than one group of tiles
    yield from numbers(1000, 2, 9_001).int().to(device).cummax(1)
    # Digits of all kinds; only the lowest; only the third; and a line whose keys are all equal.
    lines = numbers(1 << 62, 4, 9_001)
    lines[1] %= 200
    lines[2] = lines[2] % 200 << 16
    lines[3] = 7
    yield from lines.to(device).sort(dim=1, stable=True)
    yield from lines.to(device).float().sort(dim=1, stable=True, descending=True)
    yield from numbers(1 << 40, 20_001).to(device).unique(return_inverse=True, return_counts=True)
    yield torch.zeros(70, dtype=torch.int64, device=device).index_add_(
        0, numbers(70, 9_001).to(device), numbers(1000, 9_001).to(device)
    )


def rounded() -> Iterator[torch.Tensor]:
    source = torch.Generator().manual_seed(5)
    yield torch.randn(600_001, generator=source).to("puone").cumsum(0)
    x = torch.randn(2, 40_001, generator=source).to("puone")
    yield x.double().cumsum(1)
    yield (1 + x / 1000).cumprod(1)
    yield x.logcumsumexp(1)
    yield torch.complex(*x).cumsum(0)
    torch.use_deterministic_algorithms(True)
    yield from sums_at_few_places()


def sums_at_few_places() -> Iterator[torch.Tensor]:
    source = torch.Generator().manual_seed(5)
    index = torch.randint(0, 7, (9_001,), generator=source).to("puone")
    x = torch.randn(9_001, generator=source).to("puone")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64):
        yield torch.zeros(7, dtype=dtype, device="puone").index_add_(0, index, x.to(dtype))


def digest(python: Python, of: str, environment: dict[str, str]) -> str:
    code = (
        "import sys; sys.path += ['test', 'test/standin']; import torch_puone\n"
        f"import test_between_blocks as t; print(t.digest_of(t.{of}))"
    )
    done = python(code, env={"PUONE_DRIVER": str(STANDIN), **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return str(done.stdout.split()[-1])


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(SCHEDULES[0], id="one", marks=pytest.mark.nightly),
        pytest.param(SCHEDULES[1], id="some"),
        pytest.param(SCHEDULES[2], id="reversed", marks=pytest.mark.nightly),
    ],
)
def test_results_are_right_on_every_schedule(python: Python, schedule: dict[str, str]) -> None:
    on_the_cpu = digest_of(with_one_right_result("cpu"))
    assert digest(python, "with_one_right_result('puone')", schedule) == on_the_cpu


@pytest.mark.nightly
def test_floats_are_rounded_alike_on_every_schedule(python: Python) -> None:
    assert len({digest(python, "rounded()", schedule) for schedule in SCHEDULES[::2]}) == 1


@pytest.mark.nightly
def test_sums_are_rounded_in_any_order_where_that_is_permitted(python: Python) -> None:
    digests = {digest(python, "sums_at_few_places()", schedule) for schedule in SCHEDULES[::2]}
    assert len(digests) > 1
