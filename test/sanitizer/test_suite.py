# SPDX-License-Identifier: BSD-3-Clause
"""The suite under the sanitizer: the races that checks make on purpose are found, and no others."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from suites import run_pytest

RACES = yaml.safe_load((Path(__file__).parent / "races_of_the_suite.yaml").read_text())


def reported(*checks: str) -> set[str]:
    """The checks of these that the sanitizer ended, and all other failures."""
    done = run_pytest(
        ["conformance", "--backend=puone", *(f"--check={check}" for check in checks)],
        {"PUONE_DRIVER": "sim", "PUONE_SANITIZE": "raise"},
    )
    assert " passed in " in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR|FLAKY) \S+::puone::(\S+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("chapter", ["copy", "event", "graph", "memory"])
def test_nothing_is_found_in_the_chapter(chapter: str) -> None:
    assert reported(f"{chapter}/*") == set()


def test_of_the_chapter_of_streams_only_races_on_purpose_are_found() -> None:
    found = reported("stream/*")
    expected = [race["check"] for race in RACES]
    unexpected = {id for id in found if not any(fnmatchcase(id, each) for each in expected)}
    assert unexpected == set()
    for each in expected:
        assert any(fnmatchcase(id, each) for id in found), f"{each} is not found any more"


def test_nothing_is_found_in_the_models() -> None:
    assert reported("model/*") == set()
