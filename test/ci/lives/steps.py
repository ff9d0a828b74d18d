# SPDX-License-Identifier: BSD-3-Clause
"""The steps of our workflows and actions, and which of them a life has not played."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import yaml
from stage.acts import Stage
from stage.machine import ROOT
from workflow_runner.record import steps

_ALL = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")]
# By their names: that of an action is its directory's.
FILES = {file.parent.name if file.stem == "action" else file.stem: file for file in sorted(_ALL)}


def left(names: Collection[str], stage: Stage) -> set[str]:
    """Those of these workflows and actions that were not played."""
    played = stage.runner.record.played
    return {
        f"{place.file}: {place.job}: {step.get('run') or step.get('uses')}"
        for name in names
        for place, step in steps(_path(FILES[name]), yaml.safe_load(FILES[name].read_text()))
        if place not in played
    }


def _path(file: Path) -> str:
    return str(file.relative_to(ROOT))
