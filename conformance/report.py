# SPDX-License-Identifier: BSD-3-Clause
"""The report: one JSON file for each backend, truthful at every moment of the run.

It is written when the run starts, with ``complete: false``, and replaced as a whole from then on,
so that whoever reads it after a kill finds what was known and that it is not everything.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import conformance
from conformance.outcome import BAD, Outcome

SCHEMA = "urn:torch-conformance:report:1"
SCHEMA_FILE = Path(__file__).parent / "report.schema.json"
# Seconds between two rewrites during a run: often enough to be of use after a kill.
INTERVAL = 2.0

Record = dict[str, Any]


class Report:
    """Collects the records of one run and keeps the file on disk up to date."""

    def __init__(self, file: Path, run: dict[str, Any]) -> None:
        self.file = file
        self.run = {
            "suite": conformance.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            **run,
        }
        self.records: dict[str, Record] = {}
        # Every record as text: a rewrite during the run must not encode all of them again.
        self._lines: dict[str, str] = {}
        self._begin = time.monotonic()
        self._written = 0.0

    def add(self, record: Record) -> None:
        """Add (or replace) the record of one check."""
        self.records[record["id"]] = record
        self._lines[record["id"]] = json.dumps(record)
        if time.monotonic() - self._written > INTERVAL:
            self.write(complete=False)

    @property
    def totals(self) -> dict[str, int]:
        """How many checks had each outcome; every outcome is listed."""
        counts = Counter(record["outcome"] for record in self.records.values())
        return {outcome.value: counts[outcome.value] for outcome in Outcome}

    def write(self, complete: bool) -> None:
        """Replace the file on disk."""
        head = {
            "schema": SCHEMA,
            "complete": complete,
            "run": {**self.run, "duration_s": round(time.monotonic() - self._begin, 3)},
            "totals": self.totals,
        }
        lines = ",\n".join(self._lines[id] for id in sorted(self._lines))
        text = json.dumps(head, indent=1).removesuffix("\n}")
        _replace(self.file, f'{text},\n "checks": [\n{lines}\n ]\n}}\n')
        self._written = time.monotonic()

    def write_junit(self) -> Path:
        """Write the records in JUnit's form beside the report; return the file."""
        file = self.file.with_suffix(".xml")
        _replace(file, junit(self.run["backend"], list(self.records.values())))
        return file


def junit(backend: str, records: list[Record]) -> str:
    """JUnit XML: a test suite for each surface, the outcome in the type of its failure."""
    root = ElementTree.Element("testsuites", name=f"conformance {backend}")
    for surface in sorted({record["surface"] for record in records}):
        cases = [record for record in records if record["surface"] == surface]
        _junit_suite(root, backend, surface, cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_suite(
    root: ElementTree.Element, backend: str, surface: str, records: list[Record]
) -> None:
    bad = [r for r in records if Outcome(r["outcome"]) in BAD]
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
        if Outcome(record["outcome"]) in BAD:
            tag = "failure" if record["outcome"] == "fail" else "error"
            node = ElementTree.SubElement(case, tag, type=record["outcome"], message=text)
            node.text = _printable(record.get("repro", ""))
        elif _is_skip(record):
            ElementTree.SubElement(case, "skipped", message=f"{record['outcome']}: {text}")


def _is_skip(record: Record) -> bool:
    return record["outcome"] in ("xfail", "unsupported", "blocked_upstream", "not_run")


def _printable(text: str) -> str:
    """Without the control characters that XML cannot carry."""
    return "".join(c if c in "\t\n" or c >= " " else "\ufffd" for c in text)


def _replace(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(content, encoding="utf-8")
    os.replace(temporary, file)
