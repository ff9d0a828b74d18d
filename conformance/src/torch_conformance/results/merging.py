# SPDX-License-Identifier: BSD-3-Clause
"""The shards of a run made one report, with the proof that each check appears exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from torch_conformance.results import report
from torch_conformance.results.reader import Document, Record
from torch_conformance.selecting import selection

# What may differ between the machines of one run.
OWN = ("started", "duration_s", "platform", "merged")
OWN_OPTIONS = ("shard", "workers")


class MergeError(Exception):
    """Reports that are not the shards of one run; the text gives every reason."""


def merge(documents: list[Document]) -> dict[str, Any]:
    """The whole report; raises MergeError unless `documents` are all shards of one run."""
    problems = list(_problems(documents))
    if problems:
        raise MergeError("\n  ".join(["these are not the shards of one run:", *problems]))
    shards = sorted(documents, key=lambda document: document.shard or (0, 0))
    records = sorted(_records(shards), key=lambda record: str(record["id"]))
    first = shards[0]
    return {
        **first.content,
        "complete": True,
        "run": _run(shards),
        "totals": report.totals(records),
        "checks": records,
    }


def _records(documents: Iterable[Document]) -> Iterator[Record]:
    """The records, each with the number of its shard."""
    for document in documents:
        assert document.shard is not None
        yield from (record | {"shard": document.shard[0]} for record in document.checks)


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
    run = {key: value for key, value in document.run.items() if key not in (*OWN, "options")}
    options = {k: v for k, v in document.run["options"].items() if k not in OWN_OPTIONS}
    known = dict.fromkeys(("driver", "devices", "cannot_load"))
    return (
        known
        | run
        | {
            "options": {"durations": None} | options,
            "selection": _whole(document),
            "requirements": document.content["requirements"],
        }
    )


def _whole(document: Document) -> dict[str, Any]:
    """The selection of the run that a shard is a part of."""
    return {k: v for k, v in (document.run["selection"] or {}).items() if k != "part"}


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
    counts = Counter(record["id"] for record in _records(documents))
    yield from (f"{id} is in {n} shards" for id, n in sorted(counts.items()) if n > 1)
    chosen = _whole(documents[0])
    if selection.digest(counts) != chosen.get("digest"):
        yield (
            f"together they have {len(counts)} checks, which are not the {chosen.get('checks')} "
            "that the run selected"
        )
    for document in documents:
        assert document.shard is not None
        if document.run["options"].get("durations"):
            continue  # It has the checks that it says are its part: the reader has seen to that.
        mine = [record["id"] for record in document.checks]
        if sorted(mine) != selection.part(counts, *document.shard):
            yield f"{document.name} does not have the checks of shard {document.shard[0]}"


def _run(shards: list[Document]) -> dict[str, Any]:
    runs = [document.run for document in shards]
    return {
        **runs[0],
        "started": min(run["started"] for run in runs),
        "duration_s": round(sum(run["duration_s"] for run in runs), 3),
        "platform": "; ".join(sorted({run["platform"] for run in runs})),
        "selection": _whole(shards[0]),
        "options": {
            **runs[0]["options"],
            "shard": None,
            "workers": sum(run["options"]["workers"] for run in runs),
        },
        "merged": [
            {
                "shard": document.run["options"]["shard"],
                "started": document.run["started"],
                "duration_s": document.run["duration_s"],
                "platform": document.run["platform"],
                "sha256": document.sha256,
            }
            for document in shards
        ],
    }
