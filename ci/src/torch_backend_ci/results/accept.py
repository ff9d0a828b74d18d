# SPDX-License-Identifier: BSD-3-Clause
"""Which reports a store takes: valid ones of whole runs, with names and numbers fit to be kept.

Names become parts of addresses and files' names, so they must be plain; texts are kept as they
are; a program that shows them must escape them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
from packaging.version import InvalidVersion, Version

from torch_conformance.results import reader
from torch_conformance.results.reader import Document
from torch_conformance.results.report import Run

NAME = 12
"""Digits of a run's id by which it goes in addresses."""
MAX_CHECKS = 100_000
MAX_REQUIREMENTS = 5_000
MAX_SURFACES = 500
MAX_NAMED = 100
"""Requirements that one check may name."""
MAX_ID = 200
"""Characters of a check's or requirement's id: a file of the dashboard is called by it."""
MAX_HEAD = 256 << 10
"""Bytes of JSON of what a report says of its run."""
MAX_SECONDS = 366 * 24 * 3600.0
OLDEST = datetime(2016, 1, 1, tzinfo=timezone.utc)
"""Before PyTorch: only a clock that was not set says so."""
SKEW = timedelta(minutes=10)
"""How much clocks of runners may differ."""

_INT64 = 2**63
_BACKEND = re.compile(r"[a-z0-9]([a-z0-9._-]{0,38}[a-z0-9])?")
_TORCH = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")


class Refused(Exception):
    """A file that the store does not take; the text says why."""


def read(content: Any, name: str, sha256: str, now: datetime) -> Document:
    """The report that JSON of untrusted origin is; raises Refused."""
    try:
        report = reader.verified(content, name, sha256)
    except reader.ReportError as error:
        raise Refused("; ".join(error.problems)) from None
    for problem in _problems(report, now):
        raise Refused(problem)
    return report


def started(run: Run) -> datetime:
    """When it began, in UTC."""
    return datetime.fromisoformat(run.started).astimezone(timezone.utc)


def label(run: Run) -> str:
    """What the backend is called: with the name of its driver, if the report says one."""
    driver = _driver(run)
    return run.backend if driver is None else f"{run.backend}-{driver}"


def line(version: str) -> str:
    """The release line of a torch, `2.13`; `nightly` if it is not a release.

    Raises InvalidVersion.
    """
    if not _TORCH.fullmatch(version):
        raise InvalidVersion(version)
    found = Version(version)
    is_alpha = found.pre is not None and found.pre[0] == "a"
    if found.is_devrelease or is_alpha or (found.local or "").startswith("git"):
        return "nightly"
    return f"{found.major}.{found.minor}"


def _problems(report: Document, now: datetime) -> Iterator[str]:
    run = report.run
    if report.shard:
        shard = run.options.shard
        yield f"is shard {shard}: `python -m torch_conformance merge` the shards first"
    yield from _sizes(report)
    yield from _names(run)
    yield from _time(run, now)
    yield from _numbers(report)


def _sizes(report: Document) -> Iterator[str]:
    counts = {
        "checks": (len(report.checks), MAX_CHECKS),
        "requirements": (len(report.report.requirements), MAX_REQUIREMENTS),
        "surfaces": (len({result.surface for result in report.checks}), MAX_SURFACES),
        "requirements of one check": (
            max((len(result.requirements) for result in report.checks), default=0),
            MAX_NAMED,
        ),
    }
    for what, (count, most) in counts.items():
        if count > most:
            yield f"has {count:,} {what}; at most {most:,} are stored"
    size = len(msgspec.json.encode(report.run))
    if size > MAX_HEAD:
        yield f"says {size >> 10} KiB of its run; at most {MAX_HEAD >> 10} KiB are stored"
    ids = (*(result.id for result in report.checks), *report.report.requirements)
    if longest := max((id for id in ids if len(id) > MAX_ID), key=len, default=None):
        yield f"{longest[:60]}... is an id of {len(longest)} characters; {MAX_ID} are taken"


def _names(run: Run) -> Iterator[str]:
    for what, name in (("backend", run.backend), ("driver", _driver(run))):
        if name is not None and not _BACKEND.fullmatch(name):
            yield (
                f"its {what} is called {name[:60]!r}: names are up to 40 small letters, digits, "
                "'.', '_' and '-', and begin and end with a letter or digit"
            )
    version = run.torch.version
    try:
        line(version)
    except InvalidVersion:
        yield f"its torch has version {version[:60]!r}, which is not valid for a Python package"


def _time(run: Run, now: datetime) -> Iterator[str]:
    said = datetime.fromisoformat(run.started)
    if said.tzinfo is None:
        yield f"started at {run.started}, which names no time zone"
    elif said < OLDEST:
        yield f"started at {run.started}: the clock of the machine was not set"
    elif said > now + SKEW:
        yield f"started at {run.started}, which is in the future"


def _numbers(report: Document) -> Iterator[str]:
    if not -_INT64 <= report.run.seed < _INT64:
        yield "its seed is larger than 64 bits"
    longest = max([report.run.duration_s, *(result.duration_s for result in report.checks)])
    if longest > MAX_SECONDS:
        yield f"a duration of {longest:.3g} seconds is not credible"
    if any((result.samples or 0) >= _INT64 for result in report.checks):
        yield "a number of samples is larger than 64 bits"


def _driver(run: Run) -> str | None:
    found = (run.driver or {}).get("name")
    return found if isinstance(found, str) else None
