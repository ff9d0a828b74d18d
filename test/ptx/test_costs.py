# SPDX-License-Identifier: BSD-3-Clause
"""Kernels cost no more than they did, by a model that needs no card."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ptx_costs import LAUNCHES, allotted, cost, stacks
from ptx_executor import needs_ptx

pytestmark = needs_ptx

REGISTERS_OF_A_MULTIPROCESSOR = 65536


@cache
def bounds() -> dict[str, Any]:
    return dict(yaml.load((Path(__file__).parent / "costs.yaml").read_text(), yaml.CSafeLoader))


def test_each_launch_has_a_bound() -> None:
    assert list(bounds()["launches"]) == list(LAUNCHES)


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_moves_and_executes_no_more(name: str) -> None:
    now, bound = cost(LAUNCHES[name]()), bounds()["launches"][name]
    assert now.loads <= bound["loads"] * 1.001
    assert now.stores <= bound["stores"] * 1.001
    assert now.bytes_per_access >= bound["bytes_per_access"] * 0.999
    assert now.instructions_per_byte <= bound["instructions_per_byte"]


# At night: for the tests of each change nvcc makes no machine code.
@pytest.mark.nightly
def test_blocks_find_their_registers() -> None:
    all = allotted()
    assert len(all) > 1000
    too_many = [
        name
        for name, each in all.items()
        if each.registers * each.threads > REGISTERS_OF_A_MULTIPROCESSOR or each.registers == 0
    ]
    assert too_many == []


@pytest.mark.nightly
def test_stacks_do_not_grow() -> None:
    """A kernel without an entry has none."""
    known = bounds()["stacks"]
    grown = {kernel: stack for kernel, stack in stacks().items() if stack > known.get(kernel, 0)}
    assert grown == {}
