# SPDX-License-Identifier: BSD-3-Clause
"""A release is tagged, and once a week it is the turn of the machine with a card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stage.acts import Runs, Stage, stage
from workflow_runner.expressions import Expressions

PLAYS = {"release", "gpu"}
CARD = "7 6 * * 6"


@dataclass
class Life:
    """What each of them started."""

    release: Runs
    card: Runs
    stage: Stage


def play(expressions: Expressions, folder: Path) -> Life:
    """A tag is pushed; Saturday comes."""
    with stage(expressions, folder) as scene:
        scene.hub.issuer = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://issuer.invalid/?v=1"}
        scene.repository.refs["refs/tags/v0.1.0"] = scene.main
        return Life(scene.pushed("refs/tags/v0.1.0"), scene.clock(CARD), scene)
