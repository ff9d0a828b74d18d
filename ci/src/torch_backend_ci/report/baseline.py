# SPDX-License-Identifier: BSD-3-Clause
"""What later pull requests are compared with: the reports of the default branch, on `results`.

Each configuration of the gate's policy has its last complete run there. Only a later run replaces
it, because the reports of two pushes may come in any order. One that a run lacks stays.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from github.Repository import Repository
from github.WorkflowRun import WorkflowRun
from msgspec import Meta

from torch_backend_ci import document
from torch_backend_ci.document import Part
from torch_backend_ci.errors import CiError
from torch_backend_ci.github import artifact, branch
from torch_backend_ci.github.change import Change
from torch_backend_ci.output import say
from torch_conformance.results import reader
from torch_conformance.spec import strict

ARTIFACT = "baseline"
BRANCH, FOLDER = "results", "baseline"
SOURCES = (
    "baseline.json"  # beside the directory: the gate reads every file in it as a configuration
)
_SUFFIX = ".json.gz"
_LANE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}{re.escape(_SUFFIX)}")
_LIMITS = artifact.Limits(packed=64 << 20, unpacked=128 << 20, entries=100)


class Source(Part, order=True, frozen=True):
    """The run that a report is of; a later one is greater."""

    run_number: Annotated[int, Meta(description="Counts the runs of pr.yml.")]
    run_attempt: int
    run_id: int
    head_sha: str


class Sources(Part, tag_field="schema_version", tag=1, frozen=True):
    """baseline.json on branch `results`: the run that made the report of each configuration."""

    lanes: Mapping[str, Source]


def changes(repo: Repository, run: WorkflowRun, lanes: Collection[str]) -> Iterator[Change]:
    """What stores the baseline that the run has left. `lanes` are those there are."""
    files = artifact.fetch(repo, run, ARTIFACT, lambda name: _lane(name) in lanes, _LIMITS)
    if not files:
        raise CiError(f"artifact {ARTIFACT} of run {run.id} has no report of any lane")
    reports = {_lane(name): _checked(name, data) for name, data in files.items()}
    source = Source(run.run_number, run.run_attempt, run.id, run.head_sha)
    message = f"Baseline of {run.head_sha[:12]}"
    yield from branch.update(
        repo, BRANCH, lambda state: _edit(state, source, reports, lanes), message
    )


def _edit(
    state: branch.State, source: Source, reports: Mapping[str, bytes], lanes: Collection[str]
) -> branch.Files:
    """These reports, unless a later run has one; without configurations that the policy removed."""
    stored = {lane: s for lane, s in _read(state.read(SOURCES)).items() if lane in lanes}
    later = {lane for lane in reports if lane in stored and stored[lane] > source}
    if later:
        say(f"of a later run already: {', '.join(sorted(later))}")
    newer = {lane: report for lane, report in reports.items() if lane not in later}
    sources = {**stored, **dict.fromkeys(newer, source)}
    gone = [name for name in state.names(FOLDER) if _lane(name) not in {"", *lanes}]
    return {
        **{f"{FOLDER}/{name}": None for name in gone},
        **{f"{FOLDER}/{lane}{_SUFFIX}": report for lane, report in newer.items()},
        SOURCES: _rendered(sources),
    }


def _lane(name: str) -> str:
    """The configuration of a file; empty if it has none."""
    return name.removesuffix(_SUFFIX) if _LANE.fullmatch(name) else ""


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


def _rendered(sources: Mapping[str, Source]) -> bytes:
    return document.dumps(Sources(dict(sorted(sources.items())))).encode()


def _read(data: bytes | None) -> Mapping[str, Source]:
    """The runs of the reports; none if the file is damaged: then it is rewritten."""
    try:
        return document.decode(data, Sources, SOURCES).lanes if data is not None else {}
    except document.DocumentError:
        return {}
