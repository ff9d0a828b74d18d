# SPDX-License-Identifier: BSD-3-Clause
"""What later pull requests are compared with: the reports of the default branch, on `results`.

They are replaced as a whole, by those of a later run only: the reports of two pushes may come in
any order.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from github.Repository import Repository
from github.WorkflowRun import WorkflowRun

from ci.errors import CiError
from ci.github import artifact, branch
from ci.github.change import Change
from ci.output import say
from conformance.results import reader, strict

ARTIFACT = "baseline"
BRANCH, FOLDER = "results", "baseline"
SOURCE = f"{FOLDER}/source.json"
_LANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.json\.gz")
_LIMITS = artifact.Limits(packed=64 << 20, unpacked=128 << 20, entries=100)


@dataclass(frozen=True, order=True)
class Source:
    """The run that the reports are of; a later one is greater."""

    run_number: int
    run_attempt: int
    run_id: int
    head_sha: str


def changes(repo: Repository, run: WorkflowRun) -> Iterator[Change]:
    """What stores the baseline that the run has left."""
    files = artifact.fetch(repo, run, ARTIFACT, _is_lane, _LIMITS)
    if not files:
        raise CiError(f"artifact {ARTIFACT} of run {run.id} has no reports")
    reports = {f"{FOLDER}/{name}": _checked(name, data) for name, data in files.items()}
    source = Source(run.run_number, run.run_attempt, run.id, run.head_sha)
    message = f"Baseline of {run.head_sha[:12]}"
    yield from branch.update(repo, BRANCH, lambda state: _edit(state, source, reports), message)


def _edit(state: branch.State, source: Source, reports: Mapping[str, bytes]) -> branch.Files:
    """These reports and no others, unless those there are of a later run."""
    stored = _read(state.read(SOURCE))
    if stored is not None and stored > source:
        say(f"the baseline is of the later run {stored.run_id} already")
        return {}
    former = [f"{FOLDER}/{name}" for name in state.names(FOLDER) if _is_lane(name)]
    about = json.dumps(asdict(source), indent=1).encode() + b"\n"
    return {**dict.fromkeys(former), **reports, SOURCE: about}


def _checked(name: str, data: bytes) -> bytes:
    """A report that is valid and complete, packed so that the same report is the same bytes."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            content = stream.read(strict.MAX_BYTES + 1)
        report = reader.parse(content, name)
    except (OSError, EOFError, zlib.error, reader.ReportError) as error:
        raise CiError(f"the baseline {name} is not stored: {error}") from None
    if not report.complete or report.shard is not None:
        raise CiError(f"the baseline {name} is not stored: it is not all of a run")
    return gzip.compress(content, mtime=0)


def _read(data: bytes | None) -> Source | None:
    """What source.json says; None if it is not there, or is none: then it is written anew."""
    if data is None:
        return None
    try:
        document = strict.loads(data)
        source = Source(**document)
    except (strict.Malformed, TypeError):
        return None
    numbers = (source.run_number, source.run_attempt, source.run_id)
    return source if all(type(number) is int for number in numbers) else None


def _is_lane(name: str) -> bool:
    return _LANE.fullmatch(name) is not None
