# SPDX-License-Identifier: BSD-3-Clause
"""A PR, from its opening to what people downstream learn of it.

The suite runs for real on puone, in shards, and the surface check reads the installed torch. The PR
makes a virtual function of c10::Allocator pure, takes a default away from a function of
torch.accelerator, and breaks how the reference backend counts its memory.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from github_fake.world import CheckRun, Comment
from stage.acts import Runs, Stage, stage
from stage.machine import ROOT
from workflow_runner.expressions import Expressions

from lives.selection import ONE_LANE, SUITE

HEADER = "c10/core/Allocator.h"
PYTHON = "torch/accelerator/memory.py"
BACKEND = "reference_backend/torch_puone/memory.py"
LABELS = "ci/src/torch_backend_ci/label/labels.yaml"
PLAYS = {"pr", "pr-report", "label", "feed", "lint", "set-up"}


@dataclass
class Moment:
    """What people see of the PR after each of its events."""

    runs: Runs
    labels: list[str]
    comments: list[Comment]
    checks: list[CheckRun]

    @property
    def gate(self) -> str:
        return self.runs["pr"].leg("gate").log


@dataclass
class Life:
    """The PR at each moment, and what remains."""

    begun: Runs  # main, before the PR
    opened: Moment
    fixed: Moment
    merged: Moment
    number: int
    head: str
    stage: Stage

    def file(self, branch: str, path: str) -> bytes | None:
        return self.stage.fake.world.file(self.stage.repository, branch, path)


def play(expressions: Expressions, folder: Path) -> Life:
    """All of it; lint is only read aloud (`make -n`)."""
    before = {HEADER: _installed("include/c10/core/Allocator.h"), PYTHON: _installed(PYTHON[6:])}
    with stage(expressions, folder, ONE_LANE, before, SUITE) as scene:
        scene.runner.dry = {"lint"}
        begun = scene.pushes({LABELS: (ROOT / LABELS).read_text() + "\n# looked at\n"})
        scene.left_out = {"lint"}
        number = scene.fake.open_pull(
            {HEADER: _pure(before[HEADER]), PYTHON: _required(before[PYTHON]), BACKEND: _broken()}
        ).number
        opened = _moment(scene, number, scene.pull_request(number, "opened"))
        fix = {HEADER: before[HEADER], BACKEND: (ROOT / BACKEND).read_text()}
        head = scene.fake.person("contributor").pushes_to_pull(number, fix)
        fixed = _moment(scene, number, scene.pull_request(number, "synchronize"))
        scene.fake.person("maintainer").merges(number)
        scene.left_out = {"pr", "lint"}  # main is judged as it was when the PR was not there
        merged = _moment(scene, number, scene.pushed())
        return Life(begun, opened, fixed, merged, number, head, scene)


def _moment(scene: Stage, number: int, runs: Runs) -> Moment:
    """A copy: what is seen later is another thing."""
    repository = scene.fake.checkpoint().repository(scene.repository.full_name)
    issue = repository.issue(number)
    return Moment(runs, issue.labels, issue.comments, repository.checks)


def _installed(path: str) -> str:
    torch = importlib.util.find_spec("torch")
    assert torch and torch.origin
    return (Path(torch.origin).parent / path).read_text()


def _pure(header: str) -> str:
    start = header.index("virtual DeleterFnPtr raw_deleter() const {")
    end = header.index("}", start) + 1
    return f"{header[:start]}virtual DeleterFnPtr raw_deleter() const = 0;{header[end:]}"


def _required(module: str) -> str:
    declared = "def memory_reserved(device_index: _device_t = None, /)"
    assert declared in module
    return module.replace(declared, "def memory_reserved(device_index: _device_t, /)")


def _broken() -> str:
    module = (ROOT / BACKEND).read_text()
    counted = '"reserved_bytes.all.current"'
    assert counted in module
    return module.replace(counted, '"allocated_bytes.all.current"')
