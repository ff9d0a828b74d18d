# SPDX-License-Identifier: BSD-3-Clause
"""The kernels' flavour for devices, run by the stand-in, and the host's: equal to the last bit.

A function of this file computes a digest, in a process of each driver. What it computes has one
right result: random numbers, and writes that meet in one place, which are done in order where
deterministic algorithms are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from suites import STANDIN, needs_standin

if TYPE_CHECKING:
    from interpreter import Python

pytestmark = needs_standin

DEVICE = "puone"
# Rows of the table, writes to it, columns: few places for many writes, rows of whole 16 bytes, many
# places.
SHAPES = ((7, 300, 3), (50, 20, 64), (500, 2600, 2))
DTYPES = (torch.float32, torch.float16, torch.uint8, torch.complex64)


def numbers(dtype: torch.dtype, shape: tuple[int, ...], source: torch.Generator) -> torch.Tensor:
    values = torch.randint(0, 256, shape, generator=source).to(torch.float32) / 7
    return values.to(dtype).to(DEVICE)


def writes_that_meet() -> Iterator[torch.Tensor]:
    torch.use_deterministic_algorithms(True)
    source = torch.Generator().manual_seed(5)
    for dtype in DTYPES:
        for rows, writes, columns in SHAPES:
            table = numbers(dtype, (rows, columns), source)
            elements = numbers(dtype, (writes, columns), source)
            row = torch.randint(0, rows, (writes,), generator=source).to(DEVICE)
            column = torch.randint(0, columns, (writes,), generator=source).to(DEVICE)
            each = torch.randint(0, rows, (writes, columns), generator=source).to(DEVICE)
            first = elements[:, 0]
            yield table.clone().index_add_(0, row, elements)
            yield table.t().contiguous().index_add_(1, row, elements.t())
            yield table.clone().scatter_add_(0, each, elements)
            yield table.clone().scatter_(0, each, elements)
            yield table.clone().index_put_((row,), elements)
            yield table.clone().index_put_((row, column), first)
            yield table.clone().index_put_((row, column), first, accumulate=True)
            if not dtype.is_complex:
                yield table.clone().index_reduce_(0, row, elements, "prod")
                yield table.clone().scatter_reduce_(0, each, elements, "amax")


def lists_of_places() -> Iterator[torch.Tensor]:
    """Of what a mask finds in many chunks."""
    sparse = torch.zeros(300_001, dtype=torch.bool)
    sparse[::97] = True
    yield sparse.to(DEVICE).nonzero()
    yield torch.arange(300_001, device=DEVICE)[sparse.to(DEVICE)]


def layouts(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    for count in (1, 3, 4099):
        yield torch.empty(count, dtype=dtype, device=DEVICE)
    yield torch.empty(5001, dtype=dtype, device=DEVICE)[1:]
    yield torch.empty(37, 65, dtype=dtype, device=DEVICE).t()
    yield torch.empty(70, 130, dtype=dtype, device=DEVICE)[1:, ::2]
    yield torch.empty(7, 11, 13, dtype=dtype, device=DEVICE).permute(1, 2, 0)


def random_numbers() -> Iterator[torch.Tensor]:
    def generator() -> torch.Generator:
        return torch.Generator(DEVICE).manual_seed(7)

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for x in layouts(dtype):
            yield x.normal_(generator=generator())
            yield x.exponential_(generator=generator())
            yield torch.poisson(x * 40, generator=generator())
            yield x.bernoulli_(0.3, generator=generator())
    for dtype in (torch.uint8, torch.int32, torch.int64, torch.bool):
        for x in layouts(dtype):
            yield x.random_(generator=generator())
    for end in (7, 100, 1 << 40):
        yield torch.randint(3, end, (5_001,), device=DEVICE, generator=generator())
    weights = torch.linspace(0.1, 1, 60_000, device=DEVICE).reshape(3, 20_000)
    yield torch.multinomial(weights, 5000, replacement=True, generator=generator())
    for count in (2, 3, 300, 70_001):
        yield torch.randperm(count, device=DEVICE, generator=generator())


@pytest.mark.parametrize("name", ["random_numbers", "writes_that_meet", "lists_of_places"])
def test_a_device_and_a_host_agree_to_the_last_bit(name: str, python: Python) -> None:
    code = (
        "import sys; sys.path += ['test', 'test/standin']; import torch_puone\n"
        f"import digests, test_same_bits as t; print(digests.digest_of(t.{name}()))"
    )
    digests = set()
    for driver in ("sim", str(STANDIN)):
        done = python(code, env={"PUONE_DRIVER": driver}, timeout=300)
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout.split()[-1])
    assert len(digests) == 1
