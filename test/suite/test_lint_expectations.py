# SPDX-License-Identifier: BSD-3-Clause
"""The linter objects to what a reviewer would object to, and to nothing else."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from torch_conformance.cli import main
from torch_conformance.expectations.file import read
from torch_conformance.expectations.lint import findings

TODAY = datetime.date(2026, 6, 1)
IDS = ["copy/cast:a", "copy/cast:b", "view/slice"]
GOOD = {
    "id": "copy/cast:a",
    "reason": "the chip rounds to even only",
    "link": "https://example.org/issues/1",
    "status": "fail",
    "expires": "2027-01-31",
}


def objections(tmp_path: Path, *entries: dict[str, str]) -> list[str]:
    """What the linter says of these xfail entries, without file and line."""
    lines = ["xfail:"]
    for entry in entries:
        lines += [f"{'-' if i == 0 else ' '} {k}: {v}" for i, (k, v) in enumerate(entry.items())]
    file = tmp_path / "known.yaml"
    file.write_text("\n".join(lines))
    content = read(file)
    assert content.problems == []
    return [line.partition(": ")[2] for line in findings(content.entries, IDS, TODAY)]


def test_a_good_entry_is_left_in_peace(tmp_path: Path) -> None:
    assert objections(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reason": "broken"}, "explains nothing"),
        ({"reason": "TODO find out why"}, "explains nothing"),
        ({"reason": "'unreviewed: fail: wrong'", "link": "unreviewed"}, "not reviewed"),
        ({"link": "ask Alex"}, "is no address"),
        ({"expires": "2026-05-31"}, "expired on 2026-05-31"),
        ({"expires": "2099-01-01"}, "at most 400 days"),
        ({"id": "copy/gone"}, "matches no check"),
        ({"id": "copy/*"}, "more than one topic"),
    ],
)
def test_the_objection_names_the_fault(tmp_path: Path, change: dict[str, str], words: str) -> None:
    (objection,) = objections(tmp_path, {**GOOD, **change})
    assert words in objection


def test_an_entry_is_objected_to_once_and_each_of_its_ids_alone(tmp_path: Path) -> None:
    several = {**GOOD, "id": "[copy/cast:a, copy/gone, view/slice]", "reason": "broken"}
    assert [words[-16:] for words in objections(tmp_path, several)] == [
        "explains nothing",
        "matches no check",
    ]


def test_an_entry_that_never_decides_is_named(tmp_path: Path) -> None:
    wide = {**GOOD, "id": "copy/cast:*"}
    assert objections(tmp_path, GOOD, wide) == []
    (objection,) = objections(tmp_path, wide, GOOD)
    assert "entries before it decide every check" in objection


def test_the_verb_lists_all_objections_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "known.yaml"
    file.write_text("skip: []\nflaky:\n- {id: copy/gone, reason: r}\n- {id: 'a*b'}\n")
    assert main(["lint", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{file}:")[:2] for line in lines] == ["1:", "3:", "4:", "4:"]


def test_a_file_that_is_not_there_ends_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", str(tmp_path / "gone.yaml")]) == 4
    assert "gone.yaml: no such file" in capsys.readouterr().err
