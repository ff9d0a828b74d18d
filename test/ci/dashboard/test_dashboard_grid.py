# SPDX-License-Identifier: BSD-3-Clause
"""The grid of the README: what it says of each backend and torch, and that it is up to date."""

from __future__ import annotations

from pathlib import Path

import dashboard_sample
import pytest

from torch_backend_ci.cli import main
from torch_backend_ci.dashboard import grid, runs
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.results.store import Store

ROOT = Path(__file__).parents[3]
README = f"# A project\n\n{grid.BEGIN}\nold\n{grid.END}\n\nMore.\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, and a backend whose only run is incomplete."""
    folder = tmp_path_factory.mktemp("grid")
    night = f"{dashboard_sample.NIGHTS[3]}T09:00:00+00:00"
    never = dashboard_sample.report("never", "2.13.0", night, complete=False)
    files = dashboard_sample.write(
        folder / "reports", {**dashboard_sample.sample(), "never": never}
    )
    assert main(["results", "add", "--store", str(folder / "D"), *map(str, files)]) == Exit.OK
    return folder / "D"


@pytest.fixture
def made(store: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["dashboard", "grid", "--store", str(store)]) == Exit.OK
    return capsys.readouterr().out


def cells(made: str, backend: str) -> list[str]:
    (row,) = (line for line in made.splitlines() if line.startswith(f"| `{backend}` "))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def test_there_is_a_column_for_each_torch_newest_first_and_a_row_for_each_backend(
    made: str,
) -> None:
    header, rule, *rows = [line for line in made.splitlines() if line.startswith("|")]
    assert header == "| backend | nightly | torch 2.13 | torch 2.12 |"
    assert rule == "| --- | --- | --- | --- |"
    names = [row.split("|")[1].strip() for row in rows]
    assert names == ["`hostile`", "`never`", "`puone-sim`", "`cpu`"], "the reference is last"


def test_a_cell_has_the_level_and_the_number_of_unexpected_results(made: str) -> None:
    nightly, _, of_2_12 = cells(made, "puone-sim")
    assert of_2_12 == "**Training**<br>0 unexpected"
    assert nightly == "no level<br>1 unexpected"
    assert cells(made, "cpu") == ["reference<br>0 unexpected"] * 3
    assert "\n- `puone-sim`, nightly: no level, as STREAM-001 is broken\n" in made
    assert f"as of {dashboard_sample.NIGHTS[3]}" in made


def test_an_old_column_has_its_age_and_the_reason_below(made: str) -> None:
    nightly, of_2_13, _ = cells(made, "hostile")
    assert ", 1 day old<br>" in of_2_13
    assert ", 3 days old<br>" in nightly
    assert "\n- `hostile`, torch 2.13: 1 day old: the run is incomplete\n" in made
    assert "\n- `hostile`, nightly: 3 days old: the backend cannot be loaded" in made


def test_a_backend_without_a_whole_run_has_no_counts_but_a_reason(made: str) -> None:
    assert cells(made, "never") == ["not run", "no whole run", "not run"]
    assert "\n- `never`, torch 2.13: the run is incomplete\n" in made


def test_a_reason_is_said_once_for_all_torches_of_a_backend(tmp_path: Path) -> None:
    report = dashboard_sample.report
    reports = {torch: report("cpu", f"{torch}.0", complete=False) for torch in ("2.12", "2.13")}
    files = dashboard_sample.write(tmp_path, reports)
    assert main(["results", "add", "--store", str(tmp_path / "D"), *map(str, files)]) == Exit.OK
    made = grid.render(Store(tmp_path / "D").read(runs.read))
    assert "\n- `cpu`, torch 2.12, torch 2.13: the run is incomplete\n" in made


def test_what_a_report_says_does_not_become_markup(made: str) -> None:
    assert "<script" not in made and "<img" not in made
    assert "\u202e" not in made and "\x1b" not in made
    assert max(map(len, made.splitlines())) < 1000


def test_cells_lead_to_the_site(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = "https://me.github.io/mine/"
    assert main(["dashboard", "grid", "--store", str(store), "--site", site]) == Exit.OK
    address = "https://me.github.io/mine/backend/puone-sim/index.html#torch-2.12"
    assert f"[**Training**](<{address}>)" in capsys.readouterr().out


def test_an_empty_store_gives_no_table() -> None:
    assert grid.render([]) == "No runs yet.\n"


def test_the_grid_takes_the_place_of_the_one_before(made: str, store: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README)
    words = ["dashboard", "grid", "--store", str(store), "--readme", str(readme)]
    assert main(words) == Exit.OK
    assert readme.read_text() == README.replace("old\n", made)
    assert main([*words, "--check"]) == Exit.OK


def test_a_grid_that_is_another_one_is_told_and_left(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README)
    words = ["dashboard", "grid", "--store", str(store), "--readme", str(readme), "--check"]
    assert main(words) == Exit.FINDINGS
    assert "the grid is not that of" in capsys.readouterr().err
    assert readme.read_text() == README


def test_only_a_file_can_be_checked(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "grid", "--store", str(store), "--check"]) == Exit.UNUSABLE
    assert "--check needs --readme" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", grid.BEGIN, grid.END, README * 2], ids=repr)
def test_a_document_without_one_place_for_the_grid_is_refused(text: str) -> None:
    with pytest.raises(CiError, match="needs these two lines once"):
        grid.insert(text, "new\n")


def test_the_readme_of_this_project_has_the_grid_of_the_example_store() -> None:
    said = ["--store", str(ROOT / "docs/dashboard/store"), "--readme", str(ROOT / "README.md")]
    assert main(["dashboard", "grid", *said, "--check"]) == Exit.OK, "run `make grid`"
