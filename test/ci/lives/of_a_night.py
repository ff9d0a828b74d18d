# SPDX-License-Identifier: BSD-3-Clause
"""Two nights: the first finds a nightly torch and no results, the second compares with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pin_index import PinIndex
from stage.acts import Runs, Stage, stage
from wheel_server import Behaviour, serving
from workflow_runner.expressions import Expressions

from lives.selection import SUITE

PLAYS = {"nightly"}
CRON = "23 4 * * *"
NIGHTLY = "2.16.0.dev20260101+cpu"
BROKEN = ('"reserved_bytes.all.current"', '"allocated_bytes.all.current"')

# Two of four pins, the nightly among them, each in one piece: the others would do the same.
LESS = {
    ".github/workflows/nightly.yml": (
        "pin: [development, oldest, newest, nightly]\n        driver: [sim]\n"
        "        shard: [1, 2, 3, 4]\n        of: [4]\n",
        "pin: [oldest, nightly]\n        driver: [sim]\n        shard: [1]\n        of: [1]\n",
    ),
    "ci/gate/nightly.yaml": (
        "  development-sim: {required: true}\n  oldest-sim: {required: true}\n"
        "  newest-sim: {required: true}\n",
        "  oldest-sim: {required: true}\n",
    ),
}


@dataclass
class Life:
    """Both nights, and what is kept of them."""

    first: Runs
    second: Runs
    stage: Stage

    @property
    def kept(self) -> set[str]:
        """The files on the branch of results."""
        objects, refs = self.stage.fake.world.objects, self.stage.repository.refs
        return set(objects.files(objects.commits[refs["refs/heads/results"]].tree))


def play(expressions: Expressions, folder: Path) -> Life:
    """Between the nights somebody breaks the reference backend."""
    (folder / "index").mkdir()
    with serving(Behaviour(folder / "index")) as index:
        PinIndex(index.behaviour).add(NIGHTLY)
        env = {**SUITE, "PIN_INDEX_NIGHTLY_CPU": index.index(), "PIP_RETRIES": "0"}
        with stage(expressions, folder, LESS, env=env) as scene:
            first = scene.clock(CRON)
            backend = "reference_backend/memory.py"
            module = scene.fake.world.file(scene.repository, "main", backend) or b""
            broken = module.decode().replace(*BROKEN)
            scene.fake.person("maintainer").pushes({backend: broken})
            return Life(first, scene.clock(CRON), scene)
