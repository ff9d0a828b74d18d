# SPDX-License-Identifier: BSD-3-Clause
"""The table of names is right about this torch, and complete."""

from __future__ import annotations

import inspect

import pytest
import torch

from torch_puone.migrate import table
from torch_puone.migrate.cuda_names import ADAPTERS
from torch_puone.migrate.modules import PROXIED
from torch_puone.migrate.target import Target


def test_every_public_name_of_torch_cuda_has_a_row() -> None:
    public = {f"torch.cuda.{name}" for name in torch.cuda.__all__}
    known = {name for name in public if table.find(name)}
    # Storage classes are deprecated in PyTorch itself.
    missing = {name for name in public - known if not name.endswith("Storage")}
    assert missing == set()


def test_no_name_has_two_rows() -> None:
    names = [row.name for row in table.ROWS]
    assert len(names) == len(set(names))


def test_a_row_without_replacement_says_why() -> None:
    assert all(row.note for row in table.ROWS if not row.instead and not row.setting)


@pytest.mark.parametrize(
    "row", [row for row in table.ROWS if row.drop_in and row.replacement], ids=lambda row: row.name
)
def test_a_replacement_that_is_a_name_exists_here(row: table.Row) -> None:
    target = Target("puone")
    assert target.resolve(row.replacement) is not None


@pytest.mark.parametrize(
    "row",
    [row for row in table.ROWS if row.drop_in and row.replacement.startswith("torch.accelerator.")],
    ids=lambda row: row.name,
)
def test_a_drop_in_takes_the_same_positional_arguments(row: table.Row) -> None:
    old: object = torch
    for part in row.name.split(".")[1:]:
        old = getattr(old, part)
    new = Target("puone").resolve(row.replacement)
    if inspect.isclass(old):
        return
    assert callable(old)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = [
        len([p for p in inspect.signature(one).parameters.values() if p.kind in kinds])
        for one in (old, new)
    ]
    assert count[0] <= count[1]


def test_adapters_have_rows() -> None:
    assert all(table.find(name) is not None for name in ADAPTERS)


def test_parts_of_torch_cuda_have_its_names() -> None:
    assert table.canonical("torch.cuda.memory.memory_allocated") == "torch.cuda.memory_allocated"
    assert table.canonical("torch.cuda.amp.autocast_mode.autocast") == "torch.cuda.amp.autocast"
    assert table.canonical("torch.cuda.memory.no_such") == "torch.cuda.memory.no_such"


def test_the_proxied_modules_exist() -> None:
    import sys

    assert all(name in sys.modules for name in PROXIED)


def test_a_name_of_torch_accelerator_counts_where_torch_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = table.find("torch.cuda.manual_seed")
    assert row is not None
    monkeypatch.delattr(torch.accelerator, "manual_seed", raising=False)
    assert row.replacement == "torch.get_device_module().manual_seed"
    monkeypatch.setattr(torch.accelerator, "manual_seed", torch.manual_seed, raising=False)
    assert row.replacement == "torch.accelerator.manual_seed"
