# SPDX-License-Identifier: BSD-3-Clause
"""What people read of the results is what the files say."""

from __future__ import annotations

from pathlib import Path

from made import MACHINE, SOURCE, a_row

from bench.gpu import page
from bench.gpu.document import SCHEMA_FILE, Results, schema
from bench.gpu.outcome import done, failed
from bench.gpu.result import Result
from torch_backend_ci import document


def a_result(folder: Path) -> Result:
    """One step done, one failed, one measurement that keeps its promise and one that does not."""
    result = Result(folder / "2026-11-20-imaginary-9.json")
    result.start(MACHINE, SOURCE, {"build": "builds", "hal": "tests"}, rehearsal=False)
    result.enter("build", done(targets=["a", "b"]), 12.3)
    result.enter("hal", failed("3 | failed\nmore"), 4.5)
    result.measured(
        [a_row("pointwise"), a_row("issue", puone={**a_row()["puone"], "median_us": 90})]
    )
    result.finish(20.0)
    return result


def test_the_folder_of_results_is_in_step_with_its_files() -> None:
    for file, text in page.pages(page.FOLDER).items():
        assert file.read_text() == text, f"{file}: run python -m bench.gpu.page"


def test_committed_results_are_measurements_that_keep_the_schema() -> None:
    for file in page.FOLDER.glob("*.json"):
        assert document.read(file, Results).rehearsal is False, file


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema(), "run `make schemas`"


def test_without_results_the_table_says_not_yet_measured_and_nothing_else(tmp_path: Path) -> None:
    table = [line for line in page.index({}).splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert [cell.strip() for cell in table[2].strip("|").split("|")] == [
        page.NOT_YET,
        *[""] * (table[0].count("|") - 2),
    ]


def test_a_result_has_a_row_in_the_table_and_a_page(tmp_path: Path) -> None:
    result = a_result(tmp_path)
    document.read(result.file, Results)
    written = page.pages(tmp_path)
    readme = written[tmp_path / "README.md"]
    assert "[2026-11-20-imaginary-9](2026-11-20-imaginary-9.md)" in readme
    assert "| 1 of 2 | 1 of 2 |" in readme and page.NOT_YET not in readme
    assert written[result.file.with_suffix(".md")] == result.file.with_suffix(".md").read_text()


def test_a_page_says_what_failed_and_what_was_missed(tmp_path: Path) -> None:
    text = a_result(tmp_path).file.with_suffix(".md").read_text()
    assert "failed: 3 \\| failed |" in text  # its first line, with a bar that spoils no table
    assert "| 0.900 | at least 0.95 | **no** |" in text
    assert "| 1.000 | at most 1.1 | yes |" in text
    assert "2.11.0+cu130" in text and "Imaginary 9" in text and "1" * 40 in text


def test_a_run_that_was_cut_short_is_marked(tmp_path: Path) -> None:
    result = a_result(tmp_path)
    result.value["complete"] = False
    result.write()
    assert "cut short" in page.pages(tmp_path)[tmp_path / "README.md"]
    assert "cut short" in result.file.with_suffix(".md").read_text()


def test_what_every_measurement_lacks_is_said_once(tmp_path: Path) -> None:
    result = a_result(tmp_path)
    lacking = a_row(cuda=None, problems={"cuda": "not run: no torch.cuda here"})
    broken = {**lacking, "problems": {**lacking["problems"], "puone": "WrongResult: 1 of 2"}}
    result.measured([lacking, broken])
    text = result.file.with_suffix(".md").read_text()
    assert text.count("no torch.cuda here") == 1 and text.count("WrongResult") == 1
