# SPDX-License-Identifier: BSD-3-Clause
"""What is reported to the relay about a job: that it has started, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci import document
from torch_backend_ci.document import Natural, Part, Time, one_of, stamp
from torch_backend_ci.errors import CiError
from torch_backend_ci.relay.dispatch import Dispatch
from torch_backend_ci.relay.results import Results

STATUSES = IN_PROGRESS, COMPLETED = ("in_progress", "completed")
SUCCESS, FAILURE, CANCELLED, TIMED_OUT = ("success", "failure", "cancelled", "timed_out")
#: For how long the relay waits for the end of a job. It then ends it itself, as timed out.
PATIENCE = timedelta(hours=6)
# What a workflow knows of a job; a skipped one has no result, which is not a success.
SAID = (SUCCESS, FAILURE, CANCELLED, TIMED_OUT, "skipped")

# The relay makes keys of names with ":" and "/" between them, and takes one apart at the last ":",
# where a number is an attempt and no name.
_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9 ._,()+=-]{0,99}", re.ASCII)
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Number = Annotated[str, Meta(pattern="^[1-9][0-9]*$", max_length=20)]
_Url = Annotated[str, Meta(pattern="^https?://[!-~]+$", max_length=2000)]


class TestResults(Part, frozen=True):
    """The checks of a job, counted."""

    passed: Natural
    failed: Natural
    skipped: Natural
    total: Natural


class _Job(Part, kw_only=True, frozen=True):
    """What the relay knows a job by."""

    schema_version: Literal["1"]
    name: _Name
    url: _Url
    run_id: _Number
    run_attempt: _Number
    job_name: _Name
    check_run_id: Annotated[str, Meta(pattern="^[0-9-]+$", max_length=40)]


class InProgress(_Job, kw_only=True, tag_field="status", tag="in_progress", frozen=True):
    """A job that has begun."""

    conclusion: None
    started_at: Time
    completed_at: None


class Completed(_Job, kw_only=True, tag_field="status", tag="completed", frozen=True):
    """A job that has ended."""

    conclusion: Annotated[str, one_of(SUCCESS, FAILURE, CANCELLED, TIMED_OUT)]
    started_at: Annotated[
        Time | None,
        Meta(description="Of a run that is reported once; else the beginning said it."),
    ]
    completed_at: Time
    test_results: TestResults | UnsetType = UNSET
    artifact_url: _Url | UnsetType = UNSET


class Callback(Part, frozen=True):
    """The message for the relay: the dispatch as received, and the result of the job."""

    event_type: Literal["pull_request", "push", "nightly", "periodic"]
    delivery_id: Annotated[str, Meta(min_length=1, max_length=64)]
    payload: dict[str, Any]
    workflow: InProgress | Completed


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
        _check_name(name, "--job-name")
        _check_name(workflow, "the name of the workflow")
        return cls(workflow, url, run_id, attempt, name, check_run_id or f"{run_id}-{attempt}")


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise CiError(
            f"{what} is {name[:100]!r}, which the relay cannot take apart: up to 100 letters, "
            "digits, blanks and ._,()+=- of ASCII, at least one letter, a letter or digit first"
        )


@dataclass(frozen=True)
class Ending:
    """How the job ended."""

    conclusion: str
    started: datetime
    """When the job began."""
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


def begun(dispatch: Dispatch, job: Job, started: datetime) -> dict[str, Any]:
    """The callback that says that a job has begun. CiError if the relay would refuse it."""
    workflow = InProgress(
        **_known(job), conclusion=None, started_at=stamp(started), completed_at=None
    )
    return _body(dispatch, workflow)


def ended(dispatch: Dispatch, job: Job, now: datetime, ending: Ending) -> dict[str, Any]:
    """The callback that says how a job has ended. CiError if the relay would refuse it."""
    workflow = Completed(
        **_known(job),
        conclusion=ending.conclusion,
        started_at=stamp(ending.started) if dispatch.is_told_once else None,
        completed_at=stamp(now),
        test_results=_counted(ending.results) if ending.results else UNSET,
        artifact_url=ending.artifact_url or UNSET,
    )
    return _body(dispatch, workflow)


def _body(dispatch: Dispatch, workflow: InProgress | Completed) -> dict[str, Any]:
    body = document.plain(Callback(**dispatch.envelope, workflow=workflow))
    document.convert(body, Callback, "the callback would be malformed")
    return dict(body)


def _known(job: Job) -> dict[str, Any]:
    return {
        "schema_version": "1",
        "name": job.workflow,
        "url": job.url,
        "run_id": job.run_id,
        "run_attempt": job.run_attempt,
        "job_name": job.name,
        "check_run_id": job.check_run_id,
    }


def _counted(found: Results) -> TestResults:
    total = found.passed + found.failed + found.skipped
    return TestResults(found.passed, found.failed, found.skipped, total)
