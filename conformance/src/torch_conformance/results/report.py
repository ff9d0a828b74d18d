# SPDX-License-Identifier: BSD-3-Clause
"""The report: one JSON file for each backend, truthful at every moment of the run.

It is written when the run starts, with ``complete: false``, and replaced as a whole from then on,
so that a reader after a kill finds the results so far, marked as incomplete.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch_conformance
from torch_conformance.spec.outcome import Outcome, is_bad

SCHEMA = "urn:torch-conformance:report:1"
SCHEMA_FILE = Path(__file__).parent / "report.schema.json"
# Seconds between two rewrites during a run: often enough to be of use after a kill.
INTERVAL = 2.0

Record = dict[str, Any]
_UNPRINTABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Report:
    """Collects the records of one run and keeps the file on disk up to date."""

    def __init__(
        self, file: Path, run: dict[str, Any], requirements: dict[str, dict[str, str]]
    ) -> None:
        self.file = file
        self.requirements = requirements
        self.run = {
            "suite": torch_conformance.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            **run,
        }
        self.records: dict[str, Record] = {}
        #: The ids of those that make the run red.
        self.bad: set[str] = set()
        # Every record as text: a rewrite during the run must not encode all of them again.
        self._lines: dict[str, str] = {}
        self._begin = time.monotonic()
        self._written = 0.0

    def add(self, record: Record) -> None:
        """Add (or replace) the record of one check."""
        line = json.dumps(record)
        if "\\ud" in line:  # Half a character, or both halves of one.
            record = _whole(record)
            line = json.dumps(record)
        self.records[record["id"]] = record
        (self.bad.add if is_bad(record) else self.bad.discard)(record["id"])
        self._lines[record["id"]] = line
        if time.monotonic() - self._written > INTERVAL:
            self.write(complete=False)

    @property
    def totals(self) -> dict[str, int]:
        """How many checks had each outcome; every outcome is listed."""
        return totals(self.records.values())

    def content(self, complete: bool) -> dict[str, Any]:
        """The report as plain values."""
        return {**self._head(complete), "checks": list(self.records.values())}

    def _head(self, complete: bool) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "complete": complete,
            "run": {**_whole(self.run), "duration_s": round(time.monotonic() - self._begin, 3)},
            "totals": self.totals,
            "requirements": self.requirements,
        }

    def write(self, complete: bool) -> None:
        """Replace the file on disk."""
        head = self._head(complete)
        replace(self.file, _text(head, (self._lines[id] for id in sorted(self._lines))))
        self._written = time.monotonic()

    def move(self, file: Path) -> None:
        """Go on in another file."""
        if file != self.file:
            self.file.unlink(missing_ok=True)
            self.file = file

    def write_junit(self) -> Path:
        """Write the records in JUnit's form beside the report; return the file."""
        file = self.file.with_suffix(".xml")
        replace(file, junit(self.run["backend"], list(self.records.values())))
        return file


def totals(records: Iterable[Record]) -> dict[str, int]:
    """How many records have each outcome; every outcome is listed."""
    counts = Counter(record["outcome"] for record in records)
    return {outcome.value: counts[outcome.value] for outcome in Outcome}


def dumps(document: dict[str, Any]) -> str:
    """A whole report as text, in the form in which a run writes it: a line for each check."""
    head = {key: value for key, value in document.items() if key != "checks"}
    return _text(head, (json.dumps(record) for record in document["checks"]))


def _text(head: dict[str, Any], lines: Iterable[str]) -> str:
    begin = json.dumps(head, indent=1).removesuffix("\n}")
    checks = ",\n".join(lines)
    return f'{begin},\n "checks": [\n{checks}\n ]\n}}\n'


def junit(backend: str, records: list[Record]) -> str:
    """JUnit XML: a test suite for each surface, the outcome in the type of its failure."""
    backend = _printable(backend)
    records = sorted(records, key=lambda record: str(record["id"]))
    root = ElementTree.Element("testsuites", name=f"conformance {backend}")
    for surface in sorted({record["surface"] for record in records}):
        cases = [record for record in records if record["surface"] == surface]
        _junit_suite(root, backend, surface, cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_suite(
    root: ElementTree.Element, backend: str, surface: str, records: list[Record]
) -> None:
    bad = [r for r in records if is_bad(r)]
    errors = [r for r in bad if r["outcome"] != "fail"]
    skipped = [r for r in records if _is_skip(r)]
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=surface,
        tests=str(len(records)),
        failures=str(len(bad) - len(errors)),
        errors=str(len(errors)),
        skipped=str(len(skipped)),
        time=f"{sum(r['duration_s'] for r in records):.3f}",
    )
    for record in records:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{backend}.{surface}",
            name=record["id"],
            time=f"{record['duration_s']:.6f}",
        )
        text = _printable(record.get("message") or record.get("reason") or "")
        if is_bad(record):
            tag = "failure" if record["outcome"] == "fail" else "error"
            node = ElementTree.SubElement(case, tag, type=record["outcome"], message=text)
            lines = attempts(record) if record["outcome"] == Outcome.FLAKY else []
            node.text = _printable("\n".join([*lines, record.get("repro", "")]))
        elif _is_skip(record):
            ElementTree.SubElement(case, "skipped", message=f"{record['outcome']}: {text}")


def attempts(record: Record) -> list[str]:
    """A line for each time the check of a record ran, where it ran several times."""
    lines = []
    for i, attempt in enumerate(record.get("attempts", ()), 1):
        message, _, _ = attempt.get("message", "").partition("\n")
        lines.append(f"attempt {i}: {attempt['outcome']} {message}".rstrip())
    return lines


def _is_skip(record: Record) -> bool:
    return record["outcome"] in ("xfail", "unsupported", "blocked_upstream", "not_run")


def _printable(text: str) -> str:
    """Without the characters that XML cannot carry."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _whole(value: Any) -> Any:
    """Plain values without halves of characters, which no file in UTF-8 can carry."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def replace(file: Path, content: str | bytes) -> None:
    """Replace a file atomically: a reader finds the old content or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
