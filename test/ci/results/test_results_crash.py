# SPDX-License-Identifier: BSD-3-Clause
"""Whatever stops `results add` or `results compact`, the store is whole, and again is enough."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import subprocess
import sys
import tempfile
from functools import partial as partial_of
from pathlib import Path
from typing import Any

import duckdb
import pytest
from storing import Moment, added, compacted, fates, killed, relations, reports

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.results import compact, duck, layout
from torch_backend_ci.results.store import Store


def copied(store: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", store, to], check=True)
    return to


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What killed processes leave behind goes with the test."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Of two nights of October and one of November."""
    made = tmp_path / "store"
    for one in reports(tmp_path / "before", 3):
        added(made, [one])
    return made


@pytest.mark.nightly
@pytest.mark.parametrize("moment", Moment)
def test_killed_at_any_point_of_add_the_store_is_whole_and_again_is_enough(
    tmp_path: Path, store: Path, moment: Moment
) -> None:
    more = reports(tmp_path / "more", 5, python="3.12")[3:]
    before = relations(store)
    added(copied(store, tmp_path / "undisturbed"), more)
    after = relations(tmp_path / "undisturbed")
    partial = 0
    for point in itertools.count(1):
        mine = copied(store, tmp_path / f"{point}")
        if not killed(partial_of(added, mine, more), point, moment):
            break
        runs, results = relations(mine)
        assert set(map(repr, before[0])) <= set(map(repr, runs)) <= set(map(repr, after[0]))
        assert len(results) == 24 * len(runs)
        partial += len(before[0]) < len(runs) < len(after[0])
        assert "refused" not in fates(added(mine, more))
        assert relations(mine) == after
    assert partial and point > {Moment.BEFORE: 15, Moment.AMID: 4}[moment]


def test_killed_while_it_is_made_a_store_is_made_again(tmp_path: Path) -> None:
    one = reports(tmp_path / "reports", 1)
    for point in itertools.count(1):
        if not killed(partial_of(added, tmp_path / f"{point}", one), point, Moment.BEFORE):
            break
        added(tmp_path / f"{point}", one)
        assert len(Store(tmp_path / f"{point}").known()) == 1
    assert point > 10


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("keep_days", [None, pytest.param(5, marks=pytest.mark.nightly)])
def test_killed_at_any_point_of_compact_nothing_is_lost_and_again_is_enough(
    tmp_path: Path, store: Path, keep_days: int | None, moment: Moment
) -> None:
    before = relations(store)
    compacted(copied(store, tmp_path / "undisturbed"), keep_days)
    after = relations(tmp_path / "undisturbed")
    for point in itertools.count(1):
        mine = copied(store, tmp_path / f"{point}")
        if not killed(partial_of(compacted, mine, keep_days), point, moment):
            break
        assert relations(mine) in (before, after)
        compacted(mine, keep_days)
        assert relations(mine) == after
    assert point > 1
    assert len(layout.segments(mine)) == 2


def test_what_killed_commands_leave_behind_is_swept_up_a_day_later(
    tmp_path: Path, store: Path
) -> None:
    more = reports(tmp_path / "more", 5, python="3.12")[4:]
    before = relations(store)
    for point in range(1, 12):
        killed(partial_of(added, store, more), point, Moment.BEFORE)
    left = {file for file in store.rglob("*") if layout.is_part(file.name)}
    left |= {file for file in store.rglob("*.results.parquet") if not beside(file).exists()}
    assert len(left) > 2
    assert compact.remains(Store(store)) == []
    for file in left:
        os.utime(file, (0, 0))
    assert set(compact.remains(Store(store))) == left
    assert main(["results", "compact", f"--store={store}"]) == Exit.OK
    assert not any(file.exists() for file in left)
    assert relations(store) == before


def beside(results: Path) -> Path:
    return results.with_name(results.name.replace(layout.RESULTS, layout.RUNS))


def test_a_file_that_is_written_again_while_it_is_swept_stays(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = layout.segments(store)[0].results
    compact.sweep(file)
    assert file.exists()
    os.utime(file, (0, 0))
    compact.sweep(file)
    assert not file.exists()
    compact.sweep(file)


# -- the disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_is_told_and_leaves_the_store_as_it_was(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    more = reports(tmp_path / "more", 4, python="3.12")[3:]
    before = relations(store)

    def full(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(CiError, match=f"cannot write into .*{os.strerror(code)}"):
            added(store, more)
    assert relations(store) == before
    assert not [file for file in store.rglob("*") if layout.is_part(file.name)]
    assert fates(added(store, more)) == ["added"]


def test_a_disk_that_fills_while_duckdb_writes_is_told(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = relations(store)

    def full(*args: Any) -> None:
        args[-1].write_bytes(b"PAR1")
        raise duckdb.IOException("IO Error: Could not write to file: No space left on device")

    monkeypatch.setattr(duck, "copy", full)
    with pytest.raises(CiError, match=r"cannot write into .*No space left on device"):
        added(store, reports(tmp_path / "more", 4, python="3.12")[3:])
    with pytest.raises(CiError, match=r"cannot write into .*No space left on device"):
        compacted(store)
    assert relations(store) == before
    assert not [file for file in store.rglob("*") if layout.is_part(file.name)]


@pytest.mark.parametrize("limit", [10, 2_000, 8_000])
def test_files_that_may_not_grow_end_the_command_with_a_sentence(
    tmp_path: Path, store: Path, limit: int
) -> None:
    before = relations(store)
    more = reports(tmp_path / "more", 4, python="3.12")[3:]
    done = subprocess.run(
        [sys.executable, "-m", "torch_backend_ci", "results", "add", f"--store={store}", *more],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == Exit.UNUSABLE
    assert "error: cannot" in done.stderr and "Traceback" not in done.stderr
    assert relations(store) == before


def test_a_store_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reports(tmp_path / "reports", 1)
    with pytest.raises(CiError, match="cannot make the store /dev/null/x: Not a directory"):
        added(Path("/dev/null/x"), one)
    added(tmp_path / "store", one)

    def denied(*args: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "mkdir", denied)
    with pytest.raises(CiError, match=r"cannot make the store .*: Permission denied"):
        added(tmp_path / "other", one)


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Any) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "listdir", denied)
    with pytest.raises(CiError, match=f"cannot read {store}: Permission denied"):
        Store(store).known()


def test_an_interrupted_add_ends_as_interrupted_and_has_changed_nothing(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = relations(store)

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupted)
        more = reports(tmp_path / "more", 4, python="3.12")[3:]
        assert main(["results", "add", f"--store={store}", *map(str, more)]) == 130
    assert relations(store) == before
    assert not [file for file in store.rglob("*") if layout.is_part(file.name)]
