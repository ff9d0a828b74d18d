# SPDX-License-Identifier: BSD-3-Clause
"""Writing a report: one JSON file for each backend, truthful at every moment of the run.

It is written when the run starts, with ``complete: false``, and replaced as a whole from then on,
so that a reader finds after a kill what was known, and that it is not everything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from torch_conformance.results.junit import junit
from torch_conformance.results.report import SCHEMA, Demand, Report, Run, totals
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

# Seconds between two rewrites during a run: often enough to be of use after a kill.
INTERVAL = 2.0

T = TypeVar("T", bound=msgspec.Struct)


class Recording:
    """Collects the results of one run and keeps the file on disk up to date."""

    def __init__(self, file: Path, run: Run, requirements: dict[str, Demand]) -> None:
        self.file = file
        self.run = encodable(run)
        self.results: dict[str, CheckResult] = {}
        #: The ids of those that make the run red.
        self.unexpected: set[str] = set()
        self._requirements = requirements
        # Every result as text: a rewrite during the run must not encode all of them again.
        self._lines: dict[str, bytes] = {}
        self._begin = time.monotonic()
        self._written = 0.0

    def add(self, result: CheckResult) -> None:
        """Add (or replace) the result of one check."""
        result = encodable(result)
        self.results[result.id] = result
        (self.unexpected.add if result.unexpected else self.unexpected.discard)(result.id)
        self._lines[result.id] = msgspec.json.encode(result)
        if time.monotonic() - self._written > INTERVAL:
            self.write(complete=False)

    def note(self, **facts: Any) -> None:
        """Say more, or something else, of the run."""
        said = msgspec.structs.replace(self.run, **facts)
        self.run = encodable(msgspec.convert(msgspec.to_builtins(said), Run))

    def move(self, file: Path) -> None:
        """Continue in another file."""
        if file != self.file:
            self.file.unlink(missing_ok=True)
            self.file = file

    @property
    def totals(self) -> dict[Outcome, int]:
        """How many checks had each outcome; every outcome is listed."""
        return totals(self.results.values())

    def report(self, complete: bool) -> Report:
        """The report as it stands."""
        return msgspec.structs.replace(self._head(complete), checks=tuple(self.results.values()))

    def _head(self, complete: bool) -> Report:
        lasted = round(time.monotonic() - self._begin, 3)
        return Report(
            schema=SCHEMA,
            complete=complete,
            run=msgspec.structs.replace(self.run, duration_s=lasted),
            totals=self.totals,
            requirements=self._requirements,
            checks=(),
        )

    def write(self, complete: bool) -> None:
        """Replace the file on disk."""
        lines = (self._lines[id] for id in sorted(self._lines))
        replace(self.file, _joined(self._head(complete), lines))
        self._written = time.monotonic()

    def write_junit(self) -> Path:
        """Write the results in JUnit's form beside the report; return the file."""
        file = self.file.with_suffix(".xml")
        replace(file, junit(self.run.backend, self.run.started, self.results.values()))
        return file


def dumps(report: Report) -> bytes:
    """A whole report in the form in which a run writes it: a line for each check."""
    head = msgspec.structs.replace(report, checks=())
    return _joined(head, map(msgspec.json.encode, report.checks))


def _joined(head: Report, lines: Iterable[bytes]) -> bytes:
    begin = msgspec.json.format(msgspec.json.encode(head), indent=1).removesuffix(b"[]\n}")
    return begin + b"[\n" + b",\n".join(lines) + b"\n ]\n}\n"


def encodable(value: T) -> T:
    """Without halves of characters, which no file in UTF-8 can carry."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.convert(_whole(msgspec.to_builtins(value)), type(value))
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
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
