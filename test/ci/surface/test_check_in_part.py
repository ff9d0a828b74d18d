# SPDX-License-Identifier: BSD-3-Clause
"""A check that reads what is at stake says of the installed torch what one says that reads all.

These are a few of the mutations of headers; `python test/ci/surface/part_bench.py` compares all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from part_bench import as_a_whole, differences, in_part, of_headers
from trees import installed_tree

from torch_backend_ci.surface import probe
from torch_backend_ci.surface.probe import FOLDER

IN_PART = (
    "Allocator::allocate changes its const-ness",
    "A class gets a base class with a function to be implemented",
    "A member function is deleted",
    "An enum is removed",
)
# Without the other headers torch/csrc/jit/frontend/tracer.h means another List.
WHOLE = ("A type gets another name",)


@pytest.mark.nightly
@pytest.mark.parametrize("title", [*IN_PART, *WHOLE])
def test_in_part_and_as_a_whole_the_report_is_the_same(title: str) -> None:
    (mutation,) = (m for m in of_headers() if m.title.startswith(title))
    part, whole = in_part(mutation), as_a_whole(mutation)
    assert part.whole == (title in WHOLE)
    assert list(differences(part.report, whole.report)) == [] and part.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize("surface", sorted(FOLDER.glob("surfaces/*.h")), ids=lambda p: p.stem)
def test_a_surface_of_the_probe_compiles_without_the_others(surface: Path) -> None:
    tree = installed_tree()
    asked = f'#include "surfaces/{surface.name}"\n'
    assert probe.run(tree, written_for=tree.version, part=asked).errors == ()
