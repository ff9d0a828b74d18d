# SPDX-License-Identifier: BSD-3-Clause
"""What the token of a job may do."""

from __future__ import annotations

from collections.abc import Mapping

from workflow_runner.mistakes import Mistake

Permissions = Mapping[str, str]

SCOPES = (
    *("actions", "attestations", "checks", "contents", "deployments", "discussions", "id-token"),
    *("issues", "packages", "pages", "pull-requests", "repository-projects", "security-events"),
    *("statuses",),
)
_LEVELS = {"none": 0, "read": 1, "write": 2}


def resolve(
    workflow: str | Permissions | None,
    job: str | Permissions | None,
    caller: Permissions | None = None,
) -> Permissions:
    """Those of a job: its own, else its workflow's, else those of the job that calls it.

    What a repository's settings give to a workflow that says nothing is not known here, so one has
    to say it. A called workflow that asks for more than its caller has is not started by GitHub.
    """
    said = workflow if job is None else job
    if said is None:
        if caller is None:
            raise Mistake("neither the workflow nor the job says its permissions")
        return caller
    asked = _spelled(said)
    for scope, level in asked.items():
        if caller is not None and _LEVELS[level] > _LEVELS[caller.get(scope, "none")]:
            raise Mistake(f"a called job asks for {scope}: {level}, which its caller does not have")
    return asked


def of_a_fork(permissions: Permissions) -> Permissions:
    """What is left to a PR from a fork: nothing is written, and nobody is impersonated."""
    return {scope: "read" for scope in permissions if scope not in ("id-token", "attestations")}


def _spelled(said: str | Permissions) -> dict[str, str]:
    if isinstance(said, str):
        if said not in ("read-all", "write-all"):
            raise Mistake(f"permissions: {said}")
        return dict.fromkeys(SCOPES, said.removesuffix("-all"))
    return {scope: level for scope, level in said.items() if level != "none"}
