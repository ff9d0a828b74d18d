# SPDX-License-Identifier: BSD-3-Clause
"""The findings that were judged by hand: the true ones are still found, the false ones not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from diff_sample import SIZE, draw, findings

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "docs" / "surface" / "examples" / "diff-sample.yaml"


@pytest.fixture(scope="module")
def judged() -> list[dict[str, Any]]:
    return list(yaml.load(SAMPLE.read_text(), yaml.CSafeLoader)["findings"])


def test_what_was_judged_true_is_found_and_what_was_judged_false_is_not(
    judged: list[dict[str, Any]],
) -> None:
    found = {(d.step, d.finding.rule, d.finding.name, d.finding.severity.value) for d in findings()}
    for one in judged:
        key = (one["step"], one["rule"], one["name"], one["severity"])
        assert (key in found) == (one["verdict"] != "false"), key


def test_the_documents_have_the_counts_of_the_sample(judged: list[dict[str, Any]]) -> None:
    counts = Counter(one["verdict"] for one in judged)
    assert len(judged) == SIZE and all(one["reason"] for one in judged)
    text = " ".join((ROOT / "docs" / "surface" / "diff.md").read_text().split())
    said = (
        f"{counts['true']} are true, {counts['too_high']} too severe, {counts['false']} were false"
    )
    assert said in text


def test_a_seed_draws_the_same_findings_of_many_rules_and_surfaces() -> None:
    every = findings()
    sample = draw(every, 1)
    assert sample == draw(every[::-1], 1) != draw(every, 2)
    assert len({drawn.finding.surface for drawn in sample}) > 15
    assert len({drawn.finding.rule for drawn in sample}) > 35
