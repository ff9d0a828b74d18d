# SPDX-License-Identifier: BSD-3-Clause
"""Shards that end together: the checks of a run divided by how long they took in an earlier one.

The durations are advice. Where a file has none for a check, those of its kin stand in; whatever it
says, the parts are disjoint and complete, and the same wherever they are computed from it.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import io
import statistics
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_conformance.spec import strict
from torch_conformance.spec.outcome import Outcome

# What is believed at most of one check: a run with more would not fit into a day.
LONGEST = 86_400.0
# Seconds that a check costs beside its own: sending it, its share of a worker, booking it.
OVERHEAD = 0.004
# Checks of a topic that are not taken apart.
TOGETHER = 8


class DurationsError(Exception):
    """A file of durations that cannot be used; the text names it and the reason."""


@dataclass(frozen=True)
class Durations:
    """How long checks took, and the file that says so."""

    file: str
    sha256: str
    seconds: Mapping[str, float] = field(repr=False)


def load(file: Path) -> Durations:
    """The durations of a report, also of a compressed or an incomplete one."""
    try:
        data = _content(file)
        seconds = _seconds(strict.loads(data))
    except strict.Malformed as error:
        raise DurationsError(f"{file}: {error}") from None
    return Durations(file.name, hashlib.sha256(data).hexdigest(), seconds)


def _content(file: Path) -> bytes:
    data = strict.read(file)
    if file.suffix != ".gz":
        return data
    try:
        with gzip.open(io.BytesIO(data)) as source:
            return source.read(strict.MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise strict.Malformed(f"invalid gzip data: {error}") from None


def _seconds(content: Any) -> dict[str, float]:
    """The durations of the checks that were run or decided."""
    records = content.get("checks") if isinstance(content, dict) else None
    if not isinstance(records, list):
        raise strict.Malformed("not a report: it has no list of checks")
    found: dict[str, float] = {}
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            raise strict.Malformed(f"checks[{index}] is not a record")
        id: Any = record.get("id")
        seconds: Any = record.get("duration_s")
        if not isinstance(id, str) or type(seconds) not in (int, float) or seconds < 0:
            raise strict.Malformed(f"checks[{index}] has no id and duration_s")
        if record.get("outcome") != Outcome.NOT_RUN:
            found[id] = min(float(seconds), LONGEST)
    return found


def parts(ids: Collection[str], count: int, seconds: Mapping[str, float]) -> list[list[str]]:
    """`ids` in `count` parts that take about the same time: always the longest of what is left
    goes to the part that has the least so far.
    """
    costs = estimates(ids, seconds)
    units = [(sum(costs[id] + OVERHEAD for id in unit), unit) for unit in _units(ids)]
    made: list[list[str]] = [[] for _ in range(count)]
    # Equal loads fall to the part with fewer checks, then to the first.
    loads = [(0.0, 0, index) for index in range(count)]
    for cost, unit in sorted(units, key=lambda entry: (-entry[0], entry[1])):
        load, length, index = loads[0]
        made[index] += unit
        heapq.heapreplace(loads, (load + cost, length + len(unit), index))
    return [sorted(part) for part in made]


def _units(ids: Collection[str]) -> list[list[str]]:
    """What stays together: the few checks of a small topic, of which the first may pay for all.

    Cases of one function often look at one run of a program, which takes seconds and is kept for
    the others; apart from each other, each part would run it.
    """
    topics: dict[str, list[str]] = defaultdict(list)
    for id in sorted(ids):
        topics[_topic(id)].append(id)
    return [
        unit
        for topic in topics.values()
        for unit in ([topic] if len(topic) <= TOGETHER else [[id] for id in topic])
    ]


def estimates(ids: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds for each check: its own, else the median of its topic, of its surface, or of all."""
    kin: dict[str, list[float]] = defaultdict(list)
    for id, duration in seconds.items():
        for name in _kin(id):
            kin[name].append(duration)
    medians = {name: statistics.median(values) for name, values in kin.items()}
    return {id: seconds.get(id, _typical(id, medians)) for id in ids}


def _typical(id: str, medians: Mapping[str, float]) -> float:
    return next((medians[name] for name in _kin(id) if name in medians), 0.0)


def _topic(id: str) -> str:
    return id.partition(":")[0]


def _kin(id: str) -> Iterator[str]:
    """What a check has in common with others, narrowest first."""
    yield _topic(id)
    yield id.partition("/")[0]
    yield ""
