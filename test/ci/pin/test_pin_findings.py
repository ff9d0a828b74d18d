# SPDX-License-Identifier: BSD-3-Clause
"""What the pins that a change moves bring along."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from torch_backend_ci import cli
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.errors import Exit
from torch_backend_ci.pin import file
from torch_backend_ci.pin.verbs.findings import joined
from torch_backend_ci.surface.report import json as report_json


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with the pins of this one, all committed."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / file.IN_REPOSITORY, root / file.IN_REPOSITORY)
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=pins")
    return root


def move(root: Path, name: str, to: str) -> None:
    """The pin gets the torch of another one."""
    moved = replace(file.read(name, root), torch=file.read(to, root).torch)
    (root / file.place(name)).write_bytes(file.render(moved))


def run(root: Path, *words: str, since: str = "HEAD") -> int:
    return cli.main(["pin", "findings", "--root", str(root), "--since", since, *words])


def test_where_no_pin_has_moved_nothing_is_written(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "findings.json"
    kept.write_text("as it was")
    assert run(root, "-o", str(kept)) == Exit.OK
    assert kept.read_text() == "as it was"


def test_a_moved_pin_brings_what_differs_between_its_torches(root: Path, tmp_path: Path) -> None:
    move(root, "development", to="newest")
    written = tmp_path / "findings.json"
    assert run(root, "-o", str(written)) == Exit.OK
    report = report_json.read(written)
    versions = [file.read(name).torch for name in ("development", "newest")]
    assert [report.before.version, report.after.version] == [v and v.version for v in versions]
    assert any(finding.severity.value == "compile_break" for finding in report.findings)


def test_another_reason_for_the_same_torch_is_no_move(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pin = replace(file.read("newest", root), reason="another")
    (root / file.place("newest")).write_bytes(file.render(pin))
    assert run(root) == Exit.OK
    assert capsys.readouterr().out == ""


def test_a_new_pin_has_no_torch_before_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    added = replace(file.read("newest", root), name="added")
    (root / file.place("added")).write_bytes(file.render(added))
    assert run(root) == Exit.OK
    assert capsys.readouterr().out == ""


def test_findings_of_several_pins_are_there_once(root: Path, tmp_path: Path) -> None:
    written = [tmp_path / "one.json", tmp_path / "two.json"]
    move(root, "development", to="newest")
    run(root, "-o", str(written[0]))
    one = report_json.read(written[0])
    assert joined([one, one]) == one


def test_a_commit_that_is_not_there_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, since="nothing") == Exit.UNUSABLE
    assert "git knows no nothing" in capsys.readouterr().err
