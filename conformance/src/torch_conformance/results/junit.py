# SPDX-License-Identifier: BSD-3-Clause
"""A report as JUnit XML: a test suite for each surface, the outcome in the type of a failure."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

from torch_conformance.spec.outcome import SKIPPED, Outcome
from torch_conformance.spec.result import CheckResult

_UNPRINTABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(backend: str, started: str, results: Iterable[CheckResult]) -> str:
    """The XML. `started` is when the run began, as the report says it.

    It names no host: reports are published, and the host's name says nothing of the backend.
    """
    backend = _printable(backend)
    ordered = sorted(results, key=lambda result: result.id)
    root = ElementTree.Element("testsuites", name=f"conformance {backend}")
    for surface in sorted({result.surface for result in ordered}):
        cases = [result for result in ordered if result.surface == surface]
        suite = _suite(root, surface, cases)
        suite.set("timestamp", _printable(started))
        for case in cases:
            _case(suite, f"{backend}.{surface}", case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def attempts(result: CheckResult) -> list[str]:
    """A line for each time the check ran, where it ran several times."""
    return [f"attempt {i}: {attempt}" for i, attempt in enumerate(result.attempts, 1)]


def _suite(
    root: ElementTree.Element, surface: str, results: list[CheckResult]
) -> ElementTree.Element:
    bad = [r for r in results if r.unexpected]
    errors = [r for r in bad if r.outcome is not Outcome.FAIL]
    return ElementTree.SubElement(
        root,
        "testsuite",
        name=surface,
        tests=str(len(results)),
        failures=str(len(bad) - len(errors)),
        errors=str(len(errors)),
        skipped=str(sum(r.outcome in SKIPPED for r in results)),
        time=f"{sum(r.duration_s for r in results):.3f}",
    )


def _case(suite: ElementTree.Element, group: str, result: CheckResult) -> None:
    time = f"{result.duration_s:.6f}"
    case = ElementTree.SubElement(suite, "testcase", classname=group, name=result.id, time=time)
    text = _printable(result.text)
    if result.unexpected:
        tag = "failure" if result.outcome is Outcome.FAIL else "error"
        node = ElementTree.SubElement(case, tag, type=result.outcome.value, message=text)
        lines = attempts(result) if result.outcome is Outcome.FLAKY else []
        node.text = _printable("\n".join([*lines, result.repro or ""]))
    elif result.outcome in SKIPPED:
        ElementTree.SubElement(case, "skipped", message=f"{result.outcome}: {text}")


def _printable(text: str) -> str:
    """Without the characters that XML cannot carry."""
    return _UNPRINTABLE.sub("\ufffd", text)
