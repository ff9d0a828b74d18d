# SPDX-License-Identifier: BSD-3-Clause
"""`results list`: the runs of a store, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dashboard_sample
import pytest
from storing import added

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.results.schema import RUNS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("list")
    added(folder / "store", dashboard_sample.write(folder / "reports", dashboard_sample.sample()))
    return folder / "store"


@pytest.fixture
def listed(store: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> str:
        assert main(["results", "list", f"--store={store}", *words]) == Exit.OK
        return capsys.readouterr().out

    return run


def test_a_line_for_each_run_the_newest_first(listed: Any) -> None:
    lines = listed().splitlines()
    assert lines[0].split() == [
        "started",
        "(UTC)",
        "backend",
        "torch",
        "level",
        "checks",
        "bad",
        "run",
    ]
    assert len(lines) == 1 + len(dashboard_sample.sample())
    assert lines[1:] == sorted(lines[1:], key=lambda line: line[:16], reverse=True)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--backend=puone-sim"], 12),
        (["--backend=puone"], 0),
        (["--backend=cpu", "--backend=puone-sim"], 24),
        (["--torch=2.13"], 11),
        (["--torch=2.13.0", "--torch=nightly"], 22),
        (["--since=2026-11-20"], 9),
        (["--since=2027-01-01"], 0),
        (["--aligned", "--torch=2.13", "--backend=hostile"], 2),
        (["--backend=cpu", "--torch=2.12", "--since=2026-11-19"], 2),
    ],
)
def test_only_what_is_wanted_is_listed(listed: Any, words: list[str], expected: int) -> None:
    assert len(listed(*words).splitlines()) == 1 + expected
    assert len(json.loads(listed("--json", *words))["runs"]) == expected


def test_why_a_run_has_no_level_is_said(listed: Any) -> None:
    lines = listed("--backend=hostile", "--since=2026-11-20").splitlines()[1:]
    assert [line.partition("not assessed: ")[2] for line in lines] == [
        "the run is incomplete; without results",
        "the run is incomplete",
        "",
    ]


def test_programs_get_all_columns(listed: Any, tmp_path: Path) -> None:
    listed("--json", "-o", str(tmp_path / "runs.json"), "--backend=puone-sim", "--torch=2.13")
    document = json.loads((tmp_path / "runs.json").read_text())
    assert document["schema"] == "urn:torch-conformance:runs:1"
    run = document["runs"][0]
    assert list(run) == list(RUNS)
    assert run["started"] == "2026-11-20T03:00:00Z"
    assert run["driver"] == {"name": "sim", "version": "1.0"}
    assert run["options"]["dtypes"] == ["standard"]


def test_a_date_that_is_none_is_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["results", "list", f"--store={store}", "--since=yesterday"])
    assert "'yesterday' is not a date such as 2026-11-22" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["add", "list", "compact"])
def test_help_teaches_by_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["results", verb, "--help"])
    said = capsys.readouterr().out
    assert f"torch-backend-ci results {verb} --store" in said and "Exit status" in said
