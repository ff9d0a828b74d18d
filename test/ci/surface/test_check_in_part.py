# SPDX-License-Identifier: BSD-3-Clause
"""A check that reads what is at stake says of the installed torch what one says that reads all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installed import installed_snapshot
from mutation import load, patch_of
from trees import installed_tree

from torch_backend_ci.surface import catalogue, probe
from torch_backend_ci.surface.check import change, judge, stakes
from torch_backend_ci.surface.probe import FOLDER
from torch_backend_ci.surface.report import Report
from torch_backend_ci.torch_tree.cache import default_folder

TITLES = (
    "Allocator::allocate changes its const-ness",
    "A class gets a base class with a function to be implemented",
    "A member function is deleted",
    "An enum is removed",
)


@pytest.mark.nightly
@pytest.mark.parametrize("title", TITLES)
def test_in_part_and_as_a_whole_the_report_is_the_same(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mutation,) = (m for m in load() if m.title.startswith(title))
    tree, known = installed_tree(), catalogue.load()
    patch = patch_of(tree.root, mutation.edits).encode()
    base = judge.Base(tree, installed_snapshot, default_folder())
    said: list[str] = []

    def check() -> Report:
        return judge.judge(base, change.of_patch(tree, patch), "the patch", known, said.append)

    part = check()
    assert not any(re.search("reading all headers", line) for line in said)
    monkeypatch.setattr(stakes, "at_stake", lambda *_: None)
    assert part == check() and part.findings


@pytest.mark.nightly
@pytest.mark.parametrize("surface", sorted(FOLDER.glob("surfaces/*.h")), ids=lambda p: p.stem)
def test_a_surface_of_the_probe_compiles_without_the_others(surface: Path) -> None:
    tree = installed_tree()
    asked = f'#include "surfaces/{surface.name}"\n'
    assert probe.run(tree, written_for=tree.version, part=asked).errors == ()
