# SPDX-License-Identifier: BSD-3-Clause
"""Each step of each workflow and action is played by one of the lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from stage.machine import ROOT
from workflow_runner.record import Place, Record, steps

LIVES = ("pull_request", "night", "pins", "vendor", "relay", "release")
FILES = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")])


def all_steps() -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for file in FILES:
        content = yaml.safe_load(file.read_text())
        yield from steps(str(file.relative_to(ROOT)), content)


def test_every_step_is_played(record: Record, request: pytest.FixtureRequest) -> None:
    for life in LIVES:
        request.getfixturevalue(life)
    left = {
        f"{place.file}: {place.job}: {step.get('run') or step.get('uses')}"
        for place, step in all_steps()
        if place not in record.played
    }
    assert left == set()


def test_there_are_workflows_with_steps() -> None:
    assert len(FILES) > 10
    assert len(list(all_steps())) > 80
