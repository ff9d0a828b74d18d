# SPDX-License-Identifier: BSD-3-Clause
"""Three weeks of the pins: a release comes out, nothing happens, another release comes out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import small_torch
from github_fake.world import Issue
from pin_index import PinIndex, pin
from stage.acts import Runs, Stage, stage
from wheel_server import Behaviour, serving
from workflow_runner.expressions import Expressions

from torch_backend_ci.pin import file
from torch_backend_ci.pin.model import Source

PLAYS = {"update-pins"}
CRON = "41 5 * * 1"
NAME = "pins[bot]"
BRANCH = "refs/heads/pin/newest"
NIGHTLY = "2.16.0.dev20260101+cpu"
THERE = (
    ("oldest", "2.11.0", Source.PEOPLE),
    ("development", "2.13.0", Source.PEOPLE),
    ("newest", "2.15.0", Source.RELEASE),
)


@dataclass
class Week:
    """What came of it."""

    runs: Runs
    newest: list[Issue]  # the PRs that move this pin
    nightly: list[Issue]
    pin: str  # newest, as proposed
    tip: str  # of the branch


@dataclass
class Life:
    """Week by week."""

    stage: Stage
    weeks: list[Week] = field(default_factory=list)


def play(expressions: Expressions, folder: Path) -> Life:
    """The index has small torches, which nothing may take for the real ones of that version."""
    (folder / "index").mkdir()
    with serving(Behaviour(folder / "index")) as running:
        index = PinIndex(running.behaviour)
        addresses = dict.fromkeys(
            ("PIP_INDEX_URL", "PIN_INDEX_PYPI", "PIN_INDEX_NIGHTLY_CPU"), running.index()
        )
        env = {**addresses, "PIP_RETRIES": "0", "XDG_CACHE_HOME": str(folder / "cache")}
        with stage(expressions, folder, more=_pins(index), env=env) as scene:
            _built_from(scene, small_torch.COMMIT)
            rights = {"contents": "write", "pull_requests": "write"}
            scene.hub.kept_secrets = {"PINS_TOKEN": scene.fake.new_token(rights, actor=NAME)}
            life = Life(scene)
            for release in ("2.16.0", None, "2.17.0"):
                if release:
                    index.add(release)
                life.weeks.append(_week(scene))
            return life


def _pins(index: PinIndex) -> dict[str, bytes]:
    """Ours, of the torches on this index."""
    index.add(NIGHTLY)
    pins = [pin(index.add(version), name, source) for name, version, source in THERE]
    return {file.place(one.name): file.render(one) for one in pins}


def _built_from(scene: Stage, sha: str) -> None:
    """PyTorch has the commit that the small torches say they were built from."""
    world = scene.fake.world
    upstream = world.add_repository("pytorch/pytorch")
    commits = world.objects.commits
    commits[sha] = replace(commits[upstream.refs["refs/heads/main"]], sha=sha)


def _week(scene: Stage) -> Week:
    runs = scene.clock(CRON)
    world = scene.fake.checkpoint()
    repository = world.repository(scene.repository.full_name)
    pulls = {
        name: [issue for issue, pull in repository.pulls() if pull.head_branch == f"pin/{name}"]
        for name in ("newest", "nightly")
    }
    proposed = world.file(repository, "pin/newest", "ci/pins/newest.yaml") or b""
    return Week(runs, **pulls, pin=proposed.decode(), tip=repository.refs[BRANCH])
