# SPDX-License-Identifier: BSD-3-Clause
"""`surface diff`, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from declarations import class_, cpp, snapshot, virtual

from torch_backend_ci import cli
from torch_backend_ci.errors import Exit
from torch_backend_ci.surface import snapshot_file
from torch_backend_ci.surface.model import Domain, Snapshot
from torch_backend_ci.surface.report import json as json_report
from torch_backend_ci.surface.report import rules

ROOT = Path(__file__).resolve().parents[3]
A = "c10::Allocator"


def saved(folder: Path, name: str, taken: Snapshot) -> str:
    path = folder / name
    snapshot_file.write(taken, path)
    return str(path)


@pytest.fixture
def old(tmp_path: Path) -> str:
    return saved(tmp_path, "old.json", snapshot(class_(A), virtual(f"{A}::f", "int", pure=True)))


@pytest.fixture
def new(tmp_path: Path) -> str:
    f = virtual(f"{A}::f", "long", pure=True)
    after = snapshot(class_(A), f, cpp("macro", "M", body="1"))
    return saved(tmp_path, "new.json.gz", after)


def run(*words: str) -> int:
    return cli.main(["surface", "diff", *words])


def test_two_snapshots_are_compared_and_the_status_is_0(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(old, new) == Exit.OK
    shown = capsys.readouterr().out
    assert f"compile break: {A}::f [virtual_signature_changed]" in shown
    assert "\033" not in shown
    assert "macro_added" not in shown


def test_cosmetic_findings_are_shown_with_all(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(old, new, "--all")
    assert "macro_added" in capsys.readouterr().out


@pytest.mark.parametrize("format_", ["text", "json", "markdown", "sarif"])
def test_a_report_goes_into_a_file(
    format_: str, old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report"
    assert run(old, new, "--format", format_, "-o", str(file)) == Exit.OK
    assert capsys.readouterr().out == ""
    assert f"{A}::f" in file.read_text()


def test_json_has_the_users_of_what_changed(old: str, new: str, tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    run(old, new, "--format", "json", "-o", str(file))
    (finding,) = json_report.read(file).findings
    assert "torch_npu" in finding.used_by


@pytest.mark.parametrize(
    ("severity", "status"),
    {"compile_break": Exit.FINDINGS, "cosmetic": Exit.FINDINGS}.items(),
)
def test_findings_that_are_to_be_refused_give_status_1(
    severity: str, status: int, old: str, new: str
) -> None:
    assert run(old, new, "--fail-on", severity) == status
    assert run(old, old, "--fail-on", severity) == Exit.OK
    assert run(old, new, "--fail-on", "never") == Exit.OK


def test_only_what_is_worse_is_refused(new: str, tmp_path: Path) -> None:
    less = snapshot(class_(A), virtual(f"{A}::f", "long", pure=True))
    before = saved(tmp_path, "less.json", less)
    assert run(before, new, "--fail-on", "deprecated") == Exit.OK
    assert run(before, new, "--fail-on", "cosmetic") == Exit.FINDINGS


def test_one_surface_can_be_asked_for(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(old, new, "--surface", "guard", "--fail-on", "cosmetic") == Exit.OK
    assert "no finding" in capsys.readouterr().out
    assert run(old, new, "--surface", "guards") == Exit.UNUSABLE
    assert "no such surface: guards; there are: allocator" in capsys.readouterr().err


def test_what_only_one_side_looked_at_is_said(
    old: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = saved(tmp_path, "few.json", snapshot(domains=(Domain.CPP,)))
    assert run(old, few) == Exit.OK
    assert "Not compared" in capsys.readouterr().out


def test_a_snapshot_of_another_version_of_the_format_is_refused(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text(Path(old).read_text().replace('"schema": 1', '"schema": 99'))
    report = tmp_path / "report"
    assert run(str(other), new, "-o", str(report)) == Exit.UNUSABLE
    assert "take the snapshot again" in capsys.readouterr().err
    assert not report.exists()


def test_what_is_neither_a_snapshot_nor_a_torch_is_refused(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(old, "nowhere") == Exit.UNUSABLE
    assert "nowhere" in capsys.readouterr().err


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    told = capsys.readouterr().out
    for word in ("examples:", "severities, worst first:", "silent_break", "--fail-on"):
        assert word in told


def test_the_rules_can_be_listed_and_the_document_has_them_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run("--rules")
    listed = capsys.readouterr().out
    assert listed == rules.render()
    document = (ROOT / "docs/surface/diff.md").read_text()
    mark = "<!-- torch-backend-ci surface diff --rules -->\n"
    assert document.partition(mark)[2] == listed, f"write anew what follows {mark}"
