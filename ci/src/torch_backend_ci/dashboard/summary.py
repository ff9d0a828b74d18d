# SPDX-License-Identifier: BSD-3-Clause
"""Results of many runs summed up in DuckDB: a track for each check in each series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from torch_backend_ci.dashboard.model import DURATIONS, Result
from torch_backend_ci.dashboard.track import Stay, Track, detail
from torch_backend_ci.results.schema import IS_BAD

Place = tuple[int, int]
"""Number of a series, and of a run in it."""
#: In the order of `Result`.
RESULT = (
    "outcome, evidence, duration_s, message, reason, repro, fallbacks, "
    "waiver_list || ': ' || waiver_id, samples, issue, mismatch"
)


class Span(NamedTuple):
    """Check ids from one to before another."""

    first: str
    end: str | None
    """None: to the last."""


def prepare(database: duckdb.DuckDBPyConnection, wanted: Mapping[str, Place]) -> None:
    """Say once which runs (by their ids) are summed up, and as what."""
    rows = [(id, *place) for id, place in wanted.items()]
    database.execute("CREATE TEMP TABLE wanted (run VARCHAR, series INTEGER, place INTEGER)")
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        database.execute("INSERT INTO wanted SELECT unnest(?), unnest(?), unnest(?)", columns)


def tracks(database: duckdb.DuckDBPyConnection, span: Span) -> Iterator[tuple[str, int, Track]]:
    """Check, number of the series and track, in the order of checks, then series."""
    until = "" if span.end is None else " AND check_id < ?"
    bounds = [span.first] if span.end is None else [span.first, span.end]
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE chunk AS SELECT series, place, results.*, {IS_BAD} AS bad "
        f"FROM results JOIN wanted USING (run) WHERE check_id >= ?{until}",
        bounds,
    )
    stays = _stays(database.execute(_STAYS).fetchall())
    newest, bad = _newest(database, "true"), _newest(database, "bad")
    for row in database.execute(_GROUPS).fetchall():
        check, series, last, tier, level, requirements, durations = row
        place, result = newest[check, series]
        worst = bad.get((check, series))
        yield (
            check,
            series,
            Track(
                tier,
                level,
                tuple(requirements),
                tuple(_ended(stays[check, series], last)),
                result,
                worst and (worst[0], result if worst[0] == place else worst[1]),
                tuple(reversed(durations)),
            ),
        )


_STAYS = """
SELECT check_id, series, outcome, evidence, bad, place, before, message, reason, fallbacks,
    mismatch
FROM (
    SELECT *, lag(place) OVER w AS before, lag(outcome) OVER w AS outcome_before,
        lag(evidence) OVER w AS evidence_before, lag(bad) OVER w AS bad_before
    FROM chunk WINDOW w AS (PARTITION BY check_id, series ORDER BY place)
)
WHERE before IS NULL OR before <> place - 1 OR outcome <> outcome_before
    OR evidence IS DISTINCT FROM evidence_before OR bad <> bad_before
ORDER BY check_id, series, place
"""
_GROUPS = f"""
SELECT check_id, series, max(place), arg_max(tier, place), arg_max(level, place),
    arg_max(requirements, place), arg_max(duration_s, place, {DURATIONS})
FROM chunk GROUP BY check_id, series ORDER BY check_id, series
"""


def _stays(rows: Iterable[Sequence[Any]]) -> dict[tuple[str, int], list[tuple[int | None, Stay]]]:
    """Where each stay begins, and where the one before it ended."""
    found: dict[tuple[str, int], list[tuple[int | None, Stay]]] = defaultdict(list)
    for check, series, outcome, evidence, bad, place, before, *texts, mismatch in rows:
        said = detail(evidence, *texts)
        stay = Stay(outcome, evidence, bad, place, place, said, mismatch)
        found[check, series].append((before, stay))
    return found


def _ended(begun: Sequence[tuple[int | None, Stay]], last: int) -> Iterator[Stay]:
    ends = [before for before, _ in begun[1:]]
    for (_, stay), end in zip(begun, [*ends, last], strict=True):
        yield stay if end is None else stay._replace(last=end)


def _newest(
    database: duckdb.DuckDBPyConnection, which: str
) -> dict[tuple[str, int], tuple[int, Result]]:
    """The newest result of those, of each check in each series, and its place."""
    query = (
        f"SELECT check_id, series, place, {RESULT} FROM chunk JOIN (SELECT check_id, series, "
        f"max(place) AS place FROM chunk WHERE {which} GROUP BY check_id, series) "
        "USING (check_id, series, place)"
    )
    return {
        (check, series): (place, result(said))
        for check, series, place, *said in database.execute(query).fetchall()
    }


def result(values: Sequence[Any]) -> Result:
    """From the columns `RESULT`."""
    outcome, evidence, seconds, message, reason, repro, fallbacks, *rest = values
    return Result(outcome, evidence, seconds, message, reason, repro, tuple(fallbacks), *rest)
