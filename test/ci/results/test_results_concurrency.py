# SPDX-License-Identifier: BSD-3-Clause
"""Several that add, compact and read at once, in whatever order: nothing is lost, nothing twice."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storing import Relations, added, compacted, relations, reports

from torch_backend_ci.results import layout
from torch_backend_ci.results.store import Store

COUNT = 5


def started(store: Path, verb: str, *files: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "torch_backend_ci",
            "results",
            verb,
            f"--store={store}",
            *map(str, files),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What it said, once it has ended well."""
    _, said = process.communicate()
    assert process.returncode == 0, said
    return said


def test_writers_at_once_lose_nothing_whoever_compacts_and_reads(tmp_path: Path) -> None:
    files = reports(tmp_path / "reports", COUNT)
    store = tmp_path / "store"
    added(tmp_path / "alone", files)
    # Each run is added by two of the three.
    parts = [files[:3], files[2:], [files[0], files[1], files[3], files[4]]]
    writers = [started(store, "add", *part) for part in parts]
    seen: list[frozenset[str]] = [frozenset()]
    while any(writer.poll() is None for writer in writers):
        if (store / "store.json").exists():
            compactor = started(store, "compact")
            seen.append(Store(store).known())
            ended(compactor)
    for writer in writers:
        assert "refused" not in ended(writer)
    assert all(before <= after for before, after in itertools.pairwise(seen))
    ended(started(store, "compact"))
    assert relations(store) == relations(tmp_path / "alone")


def test_compactions_at_once_lose_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for one in reports(tmp_path / "reports", COUNT):
        added(store, [one])
    before = relations(store)
    for process in [started(store, "compact") for _ in range(4)]:
        ended(process)
    assert relations(store) == before
    assert len(Store(store).snapshot().parts) == 2


# -- any order ------------------------------------------------------------------------------------

ADD = st.sets(st.integers(0, COUNT - 1), min_size=1).map(lambda these: ("add", sorted(these)))
COMPACT = st.just(("compact", list[int]()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return reports(tmp_path_factory.mktemp("reports"), COUNT)


@pytest.fixture(scope="module")
def expected(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Relations:
    store = tmp_path_factory.mktemp("expected") / "store"
    added(store, files)
    return relations(store)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.tuples(st.sampled_from("ab"), st.one_of(ADD, COMPACT)), max_size=6),
    last=st.booleans(),
)
def test_any_order_of_additions_and_compactions_in_two_stores_gives_the_same(
    files: list[Path],
    expected: Relations,
    steps: list[tuple[str, tuple[str, list[int]]]],
    last: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, (verb, these) in [("a", ("add", [0])), *steps]:
            if verb == "add":
                added(root / name, [files[number] for number in these])
            elif (root / name).exists():
                compacted(root / name)
        if (root / "b").exists():
            shutil.copytree(root / "b", root / "a", dirs_exist_ok=True)
        added(root / "a", files)
        if last:
            compacted(root / "a")
        assert relations(root / "a") == expected


def test_a_store_that_another_writer_makes_meanwhile_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, listdir = tmp_path / "store", os.listdir

    def late(folder: Path) -> list[str]:
        monkeypatch.undo()
        layout.create(store)
        (store / "2026-11-22").mkdir()
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", late)
    layout.create(store)
    layout.require(store)
