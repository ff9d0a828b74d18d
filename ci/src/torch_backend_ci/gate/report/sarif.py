# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as SARIF 2.1.0, for code scanning: a result for each check that is not well.

The rule of a result is the requirement that the check is about, with the document that it follows
from; of a check without one it is what happened to it.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torch_backend_ci.gate.report.words import TITLES, about, causes, change, first_line
from torch_backend_ci.gate.verdict import Check, Class, Means, Outcome, Verdict
from torch_backend_ci.github.markdown import visible
from torch_backend_ci.surface.report.sarif import SCHEMA
from torch_conformance.spec import catalogue
from torch_conformance.spec.catalogue import Requirement
from torch_conformance.spec.chapters import FOLDER

FINGERPRINT = "gateCheck/v1"  # raised whenever lane, id or class mean something else
LEVELS = {Means.INFRASTRUCTURE: "error", Means.REGRESSION: "error", Means.NOTE: "note"}
#: Bad checks that the policy may let pass; all others that mean a note are good.
BAD_NOTES = frozenset({Class.FLAKY, Class.BROKEN_TRUNK})


def render(verdict: Verdict, root: Path | None = None) -> str:
    """As a SARIF log of one run; a run with problems says that it did not succeed.

    `root` is the repository that the results are shown in: only files that are there are named.
    """
    requirements = catalogue.load()
    shown = [c for c in verdict.checks if c.means is not Means.NOTE or c.kind in BAD_NOTES]
    ids = list(dict.fromkeys(_rule_id(check, requirements) for check in shown))
    places = {id: _place(root, requirements[id]) for id in ids if id in requirements}
    problems = [*verdict.problems, *(p for lane in verdict.lanes for p in lane.problems)]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "gate", "rules": [_rule(id, requirements) for id in ids]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": verdict.outcome is not Outcome.INFRASTRUCTURE,
                "toolExecutionNotifications": [_notification(problem) for problem in problems],
            }
        ],
        "results": [_result(verdict, c, ids, _rule_id(c, requirements), places) for c in shown],
        "properties": {"outcome": verdict.outcome.value, "leftOut": verdict.left_out},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule_id(check: Check, requirements: Mapping[str, Requirement]) -> str:
    known = (id for id in check.requirements if id in requirements)
    return next(known, check.kind.value)


def _rule(id: str, requirements: Mapping[str, Requirement]) -> dict[str, Any]:
    if id not in requirements:
        return {"id": id, "shortDescription": {"text": TITLES[Class(id)][0]}}
    requirement = requirements[id]
    return {
        "id": id,
        "shortDescription": {"text": requirement.statement},
        "help": {"text": requirement.reason},
        "helpUri": requirement.source.url,
        "properties": {"tags": [requirement.level, requirement.tier, requirement.surface]},
    }


def _notification(problem: str) -> dict[str, Any]:
    return {"level": "error", "message": {"text": visible(problem, keep="\n")}}


def _result(
    verdict: Verdict,
    check: Check,
    ids: list[str],
    id: str,
    places: Mapping[str, Mapping[str, Any] | None],
) -> dict[str, Any]:
    said = [f"{check.id} on {check.lane}: {TITLES[check.kind][0]}, {change(check)}"]
    said += [first_line(check.message)]
    said += [f"{word} {cause.name} {about(cause)}" for word, cause in causes(verdict, check)]
    identity = "\0".join((check.lane, check.id, check.kind.value))
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": visible(check.id)}]}
    if place := places.get(id):
        location["physicalLocation"] = place
    return {
        "ruleId": id,
        "ruleIndex": ids.index(id),
        "level": LEVELS[check.means],
        "message": {"text": visible("; ".join(filter(None, said)))},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: hashlib.sha256(identity.encode()).hexdigest()[:16]},
        "properties": {
            "lane": check.lane,
            "class": check.kind.value,
            "requirements": list(check.requirements),
        },
    }


def _place(root: Path | None, requirement: Requirement) -> dict[str, Any] | None:
    """Where the requirement stands in the repository; None if that has no such file."""
    if root is None:
        return None
    path = FOLDER / f"{requirement.surface}.yaml"
    try:
        inside = path.resolve().relative_to(root.resolve())
        lines = _lines(path)
    except (OSError, ValueError):
        return None
    return {
        "artifactLocation": {"uri": quote(inside.as_posix())},
        "region": {"startLine": lines.get(f"{requirement.id}:", 1)},
    }


@functools.cache
def _lines(path: Path) -> dict[str, int]:
    """The number of the first line with each text, for a chapter of which many results are."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.strip(): number for number, line in reversed(list(enumerate(lines, 1)))}
