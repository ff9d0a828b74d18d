# SPDX-License-Identifier: BSD-3-Clause
"""Check runs and their annotations."""

from __future__ import annotations

from typing import Any

from github_fake.handling import Call, Listing, Reply, handles
from github_fake.repositories import commit_of
from github_fake.world import CheckRun, Refusal, invalid


@handles("checks/create", "checks=write")
def _create(call: Call) -> Reply:
    sha = call.body["head_sha"]
    if sha not in call.world.objects.commits:
        raise Refusal(422, f"No commit found for SHA: {sha}")
    check = CheckRun(call.world.id(), call.body["name"], sha, started_at=call.world.tick())
    _apply(call, check)
    call.repository.checks.append(check)
    return Reply(201, call.render.check_run(call.repository, check))


@handles("checks/update", "checks=write")
def _update(call: Call) -> Any:
    check = _check(call)
    _apply(call, check)
    return call.render.check_run(call.repository, check)


def _apply(call: Call, check: CheckRun) -> None:
    body = call.body
    conclusion = body.get("conclusion")
    if body.get("status") == "completed" and not conclusion:
        raise invalid("CheckRun", "conclusion", "missing_field")
    if conclusion == "stale":
        raise invalid("CheckRun", "conclusion", "invalid")
    check.name = body.get("name", check.name)
    check.external_id = body.get("external_id", check.external_id)
    check.details_url = body.get("details_url", check.details_url)
    check.status = "completed" if conclusion else body.get("status", check.status)
    if conclusion:
        check.conclusion = conclusion
        check.completed_at = body.get("completed_at") or call.world.tick()
    elif check.status != "completed":
        check.conclusion = check.completed_at = None
    if "output" in body:
        parts = ("title", "summary", "text")
        check.output |= {k: v for k, v in body["output"].items() if k in parts}
        for annotation in body["output"].get("annotations", ()):
            _check_annotation(annotation)
            check.annotations.append(annotation)


def _check_annotation(annotation: dict[str, Any]) -> None:
    if annotation["end_line"] < annotation["start_line"] or annotation["start_line"] < 1:
        raise invalid("CheckAnnotation", "end_line", "invalid")
    columns = {"start_column", "end_column"} & annotation.keys()
    if columns and annotation["end_line"] != annotation["start_line"]:
        raise invalid("CheckAnnotation", "start_column", "invalid")
    if len(annotation.get("title") or "") > 255:
        raise invalid("CheckAnnotation", "title", "custom", "title is too long")
    for name in ("message", "raw_details"):
        if len((annotation.get(name) or "").encode()) > 64 << 10:
            raise invalid("CheckAnnotation", name, "custom", f"{name} exceeds 64 KB")


def _check(call: Call) -> CheckRun:
    number = call.number("check_run_id")
    for check in call.repository.checks:
        if check.id == number:
            return check
    raise Refusal(404, "Not Found")


@handles("checks/get", "checks=read")
def _get(call: Call) -> Any:
    return call.render.check_run(call.repository, _check(call))


@handles("checks/list-annotations", "checks=read")
def _annotations(call: Call) -> Listing:
    return Listing(_check(call).annotations, call.render.annotation)


@handles("checks/list-for-ref", "checks=read")
def _list(call: Call) -> Listing:
    sha = commit_of(call, call.path["ref"])
    found = [check for check in call.repository.checks if check.head_sha == sha]
    if "check_name" in call.query:
        found = [check for check in found if check.name == call.query["check_name"]]
    if "status" in call.query:
        found = [check for check in found if check.status == call.query["status"]]
    if call.query.get("filter", "latest") == "latest":
        found = list({(check.name, check.app): check for check in found}.values())
    found = sorted(found, key=lambda check: -check.id)
    render = call.render
    return Listing(found, lambda check: render.check_run(call.repository, check), "check_runs")
