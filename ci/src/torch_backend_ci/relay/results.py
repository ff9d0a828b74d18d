# SPDX-License-Identifier: BSD-3-Clause
"""The suite's reports as the relay counts: passed, failed, skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import printable
from torch_conformance.results import merging, reader
from torch_conformance.results.reader import Document
from torch_conformance.results.writing import dumps
from torch_conformance.spec.outcome import Outcome


@dataclass(frozen=True)
class Results:
    """What one job found out."""

    passed: int
    failed: int
    skipped: int
    """Neither: unsupported, expected to fail, blocked by PyTorch itself."""
    green: bool
    """Whether all of it was run and nothing is as it should not be."""
    torch: frozenset[str]
    """The commits of PyTorch that it was run with."""
    started: datetime | None
    """When the first of the runs began, in UTC, if a report says so."""


def read(paths: Sequence[Path]) -> Results:
    """The reports of these files and of all files below these directories, each counted once."""
    files = sorted({file.resolve() for path in paths for file in _files(path)})
    if not files:
        raise CiError(f"no report in {', '.join(map(str, paths))}")
    try:
        return _results(list(_wholes([reader.load(file) for file in files])))
    except (reader.ReportError, merging.MergeError) as error:
        raise CiError(printable(" ".join(str(error).split()))) from None


def _files(path: Path) -> Iterable[Path]:
    return path.rglob("*.json") if path.is_dir() else [path]


def _wholes(documents: Iterable[Document]) -> Iterable[Document]:
    """Whole runs: the shards in one directory are made one."""
    shards: dict[Path, list[Document]] = defaultdict(list)
    for document in documents:
        if document.shard is None:
            yield document
        else:
            shards[Path(document.name).parent].append(document)
    for folder, parts in shards.items():
        yield reader.parse(dumps(merging.merge(parts)), str(folder))


def _results(documents: Sequence[Document]) -> Results:
    results = [result for document in documents for result in document.checks]
    failed = sum(result.unexpected for result in results)
    passed = sum(result.outcome is Outcome.PASS for result in results)
    return Results(
        passed,
        failed,
        len(results) - passed - failed,
        all(document.state == "green" for document in documents),
        frozenset(git for d in documents if (git := d.run.torch.git)),
        min((at for d in documents if (at := _time(d.run.started))), default=None),
    )


def _time(text: str) -> datetime | None:
    """None if it is none, or one without a zone."""
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(timezone.utc) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None
