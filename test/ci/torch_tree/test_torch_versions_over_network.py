# SPDX-License-Identifier: BSD-3-Clause
"""The oldest and the newest torch, from the real index: found, fetched in parts, read.

The only tests of the project that need a network; without one they fail, and say so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue, snapshot
from torch_backend_ci.surface.model import Domain
from torch_backend_ci.torch_tree import locate

# Until pip 24, finding packages imports what setuptools calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:pkg_resources:DeprecationWarning")

COMMITS = {
    "2.5.1": "a8d6afb511a69687bbb2b7e88a3cf67917e1697e",
    "2.15.0": "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e",
}


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["2.15.0", "2.5.1"])
def test_a_version_is_fetched_and_its_surface_read(version: str, tmp_path: Path) -> None:
    said: list[str] = []
    try:
        tree = locate(version, tmp_path, said.append)
    except CiError as error:
        pytest.fail(f"this test needs a network and an index with torch {version}: {error}")
    assert (tree.version, tree.git_version) == (version, COMMITS[version])
    assert not any("the server gives no parts" in line for line in said)
    assert 60e6 < sum(p.stat().st_size for p in tree.root.rglob("*") if p.is_file()) < 200e6

    known = catalogue.load()
    guard = tuple(s for s in known.surfaces if s.name in {"guard", "operators"})
    taken = snapshot.take(
        tree, catalogue=catalogue.Catalogue(guard), domains={Domain.CPP, Domain.OPERATOR}
    )
    names = {declaration.name for declaration in taken.declarations}
    assert "c10::impl::DeviceGuardImplInterface::exchangeStream" in names
    assert "aten::add.Tensor" in names
