# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as SARIF 2.1.0, for code scanning: a result for each check that means something."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from ci.gate.report.words import TITLES, about, causes, change, first_line
from ci.gate.verdict import Check, Class, Means, Outcome, Verdict
from ci.github.markdown import visible
from ci.surface.report.sarif import SCHEMA

FINGERPRINT = "gateCheck/v1"  # raised whenever lane, id or class mean something else
LEVELS = {Means.INFRASTRUCTURE: "error", Means.REGRESSION: "error", Means.NOTE: "note"}


def render(verdict: Verdict) -> str:
    """As a SARIF log of one run; a run with problems says that it did not succeed."""
    rules = list(TITLES)
    problems = [*verdict.problems, *(p for lane in verdict.lanes for p in lane.problems)]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "gate", "rules": [_rule(kind) for kind in rules]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": verdict.outcome is not Outcome.INFRASTRUCTURE,
                "toolExecutionNotifications": [_notification(problem) for problem in problems],
            }
        ],
        "results": [_result(verdict, check, rules) for check in verdict.checks],
        "properties": {"outcome": verdict.outcome.value, "leftOut": verdict.left_out},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(kind: Class) -> dict[str, Any]:
    return {"id": kind.value, "shortDescription": {"text": TITLES[kind][0]}}


def _notification(problem: str) -> dict[str, Any]:
    return {"level": "error", "message": {"text": visible(problem, keep="\n")}}


def _result(verdict: Verdict, check: Check, rules: list[Class]) -> dict[str, Any]:
    said = [f"{check.id} on {check.lane}: {change(check)}", first_line(check.message)]
    said += [f"{word} {cause.name} {about(cause)}" for word, cause in causes(verdict, check)]
    identity = "\0".join((check.lane, check.id, check.kind.value))
    return {
        "ruleId": check.kind.value,
        "ruleIndex": rules.index(check.kind),
        "level": LEVELS[check.means],
        "message": {"text": visible("; ".join(filter(None, said)))},
        "locations": [_location(check)],
        "partialFingerprints": {FINGERPRINT: hashlib.sha256(identity.encode()).hexdigest()[:16]},
        "properties": {"lane": check.lane, "requirements": list(check.requirements)},
    }


def _location(check: Check) -> dict[str, Any]:
    """The check, and the file that says what it requires, where it is one of the suite."""
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": visible(check.id)}]}
    if check.requirements:
        path = f"conformance/src/torch_conformance/spec/requirements/{check.surface}.yaml"
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(path)},
            "region": {"startLine": 1},
        }
    return location
