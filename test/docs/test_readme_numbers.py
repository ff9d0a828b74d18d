# SPDX-License-Identifier: BSD-3-Clause
"""README's numbers about the tests are those of the documents that the nightly targets write."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_counts_as_many_liars_as_the_list_that_make_liars_writes() -> None:
    liars = (ROOT / "docs" / "liars.md").read_text(encoding="utf-8")
    counted = re.search(r"\*\*(\d+) liars: (\d+) killed, (\d+) of them as intended", liars)
    said = re.search(r"runs it on all\s+([\d,]+) of them", README)
    assert counted and said
    assert set(counted.groups()) == {said[1].replace(",", "")}


def test_every_claim_of_the_night_is_a_target_of_make() -> None:
    text = (ROOT / ".github" / "workflows" / "claims.yml").read_text(encoding="utf-8")
    claims = yaml.safe_load(text)["jobs"]["claim"]["strategy"]["matrix"]["claim"]
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(claims) <= set(targets)
    named = set(re.findall(r"`make ([a-z-]+)`", README))
    assert {"liars", "subjects"} <= named & set(claims)
