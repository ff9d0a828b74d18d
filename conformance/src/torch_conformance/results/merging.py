# SPDX-License-Identifier: BSD-3-Clause
"""The shards of a run made one report, with the proof that each check appears exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from torch_conformance.results.reader import Document
from torch_conformance.results.report import SCHEMA, Merged, Report, Run, totals
from torch_conformance.selecting import selection
from torch_conformance.selecting.selection import Selection
from torch_conformance.spec.result import CheckResult

# What may differ between the machines of one run.
OWN = ("started", "duration_s", "platform", "merged")
OWN_OPTIONS = ("shard", "workers")


class MergeError(Exception):
    """Reports that are not the shards of one run; the text gives every reason."""


def merge(documents: list[Document]) -> Report:
    """The whole report; raises MergeError unless `documents` are all shards of one run."""
    problems = list(_problems(documents))
    if problems:
        raise MergeError("\n  ".join(["these are not the shards of one run:", *problems]))
    shards = sorted(documents, key=lambda document: document.shard or (0, 0))
    results = sorted(_results(shards), key=lambda result: result.id)
    return Report(
        schema=SCHEMA,
        complete=True,
        run=_run(shards),
        totals=totals(results),
        requirements=shards[0].report.requirements,
        checks=tuple(results),
    )


def _results(documents: Iterable[Document]) -> Iterator[CheckResult]:
    """The results, each with the number of its shard."""
    for document in documents:
        assert document.shard is not None
        for result in document.checks:
            yield msgspec.structs.replace(result, shard=document.shard[0])


def _problems(documents: list[Document]) -> Iterator[str]:
    whole = [document for document in documents if document.shard is None]
    yield from (f"{document.name} is no shard: it was run without --shard" for document in whole)
    for document in documents:
        if not document.complete:
            yield f"{document.name} is incomplete: run this shard again"
    if whole or not documents:
        return
    yield from _alike(documents)
    yield from _numbered(documents)
    yield from _once(documents)


def _alike(documents: list[Document]) -> Iterator[str]:
    first, *others = documents
    for other in others:
        for key, value in _facts(first).items():
            if _facts(other)[key] != value:
                yield f"{other.name} differs from {first.name} in {key}"


def _facts(document: Document) -> dict[str, Any]:
    """All that the shards of one run have in common."""
    run = msgspec.structs.asdict(document.run)
    options = msgspec.structs.asdict(document.run.options)
    return {
        **{key: value for key, value in run.items() if key not in OWN},
        "options": {key: value for key, value in options.items() if key not in OWN_OPTIONS},
        "selection": _whole(document),
        "requirements": document.report.requirements,
    }


def _whole(document: Document) -> Selection | None:
    """The selection of the run that a shard is a part of."""
    chosen = document.run.selection
    return chosen.whole if chosen else None


def _numbered(documents: list[Document]) -> Iterator[str]:
    counts = Counter(document.shard for document in documents)
    parts = {shard[1] for shard in counts if shard}
    if len(parts) > 1:
        yield f"they are of runs in {' and '.join(map(str, sorted(parts)))} parts"
        return
    (count,) = parts
    missing = [index for index in range(1, count + 1) if not counts[index, count]]
    if missing:
        shown = ", ".join(map(str, missing[:20])) + (", ..." if len(missing) > 20 else "")
        yield f"of {count} shards these are missing: {shown}"
    for shard, found in counts.items():
        if shard and found > 1:
            yield f"shard {shard[0]}/{shard[1]} is there {found} times"


def _once(documents: list[Document]) -> Iterator[str]:
    counts = Counter(result.id for result in _results(documents))
    yield from (f"{id} is in {n} shards" for id, n in sorted(counts.items()) if n > 1)
    chosen = _whole(documents[0])
    if chosen is None or selection.digest(counts) != chosen.digest:
        yield (
            f"together they have {len(counts)} checks, which are not the "
            f"{chosen.checks if chosen else 'unknown ones'} that the run selected"
        )
    for document in documents:
        assert document.shard is not None
        if document.run.options.durations:
            continue  # It has the checks that it says are its part: the reader has seen to that.
        mine = [result.id for result in document.checks]
        if sorted(mine) != selection.part(counts, *document.shard):
            yield f"{document.name} does not have the checks of shard {document.shard[0]}"


def _run(shards: list[Document]) -> Run:
    runs = [document.run for document in shards]
    return msgspec.structs.replace(
        runs[0],
        started=min(run.started for run in runs),
        duration_s=round(sum(run.duration_s for run in runs), 3),
        platform="; ".join(sorted({run.platform for run in runs})),
        selection=_whole(shards[0]),
        options=msgspec.structs.replace(
            runs[0].options, shard=None, workers=sum(run.options.workers for run in runs)
        ),
        merged=tuple(_merged(document) for document in shards),
    )


def _merged(document: Document) -> Merged:
    run = document.run
    return Merged(
        shard=run.options.shard or "",
        started=run.started,
        duration_s=run.duration_s,
        platform=run.platform,
        sha256=document.sha256,
    )
