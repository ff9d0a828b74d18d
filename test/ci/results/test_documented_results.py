# SPDX-License-Identifier: BSD-3-Clause
"""docs/ci/results.md says what a store really is and does."""

from __future__ import annotations

import re
from pathlib import Path

import dashboard_sample
import pytest
import synthetic
from storing import added, file

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.results import accept, layout, rows
from torch_backend_ci.results.schema import RESULTS, RUNS, Column
from torch_conformance.spec import strict

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs/ci/results.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(found)


@pytest.mark.parametrize(("name", "columns"), [("runs", RUNS), ("results", RESULTS)])
def test_every_column_is_in_the_document(name: str, columns: dict[str, Column]) -> None:
    table = DOCUMENT.partition(f"`{name}` has a row for each")[2].partition("\n\n")[2]
    lines = table.partition("\n\n")[0].splitlines()[2:]
    expected = [f"| `{n}` | `{c.type}` | {c.meaning} |" for n, c in columns.items()]
    assert lines == expected


def test_the_limits_are_those_of_the_code() -> None:
    for text in (
        f"{accept.MAX_CHECKS:,} checks, {accept.MAX_REQUIREMENTS:,} requirements",
        f"{accept.MAX_SURFACES} surfaces, {accept.MAX_NAMED} requirements of",
        f"{accept.MAX_ID} characters of an id, {accept.MAX_HEAD >> 10} KiB",
        f"{strict.MAX_BYTES >> 20} MiB in all",
        f"longer than {rows.MAX_TEXT:,} characters",
        f"the first {accept.NAME} digits",
        f"before {accept.OLDEST.year}",
        f'{{"schema": "{layout.SCHEMA}"}}',
    ):
        assert text in DOCUMENT.replace("\n  ", " ")


def test_what_add_says_is_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    reports = {"cpu": dashboard_sample.report(), "puone": dashboard_sample.report("puone")}
    (_, puone) = dashboard_sample.write(tmp_path / "nightly", reports)
    file(tmp_path / "nightly/shard.json", synthetic.shards(dashboard_sample.report(), 2)[0])
    added(tmp_path / "results", [puone])
    command, _, shown = block("console").partition("\n")
    assert main(command.split()[2:]) == Exit.FINDINGS
    said = capsys.readouterr().err
    # The ids are of other bytes with each version of the suite.
    id = re.compile(r"(?<=run )[0-9a-f]{12}\b")
    assert id.sub("ID", said) == id.sub("ID", shown)


def test_the_store_that_is_here_is_read_as_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    exec(block("python"), {})
    assert "puone" in capsys.readouterr().out
