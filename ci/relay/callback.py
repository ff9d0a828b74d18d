# SPDX-License-Identifier: BSD-3-Clause
"""What is reported to the relay about a job: that it has started, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from ci.errors import CiError
from ci.relay import schema
from ci.relay.dispatch import Dispatch
from ci.relay.results import Results

STATUSES = IN_PROGRESS, COMPLETED = ("in_progress", "completed")
SUCCESS, FAILURE, CANCELLED, TIMED_OUT = ("success", "failure", "cancelled", "timed_out")
# What a workflow knows of a job; a skipped one has no result, which is not a success.
SAID = (SUCCESS, FAILURE, CANCELLED, TIMED_OUT, "skipped")


@dataclass(frozen=True)
class Job:
    """The job that reports, by what GitHub and the relay know it by.

    The relay keeps one state for each run, attempt and name: the legs of a matrix need names of
    their own.
    """

    workflow: str
    url: str
    run_id: str
    run_attempt: str
    name: str
    check_run_id: str

    @classmethod
    def of(cls, environment: Mapping[str, str], name: str | None, check_run_id: str | None) -> Job:
        """This one, by the variables that GitHub sets for each job."""
        try:
            run_id, attempt = environment["GITHUB_RUN_ID"], environment["GITHUB_RUN_ATTEMPT"]
            server, repository = environment["GITHUB_SERVER_URL"], environment["GITHUB_REPOSITORY"]
            workflow, key = environment["GITHUB_WORKFLOW"], environment["GITHUB_JOB"]
        except KeyError as missing:
            raise CiError(f"{missing.args[0]} is not set: is this a job of a workflow?") from None
        url = f"{server}/{repository}/actions/runs/{run_id}"
        name = name or key
        if not name.isprintable():
            raise CiError(f"--job-name has characters that cannot be shown: {name!r}")
        return cls(workflow, url, run_id, attempt, name, check_run_id or f"{run_id}-{attempt}")


@dataclass(frozen=True)
class Ending:
    """How the job ended."""

    conclusion: str
    results: Results | None = None
    artifact_url: str | None = None


def conclusion(said: str | None, results: Results | None) -> str:
    """The worse of what the job says and what its reports say; without reports it is a failure."""
    if said in (CANCELLED, TIMED_OUT):
        return said
    return SUCCESS if said in (None, SUCCESS) and results and results.green else FAILURE


def artifact_url(text: str) -> str:
    """An address that others can follow and that carries no password."""
    parts = urlsplit(text) if re.fullmatch(r"https://[!-~]{1,1990}", text) else None
    if parts is None or not parts.hostname or "@" in parts.netloc:
        raise CiError("--artifact-url must be an https address without a password in it")
    return text


def body(dispatch: Dispatch, job: Job, now: datetime, ending: Ending | None) -> dict[str, Any]:
    """The callback; without an ending, that it has begun. CiError if the relay would refuse it."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    workflow: dict[str, Any] = {
        "schema_version": "1",
        "status": COMPLETED if ending else IN_PROGRESS,
        "conclusion": ending.conclusion if ending else None,
        "name": job.workflow,
        "url": job.url,
        "run_id": job.run_id,
        "run_attempt": job.run_attempt,
        "job_name": job.name,
        "check_run_id": job.check_run_id,
        "started_at": None if ending else stamp,
        "completed_at": stamp if ending else None,
    }
    if ending and ending.results:
        workflow["test_results"] = ending.results.to_json()
    if ending and ending.artifact_url:
        workflow["artifact_url"] = ending.artifact_url
    made = dispatch.envelope | {"workflow": workflow}
    problem = schema.problem("callback", made)
    if problem:
        raise CiError(f"the callback would be malformed: {problem}")
    return made
