# SPDX-License-Identifier: BSD-3-Clause
"""What the run of a pull request left behind, as far as it can be believed.

The author of the PR controls what is in the artifact. What is here was valid, and was made for
the run's head commit: it can be wrong about how the PR behaves, and about nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from github.Repository import Repository
from github.WorkflowRun import WorkflowRun

from torch_backend_ci.errors import CiError
from torch_backend_ci.gate import verdict
from torch_backend_ci.gate.verdict import Verdict
from torch_backend_ci.github import artifact
from torch_backend_ci.surface.report import Report
from torch_backend_ci.surface.report import json as findings_json
from torch_conformance.spec import strict

ARTIFACT = "verdict"
VERDICT, FINDINGS = "verdict.json", "findings.json"
_LIMITS = artifact.Limits(packed=16 << 20, unpacked=32 << 20, entries=50)
_MOST_FINDINGS = 20_000


class Unbelievable(Exception):
    """Nothing that the run left is used; the text says why."""


@dataclass(frozen=True)
class Evidence:
    """What the run found."""

    verdict: Verdict
    findings: Report | None  # None: the surface was not examined


def gather(repo: Repository, run: WorkflowRun, surfaces: Collection[str]) -> Evidence:
    """The evidence of a run; Unbelievable if there is none. `surfaces` are those there are."""
    try:
        files = artifact.fetch(repo, run, ARTIFACT, {VERDICT, FINDINGS}.__contains__, _LIMITS)
    except artifact.Unusable as error:
        raise Unbelievable(str(error)) from None
    if VERDICT not in files:
        raise Unbelievable(f"the artifact has no {VERDICT}")
    try:
        judged = verdict.parse(files[VERDICT], VERDICT)
        found = _findings(files[FINDINGS], surfaces) if FINDINGS in files else None
    except CiError as error:
        raise Unbelievable(str(error)) from None
    if judged.head_sha != run.head_sha:
        raise Unbelievable(f"the verdict is of commit {judged.head_sha}, the run of {run.head_sha}")
    return Evidence(judged, found)


def _findings(data: bytes, surfaces: Collection[str]) -> Report:
    try:
        report = findings_json.decode(data, FINDINGS)
    except strict.Malformed as error:
        raise CiError(f"{FINDINGS}: {error}") from None
    if len(report.findings) > _MOST_FINDINGS:
        raise CiError(f"{FINDINGS}: more than {_MOST_FINDINGS} findings")
    if unknown := {finding.surface for finding in report.findings} - set(surfaces):
        raise CiError(f"{FINDINGS}: there is no surface {min(unknown)!r}")
    return report
