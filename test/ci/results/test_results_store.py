# SPDX-License-Identifier: BSD-3-Clause
"""Reading a store: damage is told by file, a compaction underneath is borne, names may be odd."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from storing import added, compacted, fates, relations, reports

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.results import duck, layout
from torch_backend_ci.results.schema import RESULTS, RUNS, Column
from torch_backend_ci.results.store import Store, VanishedError


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Of three segments in two months."""
    made = tmp_path / "store"
    for one in reports(tmp_path / "reports", 3):
        added(made, [one])
    return made


def count(database: duckdb.DuckDBPyConnection) -> int:
    ((number,),) = database.execute("SELECT sum(hash(r) % 7) FROM results AS r").fetchall()
    return int(number)


def problem(store: Path) -> str:
    """What reading it whole says."""
    with pytest.raises(CiError) as caught:
        relations(store)
    return str(caught.value)


# -- what is a store -----------------------------------------------------------------------------


def test_an_empty_store_has_both_relations_and_no_row(tmp_path: Path) -> None:
    layout.create(tmp_path / "store")
    with Store(tmp_path / "store").reading() as database:
        for name, columns in (("runs", RUNS), ("results", RESULTS)):
            found = database.execute(f"DESCRIBE {name}").fetchall()
            assert [row[0] for row in found] == list(columns)
            assert database.execute(f"FROM {name}").fetchall() == []


@pytest.mark.parametrize(("name", "columns"), [("runs", RUNS), ("results", RESULTS)])
def test_the_relations_have_the_columns_and_types_of_the_schema(
    store: Path, name: str, columns: dict[str, Column]
) -> None:
    with Store(store).reading() as database:
        found = database.execute(f"DESCRIBE {name}").fetchall()
    types = {row[0]: re.sub(r'"(\w+)" ', r"\1 ", row[1]) for row in found}
    assert types == {name: column.type for name, column in columns.items()}


MARKS = {
    '{"schema": "urn:torch-conformance:results:2"}': "use a version of the code that knows it",
    '{"schema": "urn:torch-conformance:report:1"}': "is of no store of results",
    '{"schema": 1}': "is of no store of results",
    "{}": "is damaged",
    "[]": "is damaged",
    "": "is damaged",
    "[" * 100_000: "is damaged",
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("verb", [["list"], ["compact"], ["add", "x.json"]])
def test_a_store_that_is_not_known_is_neither_read_nor_written(
    store: Path, mark: str, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (store / layout.MARK).write_text(mark)
    before = sorted(store.rglob("*"))
    assert main(["results", *verb, f"--store={store}"]) == Exit.UNUSABLE
    assert MARKS[mark] in capsys.readouterr().err
    assert sorted(store.rglob("*")) == before


def test_a_store_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"there is no store at .*: `torch-backend-ci results add`"):
        Store(tmp_path / "missing")
    with pytest.raises(CiError, match=r"is not a store of results: it has no store\.json"):
        Store(tmp_path)


@pytest.mark.parametrize("name", ["it's [a] *store?", "{x}", "a;b", "ünï $HOME %s", "-x"])
def test_a_store_may_be_called_anything(tmp_path: Path, name: str) -> None:
    files = reports(tmp_path / "reports [1]", 3)
    assert fates(added(tmp_path / name, files)) == ["added"] * 3
    assert len(compacted(tmp_path / name)) == 1
    assert len(relations(tmp_path / name)[1]) == 3 * 24


def test_other_files_in_a_store_are_not_looked_at(store: Path) -> None:
    before = relations(store)
    night = layout.segments(store)[0].folder
    for path in ("README.md", "2026-13/x", f"{night.name}/x.runs.parquet", "findings/x.json.gz"):
        (store / path).parent.mkdir(exist_ok=True)
        (store / path).write_text("mine")
    assert relations(store) == before
    assert list(Store(store).findings()) == []


# -- damage --------------------------------------------------------------------------------------


def spoil_end(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 10)


def spoil_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[100:2000] = bytes(1900)
    file.write_bytes(data)


def spoil_columns(file: Path) -> None:
    with duck.connected() as database:
        database.execute(f"COPY (SELECT 1 AS a) TO {duck.literal(str(file))} (FORMAT parquet)")


SPOILS: tuple[Callable[[Path], Any], ...] = (
    spoil_end,
    spoil_middle,
    spoil_columns,
    lambda file: file.write_bytes(b""),
)


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("kind", ["runs", "results"])
def test_a_damaged_file_is_named_with_what_to_do(
    store: Path, spoil: Callable[[Path], Any], kind: str
) -> None:
    file = getattr(layout.segments(store)[1], kind)
    spoil(file)
    said = problem(store)
    assert said.startswith(f"{file} is damaged (") and "Put it back from a copy" in said


def test_results_that_are_not_there_are_told_and_following_the_advice_mends_the_store(
    tmp_path: Path, store: Path
) -> None:
    before = relations(store)
    segment = layout.segments(store)[1]
    segment.results.unlink()
    said = problem(store)
    assert said.startswith(f"{segment.results} is damaged (it is not there)")
    assert f"delete it and {segment.runs.name} beside it and add" in said
    segment.runs.unlink()
    assert fates(added(store, [tmp_path / "reports"])) == ["already there"] * 2 + ["added"]
    assert relations(store) == before


def test_a_damaged_store_is_neither_added_to_nor_compacted(tmp_path: Path, store: Path) -> None:
    spoil_middle(layout.segments(store)[0].runs)
    spoil_end(layout.segments(store)[0].runs)
    files = {file: file.read_bytes() for file in store.rglob("*") if file.is_file()}
    with pytest.raises(CiError, match="is damaged"):
        added(store, reports(tmp_path / "more", 4, python="3.12"))
    with pytest.raises(CiError, match="is damaged"):
        compacted(store)
    assert {file: file.read_bytes() for file in store.rglob("*") if file.is_file()} == files


def test_an_error_of_a_query_blames_no_file(store: Path) -> None:
    with pytest.raises(duckdb.BinderException), Store(store).reading() as database:
        database.execute("SELECT nonsense FROM runs")


def test_damaged_findings_are_named(store: Path) -> None:
    file = store / layout.FINDINGS / f"{'0' * 64}.json.gz"
    layout.put(file, lambda part: part.write_bytes(b"x"))
    with pytest.raises(CiError, match=r"0000\.json\.gz is damaged \(cut off"):
        list(Store(store).findings())


# -- a compaction underneath ---------------------------------------------------------------------


def test_a_reader_that_loses_its_files_reads_again(store: Path) -> None:
    expected = Store(store).read(count)
    attempts: list[int] = []

    def work(database: duckdb.DuckDBPyConnection) -> int:
        if not attempts:
            compacted(store)
        attempts.append(1)
        return count(database)

    assert Store(store).read(work) == expected
    assert len(attempts) == 2


def test_a_reader_that_loses_its_files_may_be_told(store: Path) -> None:
    def read() -> None:
        with Store(store).reading() as database:
            compacted(store)
            count(database)

    with pytest.raises(VanishedError, match="as the store was compacted: run it again"):
        read()


def test_a_listing_that_loses_its_files_lists_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Store(store).known()
    original = layout.segments

    def segments(path: Path) -> tuple[layout.Segment, ...]:
        found = original(path)
        monkeypatch.setattr(layout, "segments", original)
        compacted(store)
        return found

    monkeypatch.setattr(layout, "segments", segments)
    assert Store(store).known() == before


def test_a_snapshot_can_be_handed_to_another_process(store: Path) -> None:
    snapshot = pickle.loads(pickle.dumps(Store(store).snapshot()))
    with snapshot.reading() as database:
        assert count(database) == Store(store).read(count)
    assert snapshot.runs == Store(store).known()
