# SPDX-License-Identifier: BSD-3-Clause
"""A release is tagged; once a week the card gets its turn, every night the mutants do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stage.acts import Runs, Stage, stage
from workflow_runner.expressions import Expressions

PLAYS = {"release", "gpu", "claims", "mutants"}
CARD = "7 6 * * 6"
MUTANTS = "41 1 * * *"
CLAIMS = "11 2 * * *"


@dataclass
class Life:
    """What each of them started."""

    release: Runs
    card: Runs
    mutants: Runs
    claims: Runs
    stage: Stage


def play(expressions: Expressions, folder: Path) -> Life:
    """A tag is pushed; Saturday comes; a night comes, whose `make` is only read (`make -n`)."""
    with stage(expressions, folder) as scene:
        scene.hub.issuer = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://issuer.invalid/?v=1"}
        scene.repository.refs["refs/tags/v0.1.0"] = scene.main
        scene.runner.dry = {"mutants", "claims"}
        tagged, card = scene.pushed("refs/tags/v0.1.0"), scene.clock(CARD)
        return Life(tagged, card, scene.clock(MUTANTS), scene.clock(CLAIMS), scene)
