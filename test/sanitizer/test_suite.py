# SPDX-License-Identifier: BSD-3-Clause
"""The suite under the sanitizer: what checks do on purpose is found, and nothing else."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from suites import run_pytest

pytestmark = pytest.mark.nightly

ON_PURPOSE = yaml.load(
    (Path(__file__).parent / "found_in_the_suite.yaml").read_text(), yaml.CSafeLoader
)
# The others take minutes: PUONE_SANITIZE=raise pytest conformance --backend=puone
CHAPTERS = ["copy", "error", "event", "factory", "graph", "memory", "model", "stream"]


def reported(chapter: str) -> set[str]:
    """The checks that the sanitizer ended, and all other failures."""
    done = run_pytest(
        ["conformance", "--backend=puone", f"--check={chapter}/*"],
        {"PUONE_DRIVER": "sim", "PUONE_SANITIZE": "raise"},
    )
    assert " passed in " in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR|FLAKY) \S+::puone::(\S+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_checks_do_on_purpose_is_found_and_nothing_else(chapter: str) -> None:
    found = reported(chapter)
    expected = [each["check"] for each in ON_PURPOSE if each["check"].startswith(f"{chapter}/")]
    assert {id for id in found if not any(fnmatchcase(id, each) for each in expected)} == set()
    for each in expected:
        assert any(fnmatchcase(id, each) for id in found), f"{each} is not found any more"
