# SPDX-License-Identifier: BSD-3-Clause
"""JUnit of a foreign runner as a report: what it does not tell stays unknown.

JUnit says less than a report: no torch, no seed, no proof of completeness beyond its own totals.
The JUnit that the suite writes keeps its ids and outcomes.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import defusedxml
import defusedxml.ElementTree
import junitparser
import msgspec

from torch_conformance.results.reader import MAX_PROBLEMS, Document, ReportError
from torch_conformance.results.report import (
    SCHEMA,
    Options,
    Report,
    Run,
    Source,
    Torch,
    totals,
)
from torch_conformance.spec.ids import ID
from torch_conformance.spec.outcome import BAD, Outcome, is_unexpected
from torch_conformance.spec.reason import Stated
from torch_conformance.spec.result import CheckResult

BACKEND = "JUnit"
MAX_DEPTH = 24
MAX_ID = 300
RESULTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
FLAKES = ("flakyFailure", "flakyError")  # as Maven's Surefire writes them
SKIPS = {o.value: o for o in (Outcome.XFAIL, Outcome.BLOCKED_UPSTREAM, Outcome.NOT_RUN)}


def parse(data: bytes, name: str) -> Document:
    """Read JUnit; raises ReportError with every reason."""
    root = _tree(data, name)
    if _is_deep(root):
        raise ReportError(name, [f"nested deeper than {MAX_DEPTH}"])
    try:
        results = [_result(case) for case in root.iter("testcase")]
    except ValueError as error:
        raise ReportError(name, [str(error)]) from None
    if problems := [*_miscounted(root), *_doubles(results)]:
        raise ReportError(name, problems)
    return document(results, name, hashlib.sha256(data).hexdigest())


def merge(documents: list[Document]) -> Document:
    """Several files as one; nothing proves that these are all. Raises ReportError."""
    results = [result for document in documents for result in document.checks]
    name = ", ".join(document.name for document in documents)
    if problems := list(_doubles(results)):
        raise ReportError(name, problems)
    digests = "\n".join(sorted(document.sha256 for document in documents))
    return document(results, name, hashlib.sha256(digests.encode()).hexdigest())


def document(results: list[CheckResult], name: str, sha256: str) -> Document:
    """The results as a document that can be compared with others that came from JUnit."""
    lasted = round(sum(result.duration_s for result in results), 3)
    report = Report(
        schema=SCHEMA,
        complete=not any(result.outcome is Outcome.NOT_RUN for result in results),
        run=msgspec.structs.replace(_UNKNOWN, duration_s=lasted),
        totals=totals(results),
        requirements={},
        checks=tuple(sorted(results, key=lambda result: result.id)),
    )
    return Document(name, report, sha256, foreign=True)


#: What JUnit says of a run: nothing.
_UNKNOWN = Run(
    backend=BACKEND,
    device_type="",
    torch=Torch(version="", git=None),
    suite="",
    source=Source(commit=None, digest=""),
    python="",
    platform="",
    seed=0,
    started="",
    duration_s=0.0,
    descriptor=None,
    expectations=None,
    selection=None,
    capabilities={},
    options=Options(
        isolate="",
        workers=1,
        chunk=1,
        dtypes=(),
        fallback="allow",
        shard=None,
        tier=None,
        checks=(),
    ),
)


def _tree(data: bytes, name: str) -> Element:
    """The elements; a document with a DTD, where all the bombs are, is refused."""
    try:
        parsed = junitparser.JUnitXml.fromfile(io.BytesIO(data), parse_func=_defused)
    except defusedxml.DefusedXmlException:
        raise ReportError(name, ["XML with a document type or entities of its own"]) from None
    except (ParseError, ValueError, LookupError) as error:
        raise ReportError(name, [f"not XML: {error}"]) from None
    except junitparser.JUnitXmlError:
        raise ReportError(name, ["XML, but not JUnit"]) from None
    root: Element = parsed._elem
    return root


def _defused(stream: io.BytesIO) -> Any:
    return defusedxml.ElementTree.parse(stream, forbid_dtd=True)


def _result(element: Element) -> CheckResult:
    case = junitparser.TestCase.fromelem(element)
    duration = case.time or 0.0
    if not (math.isfinite(duration) and duration >= 0):
        raise ValueError(f"{case.name}: {duration} is not a duration")
    outcome, told = _outcome(element)
    is_wrong = is_unexpected(outcome, listed=False)
    return CheckResult(
        id=_id(case),
        requirements=(),
        surface=str(case.name).partition("/")[0] if _is_ours(case) else "",
        tier="",
        level="",
        outcome=outcome,
        duration_s=duration,
        message=told if is_wrong else None,
        reason=None if is_wrong or outcome is Outcome.PASS else Stated(text=told),
    )


def _id(case: junitparser.TestCase) -> str:
    name, group = case.name or "", case.classname or ""
    if not name:
        raise ValueError("a test case without a name")
    id = name if _is_ours(case) or not group else f"{group}::{name}"
    if len(id) <= MAX_ID:
        return id
    return f"{id[:MAX_ID]}...{hashlib.sha256(id.encode()).hexdigest()[:16]}"


def _is_ours(case: junitparser.TestCase) -> bool:
    """Whether the suite wrote it (torch_conformance.results.junit)."""
    name = case.name or ""
    surface = name.partition("/")[0]
    return ID.fullmatch(name) is not None and (case.classname or "").endswith(f".{surface}")


def _outcome(element: Element) -> tuple[Outcome, str]:
    results = {child.tag: child for child in element}
    for tag, usual in (("error", Outcome.ERROR), ("failure", Outcome.FAIL)):
        if tag in results:
            said = results[tag].get("type")
            outcome = Outcome(said) if said in {*BAD, Outcome.FLAKY} else usual
            return outcome, _told(results[tag])
    if any(tag in results for tag in FLAKES):
        return Outcome.FLAKY, "failed, then passed"
    if "skipped" in results:
        told = _told(results["skipped"])
        word = told.partition(":")[0]
        expected = results["skipped"].get("type") == "pytest.xfail"
        return SKIPS.get("xfail" if expected else word, Outcome.UNSUPPORTED), told
    return Outcome.PASS, ""


def _told(result: Element) -> str:
    return result.get("message") or result.text or ""


def _is_deep(root: Element) -> bool:
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
    return bool(level)


def _miscounted(root: Element) -> Iterator[str]:
    """Totals that are not those of the cases: something was lost or added."""
    for suite in root.iter():
        if suite.tag in ("testsuite", "testsuites"):
            for key, tag in {"tests": "testcase", **RESULTS}.items():
                said, count = suite.get(key), sum(1 for _ in suite.iter(tag))
                if said is not None and said != str(count):
                    where = suite.get("name", suite.tag)
                    yield f"{where}: {key} says {said}, the cases have {count}"


def _doubles(results: Iterable[CheckResult]) -> Iterator[str]:
    counts = Counter(result.id for result in results)
    doubles = [f"{id} is there {n} times" for id, n in counts.items() if n > 1]
    yield from doubles[: MAX_PROBLEMS + 1]
