# SPDX-License-Identifier: BSD-3-Clause
"""`results compact`: fewer files with the same in them; old results go if that is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from storing import added, compacted, fates, relations, reports

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.results import layout
from torch_backend_ci.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Of five segments in two months."""
    made = tmp_path / "store"
    for one in reports(tmp_path / "reports", 5):
        added(made, [one])
    return made


def folders(store: Path) -> list[str]:
    return [segment.folder.name for segment in layout.segments(store)]


def stored(store: Path) -> list[int]:
    with Store(store).reading() as database:
        rows = database.execute("SELECT stored FROM runs ORDER BY started").fetchall()
    return [count for (count,) in rows]


def test_the_segments_of_a_month_become_one_with_the_same_in_it(store: Path) -> None:
    before = relations(store)
    told = [(merge.month, len(merge.old), merge.runs) for merge in compacted(store)]
    assert told == [("2026-10", 2, 2), ("2026-11", 3, 3)]
    assert folders(store) == ["2026-10", "2026-11"]
    assert relations(store) == before
    assert compacted(store) == []


def test_a_month_of_one_segment_is_left_alone(tmp_path: Path) -> None:
    added(tmp_path / "store", reports(tmp_path / "reports", 1))
    assert compacted(tmp_path / "store") == []
    assert folders(tmp_path / "store") == ["2026-10-30"]


def test_the_rows_are_sorted_by_check(store: Path) -> None:
    compacted(store)
    with Store(store).reading() as database:
        rows = database.execute("SELECT check_id, run FROM results").fetchall()
    assert rows == sorted(rows[:48]) + sorted(rows[48:])


def test_what_comes_later_is_merged_the_next_time(tmp_path: Path, store: Path) -> None:
    compacted(store)
    added(store, reports(tmp_path / "more", 4, python="3.12"))
    before = relations(store)
    assert len(compacted(store)) == 2
    assert folders(store) == ["2026-10", "2026-11"]
    assert relations(store) == before


def test_a_run_in_several_segments_becomes_one(tmp_path: Path, store: Path) -> None:
    added(tmp_path / "other", [tmp_path / "reports"])
    for file in (tmp_path / "other").rglob("*.parquet"):
        to = store / file.relative_to(tmp_path / "other")
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(file.read_bytes())
    before = relations(store)
    assert len(before[0]) == 5
    compacted(store)
    assert relations(store) == before
    assert folders(store) == ["2026-10", "2026-11"]


def test_old_results_go_and_their_runs_stay(tmp_path: Path, store: Path) -> None:
    before = relations(store)
    told = [(merge.month, merge.dropped) for merge in compacted(store, keep_days=1)]
    assert told == [("2026-10", 48), ("2026-11", 24)]
    assert stored(store) == [0, 0, 0, 24, 24]
    runs, results = relations(store)
    assert [run[:-1] for run in runs] == [run[:-1] for run in before[0]]
    assert len(results) == 48 and set(map(repr, results)) < set(map(repr, before[1]))
    assert not layout.segments(store)[0].results.exists()
    assert compacted(store, keep_days=1) == []


def test_results_that_went_do_not_come_back(tmp_path: Path, store: Path) -> None:
    compacted(store, keep_days=1)
    assert fates(added(store, [tmp_path / "reports"])) == ["already there"] * 5
    added(tmp_path / "other", [tmp_path / "reports"])
    for file in (tmp_path / "other").rglob("*.parquet"):
        to = store / file.relative_to(tmp_path / "other")
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(file.read_bytes())
    assert stored(store) == [0, 0, 0, 24, 24]
    compacted(store)
    assert stored(store) == [0, 0, 0, 24, 24]


def test_an_empty_store_has_nothing_to_compact(tmp_path: Path) -> None:
    layout.create(tmp_path / "store")
    assert compacted(tmp_path / "store") == compacted(tmp_path / "store", keep_days=36_500) == []


def test_a_dry_run_says_the_same_and_does_nothing(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(store.rglob("*"))
    words = ["results", "compact", f"--store={store}", "--keep-results=1"]
    assert main([*words, "--dry-run"]) == Exit.OK
    assert sorted(store.rglob("*")) == before
    would = capsys.readouterr().err
    assert "2026-10: 2 runs, 2 segments would be replaced, 48 results would be dropped" in would
    assert main(words) == Exit.OK
    assert capsys.readouterr().err == would.replace("would be ", "")
    assert main(words) == Exit.OK
    assert capsys.readouterr().err == "there is nothing to do\n"


@pytest.mark.parametrize("days", ["0", "-1", "x", "1e3", "99999999999999999999", "36501"])
def test_a_retention_that_is_no_number_of_days_is_refused(
    store: Path, days: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["results", "compact", f"--store={store}", f"--keep-results={days}"])
    assert "is not a number of days from 1 to 36500" in capsys.readouterr().err
