# SPDX-License-Identifier: BSD-3-Clause
"""Workflow runs, their artifacts, and starting more of them."""

from __future__ import annotations

from typing import Any

from github_fake.handling import Call, Listing, Reply, handles
from github_fake.repositories import commit_of
from github_fake.world import Artifact, Refusal, Run

READ = "actions=read"


def _run(call: Call) -> Run:
    runs = call.repository.runs
    if call.number("run_id") not in runs:
        raise Refusal(404, "Not Found")
    return runs[call.number("run_id")]


@handles("actions/get-workflow-run", READ)
def _get(call: Call) -> Any:
    return call.render.run(call.repository, _run(call))


def _runs(call: Call, workflow: str = "") -> Listing:
    repository, query = call.repository, call.query
    wanted = {"branch": "head_branch", "head_sha": "head_sha", "event": "event", "actor": "actor"}
    found = [
        run
        for run in sorted(repository.runs.values(), key=lambda run: -run.id)
        if all(getattr(run, wanted[k]) == query[k] for k in wanted.keys() & query.keys())
        and query.get("status", run.status) in (run.status, run.conclusion)
        and (not workflow or run.path.rpartition("/")[2] == workflow)
    ]
    return Listing(found, lambda run: call.render.run(repository, run), "workflow_runs")


@handles("actions/list-workflow-runs-for-repo", READ)
def _all_runs(call: Call) -> Listing:
    return _runs(call)


@handles("actions/list-workflow-runs", READ)
def _runs_of_workflow(call: Call) -> Listing:
    return _runs(call, call.path["workflow_id"])


@handles("actions/get-workflow", READ)
def _workflow(call: Call) -> Any:
    name = call.path["workflow_id"]
    path = f".github/workflows/{name}"
    if call.world.file(call.repository, call.repository.default_branch, path) is None:
        raise Refusal(404, "Not Found")
    return call.render.workflow(call.repository, name, path)


def _artifacts(call: Call, found: list[Artifact]) -> Listing:
    name = call.query.get("name")
    found = [a for a in reversed(found) if name in (None, a.name)]  # newest first
    render, repository = call.render, call.repository
    return Listing(found, lambda artifact: render.artifact(repository, artifact), "artifacts")


@handles("actions/list-workflow-run-artifacts", READ)
def _artifacts_of_run(call: Call) -> Listing:
    run = _run(call)
    every = call.repository.artifacts.values()
    return _artifacts(call, [a for a in every if a.run_id == run.id])


@handles("actions/list-artifacts-for-repo", READ)
def _all_artifacts(call: Call) -> Listing:
    return _artifacts(call, list(call.repository.artifacts.values()))


def _artifact(call: Call) -> Artifact:
    artifacts = call.repository.artifacts
    if call.number("artifact_id") not in artifacts:
        raise Refusal(404, "Not Found")
    return artifacts[call.number("artifact_id")]


@handles("actions/get-artifact", READ)
def _get_artifact(call: Call) -> Any:
    return call.render.artifact(call.repository, _artifact(call))


@handles("actions/download-artifact", READ)
def _download(call: Call) -> Reply:
    artifact = _artifact(call)
    if artifact.expired:
        raise Refusal(410, "Artifact has expired")
    where = f"{call.storage_url}/artifacts/{artifact.id}?sig=s3cret"
    return Reply(302, None, {"location": where})


@handles("actions/create-workflow-dispatch", "actions=write")
def _dispatch(call: Call) -> Reply:
    commit_of(call, call.body["ref"])
    given = (call.path["workflow_id"], call.body["ref"], call.body.get("inputs", {}))
    call.repository.workflow_dispatches.append(given)
    return Reply(204)
