# SPDX-License-Identifier: BSD-3-Clause
"""The tracks of all checks, cached between builds: a new run costs only its own work.

A directory of files of JSON lines, each with the checks of a span of ids, and a manifest that names
them. The manifest is replaced last, so an interrupted update leaves the old state. It is a cache:
if the input runs or the code in its manifest differ, it is rebuilt.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_backend_ci.dashboard import code, summary, track
from torch_backend_ci.dashboard.model import Key, Series
from torch_backend_ci.dashboard.summary import Span
from torch_backend_ci.dashboard.track import Track
from torch_backend_ci.dashboard.workers import Workers
from torch_backend_ci.results.store import Snapshot
from torch_conformance.results.writing import replace

MANIFEST = "state.json"
ROWS = 1_000_000
"""Results that are summed up at once by one process; some 400 MB of memory."""
MOST = 512
"""Checks in a file, so that there is work for several processes."""
MEMORY = "500MB"
_NOTHING: dict[str, Any] = {"series": [], "files": []}

Ids = list[tuple[str, bool]]
"""The aligned runs of a series: their ids, and whether their results are kept."""


@dataclass(frozen=True)
class State:
    """The tracks of a store."""

    folder: Path
    keys: tuple[Key, ...]
    files: tuple[tuple[Span, str], ...]

    def files_with(self, first: str, last: str) -> Iterator[int]:
        """The numbers of the files that may have checks from one id to another."""
        for number, (span, _) in enumerate(self.files):
            if span.first <= last and (span.end is None or span.end > first):
                yield number

    def checks(self, number: int) -> Iterator[tuple[str, dict[Key, Track]]]:
        """The checks of a file with their tracks, sorted by id."""
        with open(self.folder / self.files[number][1], encoding="utf-8") as lines:
            for line in lines:
                id, tracks = json.loads(line)
                yield id, {self.keys[place]: track.parse(values) for place, values in tracks}


@dataclass(frozen=True)
class _Plan:
    """The update of one series."""

    before: int | None
    """Its number in the old state; None if that is of no use."""
    since: int
    """The first run whose results are kept."""
    start: int
    """The first run that the old state does not have."""


def updated(
    folder: Path, snapshot: Snapshot, series: Mapping[Key, Series], workers: Workers
) -> State:
    """The state of these series, made from the one in the directory as far as that goes."""
    folder.mkdir(parents=True, exist_ok=True)
    old = _manifest(folder)
    runs = {key: _ids(one) for key, one in series.items()}
    plans = [_plan(old, key, ids) for key, ids in runs.items()]
    wanted = _wanted(list(runs.values()), plans)
    if len(wanted) > sum(len(ids) for _, ids in old["series"]):
        old = _NOTHING  # the spans of ids were chosen for less than what comes
        plans = [_plan(old, key, ids) for key, ids in runs.items()]
        wanted = _wanted(list(runs.values()), plans)
    spans = [Span(*span) for span, _ in old["files"]] or _spans(snapshot, wanted)
    names: list[str | None] = [name for _, name in old["files"]] or [None] * len(spans)
    if None in names or old["series"] != _said(runs):
        make = functools.partial(_file, folder, _only(snapshot, wanted), wanted, plans)
        names = workers.map(make, list(zip(spans, names, strict=True)), "results summed up")
    made = {
        "code": code.digest(),
        "series": _said(runs),
        "files": list(zip(spans, names, strict=True)),
    }
    replace(folder / MANIFEST, json.dumps(made))
    _sweep(folder, {MANIFEST, *map(str, names)})
    return State(folder, tuple(runs), tuple((s, str(n)) for s, n in zip(spans, names, strict=True)))


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if found["code"] == code.digest() and all(
            (folder / name).is_file() for _, name in found["files"]
        ):
            return found
    except (OSError, ValueError, LookupError, TypeError):
        pass  # none yet, or unusable: rebuilt
    return _NOTHING


def _ids(series: Series) -> Ids:
    return [(run.id, run.kept) for run in series.runs]


def _said(runs: Mapping[Key, Ids]) -> list[Any]:
    """As JSON gives it back."""
    return [[list(key), [list(run) for run in ids]] for key, ids in runs.items()]


def _plan(old: Mapping[str, Any], key: Key, ids: Ids) -> _Plan:
    since = next((place for place, (_, kept) in enumerate(ids) if kept), len(ids))
    is_simple = all(kept for _, kept in ids[since:])
    for number, (name, before) in enumerate(old["series"]):
        if tuple(name) != key or not is_simple:
            continue
        known = [(id, kept) for id, kept in before]
        lost = next((place for place, (_, kept) in enumerate(known) if kept), len(known))
        alike = [id for id, _ in known] == [id for id, _ in ids[: len(known)]]
        if alike and lost <= since and all(kept for _, kept in known[lost:]):
            return _Plan(number, since, len(known))
    return _Plan(None, since, 0)


def _wanted(runs: Sequence[Ids], plans: Sequence[_Plan]) -> dict[str, summary.Place]:
    """The runs whose results have to be read."""
    return {
        id: (number, place)
        for number, (ids, plan) in enumerate(zip(runs, plans, strict=True))
        for place, (id, kept) in enumerate(ids)
        if kept and place >= plan.start
    }


def _only(snapshot: Snapshot, wanted: Mapping[str, Any]) -> Snapshot:
    """The files that have results of wanted runs."""
    parts = tuple(part for part in snapshot.parts if part.stored.keys() & wanted.keys())
    return Snapshot(snapshot.segments, parts)


def _spans(snapshot: Snapshot, wanted: Mapping[str, Any]) -> list[Span]:
    """Spans of ids with about as many results each as are summed up at once."""
    with _only(snapshot, wanted).reading() as database:
        found = database.execute("SELECT DISTINCT check_id FROM results ORDER BY 1").fetchall()
    ids = [id for (id,) in found]
    size = max(min(ROWS // max(len(wanted), 1), MOST), 1)
    firsts = ["", *ids[size::size]]
    return [Span(*pair) for pair in zip(firsts, [*firsts[1:], None], strict=True)]


def _file(
    folder: Path,
    snapshot: Snapshot,
    wanted: Mapping[str, summary.Place],
    plans: Sequence[_Plan],
    task: tuple[Span, str | None],
) -> str:
    """Write the new file of a span; its name is the digest of its content."""
    span, name = task
    found = _carried(folder / name, plans) if name else {}
    for id, number, new in _summed_up(snapshot, wanted, span) if wanted else ():
        tracks = found.setdefault(id, {})
        tracks[number] = track.joined(tracks.get(number), new)
    lines = (
        json.dumps([id, [[n, found[id][n].to_json()] for n in sorted(found[id])]])
        for id in sorted(found)
        if found[id]
    )
    data = "".join(f"{line}\n" for line in lines)
    made = f"{hashlib.sha256(data.encode()).hexdigest()[:32]}.jsonl"
    replace(folder / made, data)
    return made


def _summed_up(
    snapshot: Snapshot, wanted: Mapping[str, summary.Place], span: Span
) -> Iterator[tuple[str, int, Track]]:
    with snapshot.reading() as database:
        database.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1")
        summary.prepare(database, wanted)
        yield from summary.tracks(database, span)


def _carried(file: Path, plans: Sequence[_Plan]) -> dict[str, dict[int, Track]]:
    """What the old file says of the series that go on, without the runs that are not kept."""
    going = {plan.before: (number, plan.since) for number, plan in enumerate(plans)}
    found: dict[str, dict[int, Track]] = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            id, tracks = json.loads(line)
            found[id] = {}
            for before, values in tracks:
                number, first = going.get(before, (None, 0))
                if number is not None and (kept := track.since(track.parse(values), first)):
                    found[id][number] = kept
    return found


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove what no manifest names."""
    for name in os.listdir(folder):
        if name not in keep:
            (folder / name).unlink()
