# SPDX-License-Identifier: BSD-3-Clause
"""The committed coupling report and the judged sample are what the audit of that torch gives."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from coupling_sample import AT_LEAST, SIZE, draw
from trees import installed_tree

from torch_backend_ci.surface.coupling.audit import Audit, audit
from torch_backend_ci.surface.coupling.report import as_markdown, make
from torch_backend_ci.surface.coupling.rules import Hit, load

DOCS = Path(__file__).parents[3] / "docs/surface"
BUILD = "2.13.0+cpu"  # what the examples were made of


@pytest.fixture(scope="module")
def installed() -> Audit:
    if (version := importlib.metadata.version("torch")) != BUILD:
        pytest.skip(f"the examples are of torch {BUILD}, not {version}")
    return audit(installed_tree().root, load())


@pytest.fixture(scope="module")
def sample() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(
        (DOCS / "examples/coupling-sample.yaml").read_text(encoding="utf-8")
    )
    return loaded


def hit(entry: dict[str, Any]) -> Hit:
    return Hit(entry["rule"], entry["file"], entry["line"], entry["symbol"], entry.get("scope", ""))


@pytest.mark.nightly
def test_the_committed_report_and_sample_are_of_this_audit(
    installed: Audit, sample: dict[str, Any]
) -> None:
    report = as_markdown(make(load(), installed), limit=20)
    assert (DOCS / "examples/coupling-2.13.0.md").read_text(encoding="utf-8") == report
    assert [hit(entry) for entry in sample["hits"]] == draw(installed.hits, sample["seed"])
    assert installed.problems == ()


def test_the_precision_in_the_documentation_is_that_of_the_sample(sample: dict[str, Any]) -> None:
    coupled = sum(entry["coupled"] for entry in sample["hits"])
    assert len(sample["hits"]) == SIZE
    assert coupled >= 95
    text = " ".join((DOCS / "coupling.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"Of (\d+) hits in torch 2.13.0, .* at least (\d+) of each rule .* (\d+) are", text
    )
    assert said is not None
    assert [int(number) for number in said.groups()] == [SIZE, AT_LEAST, coupled]


def test_every_judgement_has_a_reason(sample: dict[str, Any]) -> None:
    assert [entry for entry in sample["hits"] if not entry["reason"].strip()] == []
    assert {entry["coupled"] for entry in sample["hits"]} <= {True, False}
