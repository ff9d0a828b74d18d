# SPDX-License-Identifier: BSD-3-Clause
"""What people do on GitHub, and the workflows that follow from it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from github_fake import GitHubFake
from github_fake.git_objects import Entry, difference
from github_fake.world import Files, Pull, Repository
from workflow_runner.events import Event
from workflow_runner.expressions import Expressions
from workflow_runner.results import WorkflowRun
from workflow_runner.runs import Runner

from stage.hub import FakeHub
from stage.machine import ROOT, prepare
from stage.mirror import content, listed

Runs = dict[str, WorkflowRun]  # by the name of the workflow
#: Texts of files of this repository, each to be there, and what replaces them.
Changes = Mapping[str, Sequence[tuple[str, str]]]


@dataclass
class Stage:
    """This repository on the fake, and machines that play its workflows."""

    fake: GitHubFake
    hub: FakeHub
    runner: Runner
    left_out: Collection[str] = ()  # workflows, by name, that are not played
    all_runs: list[WorkflowRun] = field(default_factory=list)

    @property
    def repository(self) -> Repository:
        return self.fake.repository

    @property
    def main(self) -> str:
        return self.repository.refs[f"refs/heads/{self.repository.default_branch}"]

    # ---- what happens ----------------------------------------------------------------------

    def pushes(self, files: Files, message: str = "Change") -> Runs:
        """Somebody pushes to main."""
        self.fake.person("maintainer").pushes(files, message=message)
        return self.pushed()

    def pushed(self, ref: str = "") -> Runs:
        """The branch or tag (default: main) has just been moved, from its first parent."""
        ref = ref or f"refs/heads/{self.repository.default_branch}"
        after = self.repository.refs[ref]
        said = self.fake.payload("push", ref=ref, after=after)
        before = said["before"]
        changed = self._changed(before, after) if before in self._commits else ()
        return self._happens(Event("push", said, self._name, after, ref, changed=changed))

    def pull_request(self, number: int, action: str) -> Runs:
        """opened, synchronize, closed ...: for the merge with main, and for main itself."""
        pull = self.repository.issue(number).pull
        assert pull is not None
        said = self.fake.payload("pull_request", action, number=number)
        about: dict[str, Any] = {
            "head_ref": pull.head_branch,
            "base_ref": pull.base_branch,
            "changed": self._changed(self._parting(pull), pull.head_sha),
            "actor": self.repository.issue(number).author,
        }
        merge = self._merge(number, pull)
        ref = f"refs/pull/{number}/merge"
        fork = pull.head_repository != self._name
        event = Event("pull_request", said, self._name, merge, ref, from_fork=fork, **about)
        main = f"refs/heads/{pull.base_branch}"
        target = Event("pull_request_target", said, self._name, self.main, main, **about)
        return self._happens(target) | self._happens(event)

    def clock(self, cron: str) -> Runs:
        """It is time."""
        said = {"schedule": cron, "repository": self._rendered}
        return self._happens(self._of_main("schedule", said, schedule=cron))

    def dispatch(self, kind: str, payload: Mapping[str, Any]) -> Runs:
        """Somebody with rights sends a repository_dispatch."""
        said = self.fake.payload("repository_dispatch", kind, client_payload=payload)
        return self._happens(self._of_main("repository_dispatch", said))

    def by_hand(self, path: str, inputs: Mapping[str, Any] | None = None) -> WorkflowRun:
        """Somebody presses the button of a workflow."""
        said = self.fake.payload("workflow_dispatch", inputs=inputs or {})
        event = self._of_main("workflow_dispatch", said, inputs=inputs or {})
        return self.runner.play(path, event)

    # ---- how it is played ------------------------------------------------------------------

    def _happens(self, event: Event, name: str = "") -> Runs:
        """All that the event starts, and what the end of each starts."""
        runs: Runs = {}
        for run in self.runner.happens(event, name, self.left_out):
            runs[run.name] = run
            self.all_runs.append(run)
            if event.name != "workflow_run":
                runs |= self._ended(run)
        return runs

    def _ended(self, run: WorkflowRun) -> Runs:
        found = self.repository.runs[run.number]
        said = self.fake.payload("workflow_run", "completed", run=found)
        return self._happens(self._of_main("workflow_run", said), run.name)

    def _of_main(self, name: str, payload: Mapping[str, Any], **more: Any) -> Event:
        """An event that is about no commit runs what is on main."""
        ref = f"refs/heads/{self.repository.default_branch}"
        return Event(name, payload, self._name, self.main, ref, **more)

    def _merge(self, number: int, pull: Pull) -> str:
        """What GitHub keeps of an open PR: its merge with main as it is now."""
        world = self.fake.world
        tree = world.merged(self.main, pull.head_sha)
        sha = world.commit(tree, [self.main, pull.head_sha], f"Merge {pull.head_sha}")
        self.repository.refs[f"refs/pull/{number}/merge"] = sha
        self.repository.refs[f"refs/pull/{number}/head"] = pull.head_sha
        return sha

    def _parting(self, pull: Pull) -> str:
        return self.fake.world.objects.merge_base(self.main, pull.head_sha) or self.main

    def _changed(self, before: str, after: str) -> tuple[str, ...]:
        objects = self.fake.world.objects
        trees = objects.commits[before].tree, objects.commits[after].tree
        return tuple(change.path for change in difference(objects, *trees))

    @property
    def _commits(self) -> Mapping[str, Any]:
        return self.fake.world.objects.commits

    @property
    def _name(self) -> str:
        return self.repository.full_name

    @property
    def _rendered(self) -> Any:
        return self.fake.payload("push")["repository"]


@contextmanager
def stage(
    expressions: Expressions,
    folder: Path,
    changes: Changes | None = None,
    more: Files | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Stage]:
    """The fake with this repository as it is on disk; `changes`: texts to replace in files.

    At the end, every call that broke GitHub's description of its API fails the test.
    """
    with GitHubFake() as fake:
        _fill(fake, changes or {}, more or {})
        machine = {**prepare(folder / "programs"), **(env or {})}
        hub = FakeHub(fake, folder / "hub", folder / "programs/bin")
        runner = Runner(hub, expressions, folder / "machine", machine)
        yield Stage(fake, hub, runner)
    # Not each after its job: ext4 is slow to create files right after others were deleted.
    shutil.rmtree(runner.folder / "jobs", ignore_errors=True)
    fake.check()


def _fill(fake: GitHubFake, changes: Changes, more: Files) -> None:
    world, objects = fake.world, fake.world.objects
    texts = {path: (ROOT / path).read_text() for path in changes}
    for path, replacements in changes.items():
        for old, new in replacements:
            assert old in texts[path], f"{path} has no {old!r}"
            texts[path] = texts[path].replace(old, new)
    entries = {
        path: Entry(mode, objects.add_blob(content(ROOT, mode, path)))
        for mode, path in listed(ROOT)
    }
    tree = world.tree(entries, {**texts, **more})
    first = world.commit(tree, [], "Begin")
    fake.repository.refs = {"refs/heads/main": first}
    fake.person("maintainer").pushes({"NEWS": "It begins.\n"})
