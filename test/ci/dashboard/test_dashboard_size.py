# SPDX-License-Identifier: BSD-3-Clause
"""A site stays small enough for a host of static files, today and after a year."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from bench.dashboard_store import Size, make
from torch_backend_ci.dashboard.build import build

ROOT = Path(__file__).resolve().parents[3]


def weighed(folder: Path) -> tuple[int, int]:
    """How many files there are below a directory, and their bytes."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)


@pytest.mark.nightly
def test_the_site_of_the_example_store_has_at_most_5000_files_and_60_mb(tmp_path: Path) -> None:
    build(ROOT / "docs" / "dashboard" / "store", tmp_path / "site", 2)
    files, size = weighed(tmp_path / "site")
    assert files <= 5_000
    assert size <= 60_000_000


@pytest.mark.nightly
def test_a_run_takes_so_little_that_a_year_of_20_backends_has_room(tmp_path: Path) -> None:
    """Page and document of 7,300 runs with 55 kB are 400 MB, and little else grows with runs.

    The first run of a series tells more, so it is the middle one that counts.
    """
    make(tmp_path / "store", Size(backends=3, nights=4, checks=8000), range(4))
    build(tmp_path / "store", tmp_path / "site", 2)
    assert sum(middle(tmp_path / "site" / folder) for folder in ("run", "api/run")) <= 55_000


def middle(folder: Path) -> float:
    """The median size of the files in a directory, which are at least four."""
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert len(sizes) > 4
    return statistics.median(sizes)
