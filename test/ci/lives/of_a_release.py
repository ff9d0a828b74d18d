# SPDX-License-Identifier: BSD-3-Clause
"""What else happens: a label is defined, a release is tagged, the turn of the card comes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stage.acts import Runs, Stage, stage
from stage.machine import ROOT
from workflow_runner.expressions import Expressions
from workflow_runner.record import Record

CARD = "7 6 * * 6"
LABELS = "labels/labels.yml"


@dataclass
class Life:
    """What each of them started."""

    labels: Runs
    release: Runs
    card: Runs
    stage: Stage


def play(expressions: Expressions, record: Record, folder: Path) -> Life:
    """Of a push to main, only what follows from labels."""
    with stage(expressions, record, folder) as scene:
        scene.hub.issuer = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://issuer.invalid/?v=1"}
        scene.left_out = {"pr", "lint", "feed"}
        labels = scene.pushes({LABELS: (ROOT / LABELS).read_text() + "\n# looked at\n"})
        scene.repository.refs["refs/tags/v0.1.0"] = scene.main
        return Life(labels, scene.pushed("refs/tags/v0.1.0"), scene.clock(CARD), scene)
