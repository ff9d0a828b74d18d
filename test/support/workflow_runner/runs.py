# SPDX-License-Identifier: BSD-3-Clause
"""A workflow run: jobs in the order of their needs, their legs, reusable workflows."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_runner import cache_mode, calls
from workflow_runner import permissions as rights
from workflow_runner.calls import Called
from workflow_runner.events import Event, starts
from workflow_runner.expressions import Expressions, Scope
from workflow_runner.hub import Hub
from workflow_runner.matrix import Leg, legs
from workflow_runner.mistakes import Mistake
from workflow_runner.permissions import Permissions
from workflow_runner.record import Record
from workflow_runner.results import JobResult, LegResult, WorkflowRun, together
from workflow_runner.sessions import Session, machine
from workflow_runner.sources import Source, workflows
from workflow_runner.steps import Steps, text

AT_ONCE = 2  # legs of one job
_FOREIGN = re.compile(r"^\s*uses:\s*([\w.-]+/[\w.-]+/\.github/workflows/\S+@\S+)", re.MULTILINE)
_UNSUPPORTED = ("container", "services", "snapshot")


@dataclass
class Runner:
    """Plays what happens on the hub."""

    hub: Hub
    expressions: Expressions
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)  # of the machine, over a bare one
    dry: Collection[str] = ()  # names of workflows in which `make` only says what it would do
    record: Record = field(default_factory=Record)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _known: dict[tuple[Source, str], Any] = field(default_factory=dict)
    _workflows: dict[Source, Mapping[str, str]] = field(default_factory=dict)

    def happens(
        self, event: Event, name: str = "", left_out: Collection[str] = ()
    ) -> list[WorkflowRun]:
        """All workflows that the event starts, played but for some, by their names; `name`: of the
        run, of a workflow_run."""
        source = self._source(event.repository, event.sha)
        started = []
        for path in self._files(source):
            content = self._parsed(source, path)
            if content.get("name") not in left_out and starts(content["on"], event, name):
                started.append(self.play(path, event))
        return started

    def play(self, path: str, event: Event) -> WorkflowRun:
        """One workflow, whatever its `on:` says."""
        source = self._source(event.repository, event.sha)
        content = self._parsed(source, path)
        name = content.get("name", path)
        run = WorkflowRun(self.hub.begin(event, path, name), path, name, event)
        playing = _Playing(self, run, source, path, content)
        playing.play()
        self.hub.end(run.number, run.conclusion)
        return run

    def rerun_failed(self, run: WorkflowRun) -> WorkflowRun:
        """The failed jobs again, and those that need them, as another attempt; a run without a
        failed job has nothing to run again."""
        failed = {name for name, job in run.jobs.items() if job.result in ("failure", "cancelled")}
        if not failed:
            raise Mistake(f"run {run.number} has no failed jobs to run again")
        source = self._source(run.event.repository, run.event.sha)
        content = self._parsed(source, run.path)
        again = WorkflowRun(run.number, run.path, run.name, run.event, attempt=run.attempt + 1)
        playing = _Playing(self, again, source, run.path, content)
        kept = {
            name: run.jobs[name]
            for name, job in content["jobs"].items()
            if not failed & {name, *playing._ancestors(job)}
        }
        playing.play(kept)
        self.hub.end(again.number, again.conclusion)
        return again

    def _source(self, repository: str, commit: str) -> Source:
        return Source.at(repository, self.hub.git(repository), commit)

    def _parsed(self, source: Source, path: str) -> Any:
        """The workflow; the calls in it are checked with what they call. A commit never changes."""
        if (source, path) not in self._known:
            files = self._files(source)
            if path not in files:
                raise Mistake(f"there is no workflow {path}")
            called = {uses: self._referenced(uses) for uses in _FOREIGN.findall(files[path])}
            foreign = {uses: other.read(inside) for uses, (other, inside) in called.items()}
            texts = {name: cache_mode.without(t) for name, t in {**files, **foreign}.items()}
            parsed = self.expressions.parse("workflow", path, texts)
            self._known[source, path] = parsed
        return self._known[source, path]

    def _files(self, source: Source) -> Mapping[str, str]:
        """All workflows of the repository."""
        if source not in self._workflows:
            self._workflows[source] = {name: source.read(name) for name in workflows(source)}
        return self._workflows[source]

    def _referenced(self, uses: str) -> tuple[Source, str]:
        """A workflow of another repository, at a commit, branch or tag."""
        path, _, commit = uses.partition("@")
        owner, name, inside = path.split("/", 2)
        return self._source(f"{owner}/{name}", commit), inside

    def _machine(self, workflow: str) -> dict[str, str]:
        dry = {"MAKEFLAGS": "n"} if workflow in self.dry else {}
        return machine(self.folder, {**self.env, **dry})

    def _leg_folder(self) -> Path:
        return self.folder / "jobs" / str(next(self._numbers))


@dataclass
class _Playing:
    """One workflow while it is played: of a run, or called by a job of one."""

    runner: Runner
    run: WorkflowRun
    source: Source
    path: str
    content: Mapping[str, Any]
    called: Called | None = None
    jobs: dict[str, JobResult] = field(default_factory=dict)

    def play(self, kept: Mapping[str, JobResult] | None = None) -> None:
        """All jobs but those of an earlier attempt whose results are kept."""
        group = self._evaluate(self.content.get("concurrency", ""), {}, "concurrency")
        if not self.called:
            self.run.concurrency = group["group"] if isinstance(group, Mapping) else group
            self.jobs = self.run.jobs
        self.jobs.update(kept or {})
        waiting = {n: job for n, job in self.content["jobs"].items() if n not in self.jobs}
        while waiting:
            ready = [n for n, job in waiting.items() if self.jobs.keys() >= set(_needs(job))]
            if not ready:
                raise Mistake(f"{self.path}: jobs that need one another: {', '.join(waiting)}")
            self.jobs[ready[0]] = self._job(ready[0], waiting.pop(ready[0]))

    def outputs(self) -> dict[str, str]:
        """Of a called workflow."""
        declared = (self._call().get("outputs") or {}).items()
        said = {name: output["value"] for name, output in declared}
        jobs = {n: {"result": j.result, "outputs": j.outputs} for n, j in self.jobs.items()}
        return _texts(self._evaluate(said, {"jobs": jobs}, "outputs"))

    def _call(self) -> Mapping[str, Any]:
        on = self.content["on"]
        return (on.get("workflow_call") or {}) if isinstance(on, Mapping) else {}

    # ---- jobs ------------------------------------------------------------------------------

    def _job(self, name: str, job: Mapping[str, Any]) -> JobResult:
        if unsupported := [key for key in _UNSUPPORTED if key in job]:
            raise Mistake(f"{self.path}: {name}: {', '.join(unsupported)} cannot be played here")
        needs = {
            n: {"result": self.jobs[n].result, "outputs": self.jobs[n].outputs} for n in _needs(job)
        }
        where = f"{self.path}: {name}"
        condition = Scope(self._contexts({"needs": needs}), self._status(job), where=where)
        if not self.runner.expressions.condition(job.get("if"), condition):
            return JobResult("skipped")
        strategy = self._evaluate(job.get("strategy", {}), {"needs": needs}, where)
        all_legs = legs(strategy["matrix"]) if "matrix" in strategy else [{}]
        results = self._legs(name, job, needs, all_legs, strategy.get("fail-fast", True))
        outputs: dict[str, str] = {}
        for leg in results:
            outputs |= {key: value for key, value in leg.outputs.items() if value}
        outputs = (
            {**dict.fromkeys(job.get("outputs", {}), ""), **outputs}
            if "uses" not in job
            else outputs
        )
        return JobResult(together([leg.result for leg in results]), outputs, results)

    def _status(self, job: Mapping[str, Any]) -> str:
        """What success() and failure() mean to the job: of all that ran for it."""
        results = {self.jobs[name].result for name in self._ancestors(job)}
        if results <= {"success"}:
            return "success"
        return "failure" if "failure" in results else "neither"

    def _ancestors(self, job: Mapping[str, Any]) -> set[str]:
        direct = set(_needs(job))
        return direct.union(*(self._ancestors(self.content["jobs"][name]) for name in direct))

    def _legs(
        self,
        name: str,
        job: Mapping[str, Any],
        needs: Mapping[str, Any],
        all_legs: list[Leg],
        fail_fast: bool,
    ) -> list[LegResult]:
        failed = False

        def play(index: int, leg: Leg) -> LegResult:
            nonlocal failed
            if failed and fail_fast:
                return LegResult(name, leg, "cancelled")
            strategy = {
                "job-index": index,
                "job-total": len(all_legs),
                "fail-fast": fail_fast,
                "max-parallel": len(all_legs),
            }
            contexts = self._contexts({"needs": needs, "matrix": leg, "strategy": strategy})
            result = self._leg(name, job, contexts)
            failed |= result.result == "failure"
            return result

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(play, range(len(all_legs)), all_legs))

    def _leg(self, name: str, job: Mapping[str, Any], contexts: Mapping[str, Any]) -> LegResult:
        where = f"{self.path}: {name}"
        try:
            rights_ = self._permissions(job)
        except Mistake as mistake:
            raise Mistake(f"{where}: {mistake}") from mistake
        title = str(self._evaluated(job.get("name", name), contexts, where))
        matrix = contexts["matrix"]
        if "uses" in job:
            return self._calling(title, name, job, contexts, rights_)
        session = self._session(name, job, contexts, rights_)
        steps = Steps(
            session,
            self.path,
            name,
            self.source,
            defaults={
                **self.content.get("defaults", {}).get("run", {}),
                **job.get("defaults", {}).get("run", {}),
            },
        )
        steps.play(job["steps"])
        for action in reversed(session.afterwards):
            action()
        after = {**session.contexts, "steps": steps.said}
        said = self._evaluated(job.get("outputs", {}), after, where)
        url = _address(self._evaluated(job.get("environment", {}), after, where))
        result = "success" if job.get("continue-on-error") else steps.status
        return LegResult(title, matrix, result, _texts(said), session.results, url)

    def _permissions(self, job: Mapping[str, Any]) -> Permissions:
        caller = self.called.permissions if self.called else None
        asked = rights.resolve(self.content.get("permissions"), job.get("permissions"), caller)
        return rights.of_a_fork(asked) if self.run.event.is_untrusted else asked

    def _session(
        self,
        name: str,
        job: Mapping[str, Any],
        contexts: Mapping[str, Any],
        permissions: Permissions,
    ) -> Session:
        hub, event = self.runner.hub, self.run.event
        folder = self.runner._leg_folder()
        for sub in ("workspace", "temp"):
            (folder / sub).mkdir(parents=True)
        (folder / "event.json").write_text(json.dumps(event.payload))
        token = hub.token(event.repository, permissions)
        where = f"{self.path}: {name}"
        secrets = {**contexts["secrets"], "GITHUB_TOKEN": token}
        machine = self.runner._machine(self.run.name)
        if permissions.get("id-token") == "write":
            machine |= hub.identity(self._claims(name))
        contexts = {
            **contexts,
            "github": {
                **contexts["github"],
                "token": token,
                "job": name,
                "workspace": str(folder / "workspace"),
                "event_path": str(folder / "event.json"),
            },
            "secrets": secrets,
            "job": self._job_context(),
            "runner": {
                "name": "bench",
                "os": "Linux",
                "arch": "X64",
                "temp": str(folder / "temp"),
                "tool_cache": str(self.runner.folder / "tools"),
                "environment": "github-hosted",
                "debug": "",
            },
        }
        env: dict[str, str] = {}
        for texts in (self.content.get("env", {}), job.get("env", {})):
            env |= _texts(self._evaluated(texts, contexts, where))
        return Session(
            hub,
            self.runner.expressions,
            self.runner.record,
            event,
            self.run.number,
            folder,
            contexts,
            permissions,
            env,
            machine,
            secrets={value for value in secrets.values() if value},
            caches=self._caches(name),
        )

    def _caches(self, job: str) -> cache_mode.Access:
        text = self.runner._files(self.source)[self.path]
        access = cache_mode.of(text, job, self.run.event.name)
        return access.within(self.called.caches if self.called else None)

    def _job_context(self) -> dict[str, Any]:
        """The workflow's file is that of the called one; all of `github` is the caller's."""
        return {
            "status": "success",
            "check_run_id": self.run.number * 1000 + self.run.attempt * 100 + len(self.jobs),
            "workflow_repository": self.source.repository,
            "workflow_sha": self.source.sha,
            "workflow_file_path": self.path,
            "workflow_ref": f"{self.source.repository}/{self.path}@{self.source.sha}",
        }

    def _claims(self, job: str) -> dict[str, str]:
        event = self.run.event
        return {
            "repository": event.repository,
            "ref": event.ref,
            "sha": event.sha,
            "event_name": event.name,
            "run_id": str(self.run.number),
            "workflow": self.run.name,
            "job_workflow_ref": f"{self.source.repository}/{self.path}@{event.ref}",
            "job": job,
        }

    # ---- reusable workflows ----------------------------------------------------------------

    def _calling(
        self,
        title: str,
        name: str,
        job: Mapping[str, Any],
        contexts: Mapping[str, Any],
        permissions: Permissions,
    ) -> LegResult:
        where = f"{self.path}: {name}"
        uses = job["uses"]
        here = uses.startswith(("./", "$/"))
        source, path = (self.source, uses[2:]) if here else self.runner._referenced(uses)
        content = self.runner._parsed(source, path)
        given = self._evaluated(job.get("with", {}), contexts, where)
        secrets = job.get("secrets", {})
        passed = (
            contexts["secrets"]
            if secrets == "inherit"
            else _texts(self._evaluated(secrets, contexts, where))
        )
        inner = _Playing(self.runner, self.run, source, path, content)
        about = inner._call()
        declared = inner._evaluate(about.get("inputs") or {}, {}, where)
        where = f"{where}: {path}"
        inner.called = Called(
            calls.inputs(declared, given, where),
            calls.secrets(about.get("secrets") or {}, passed, where, secrets == "inherit"),
            permissions,
            self._caches(name),
        )
        inner.play()
        self.run.jobs |= {f"{name} / {called}": job for called, job in inner.jobs.items()}
        result = together([job.result for job in inner.jobs.values()])
        return LegResult(title, contexts["matrix"], result, inner.outputs())

    # ---- contexts --------------------------------------------------------------------------

    def _contexts(self, more: Mapping[str, Any]) -> dict[str, Any]:
        event, hub = self.run.event, self.runner.hub
        inputs = self.called.inputs if self.called else event.inputs
        secrets = self.called.secrets if self.called else hub.secrets(event.repository)
        return {
            "github": self._github(),
            "vars": dict(hub.variables(event.repository)),
            "secrets": {} if event.is_untrusted else dict(secrets),
            "inputs": dict(inputs),
            "matrix": {},
            "strategy": {},
            "needs": {},
            **more,
        }

    def _github(self) -> dict[str, Any]:
        event, hub, run = self.run.event, self.runner.hub, self.run
        kind, _, short = event.ref.removeprefix("refs/").partition("/")
        short = short if kind in ("heads", "tags") else event.ref.removeprefix("refs/pull/")
        return {
            "actor": event.actor,
            "triggering_actor": event.actor,
            "api_url": hub.api_url,
            "base_ref": event.base_ref,
            "event": event.payload,
            "event_name": event.name,
            "head_ref": event.head_ref,
            "ref": event.ref,
            "ref_name": short,
            "ref_type": "tag" if kind == "tags" else "branch",
            "repository": event.repository,
            "repository_owner": event.repository.partition("/")[0],
            "run_attempt": str(run.attempt),
            "run_id": str(run.number),
            "run_number": "1",
            "server_url": hub.server_url,
            "sha": event.sha,
            "workflow": run.name,
            "workflow_ref": f"{event.repository}/{run.path}@{event.ref}",
            "workflow_sha": event.sha,
        }

    def _evaluate(self, value: Any, more: Mapping[str, Any], where: str) -> Any:
        return self._evaluated(value, self._contexts(more), where)

    def _evaluated(self, value: Any, contexts: Mapping[str, Any], where: str) -> Any:
        workspace = contexts["github"].get("workspace", ".")
        scope = Scope(contexts, workspace=Path(workspace), where=where)
        return self.runner.expressions.evaluate(value, scope)


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _address(environment: str | Mapping[str, str]) -> str:
    """Where people find what was deployed; of an environment without one, nowhere."""
    return "" if isinstance(environment, str) else environment.get("url", "")


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: text(value) for name, value in values.items()}
