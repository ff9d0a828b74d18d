# SPDX-License-Identifier: BSD-3-Clause
"""What is in the two relations of a store: names, DuckDB's types, meanings.

New files have exactly these columns. What earlier suites did not write is read by
former_columns.py; any other change of the columns is a new schema of stores.
"""

from __future__ import annotations

from typing import NamedTuple

from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import BAD, BAD_UNLESS_LISTED, Outcome


class Column(NamedTuple):
    """One column of a relation."""

    type: str
    meaning: str


_COUNTS = "MAP(VARCHAR, INTEGER)"
_BLOCKER = "STRUCT(what VARCHAR, why VARCHAR, checks INTEGER, example VARCHAR)"
_STEP = (
    "STRUCT(name VARCHAR, title VARCHAR, verified INTEGER, must INTEGER, "
    f"should_verified INTEGER, should INTEGER, blockers {_BLOCKER}[])"
)

RUNS = {
    "id": Column("VARCHAR", "SHA-256 of the report's bytes, unpacked; in hex"),
    "backend": Column("VARCHAR", "its label: `name`, and `-DRIVER` if the report names a driver"),
    "line": Column(
        "VARCHAR", "the release line of torch, `2.13`; `nightly` if it is not a release"
    ),
    "name": Column("VARCHAR", "of the backend, as in the report"),
    "device_type": Column("VARCHAR", "as in the report"),
    "torch": Column("VARCHAR", "version of torch"),
    "torch_git": Column("VARCHAR", "its commit; null if torch does not say"),
    "suite": Column("VARCHAR", "version of the suite"),
    "suite_commit": Column("VARCHAR", "of its checkout; null if it was installed"),
    "suite_digest": Column("VARCHAR", "of the suite's files"),
    "python": Column("VARCHAR", "version of Python"),
    "platform": Column("VARCHAR", "as in the report"),
    "driver": Column("VARCHAR", "what the backend says of its driver, as JSON; null if nothing"),
    "devices": Column("VARCHAR[]", "names of the devices under test"),
    "seed": Column("BIGINT", "of the run"),
    "options": Column("VARCHAR", "of the run, as JSON"),
    "started": Column("TIMESTAMP", "in UTC"),
    "duration_s": Column("DOUBLE", "of the run, in seconds"),
    "complete": Column("BOOLEAN", "whether every selected check was executed or decided"),
    "selected": Column("INTEGER", "how many checks were selected; null if that is not known"),
    "differs_by": Column("VARCHAR[]", "what made the selection differ from the standard one"),
    "cannot_load": Column("VARCHAR", "why the backend did not come up; null if it did"),
    "capabilities": Column(
        "MAP(VARCHAR, STRUCT(value BOOLEAN, source VARCHAR))", "of the backend, as in the report"
    ),
    "descriptor": Column("VARCHAR", "SHA-256 of the backend's descriptor; null without one"),
    "expectations": Column("VARCHAR", "SHA-256 of its expectations; null without any"),
    "shards": Column("INTEGER", "of how many shards the run was merged; 0: it was run whole"),
    "why_not": Column("VARCHAR", "why the run has no level; null for an aligned run"),
    "level": Column("VARCHAR", "the highest conformance level reached; null without one"),
    "title": Column("VARCHAR", "of the level; `none` without one"),
    "steps": Column(f"{_STEP}[]", "how far the run is with each level, lowest first"),
    "without": Column("VARCHAR[]", "capabilities that the backend lacks"),
    "broken": Column(
        "MAP(VARCHAR, VARCHAR)", "its broken capabilities, and what the probe of each saw"
    ),
    "standings": Column("MAP(VARCHAR, VARCHAR)", "the state of each requirement in an aligned run"),
    "totals": Column(_COUNTS, "how many checks had each outcome; every outcome is listed"),
    "evidence": Column(_COUNTS, "how many checks had evidence; each of the three is listed"),
    "surfaces": Column(f"MAP(VARCHAR, {_COUNTS})", "the totals of each surface, without zeros"),
    "bad": Column("INTEGER", "how many checks make the run red"),
    "stored": Column("INTEGER", "how many results are in the store; 0 past their retention"),
}

RESULTS = {
    "run": Column("VARCHAR", "`id` of the run"),
    "check_id": Column("VARCHAR", "of the check; the files are sorted by it, then by run"),
    "surface": Column("VARCHAR", "of the check"),
    "tier": Column("VARCHAR", "of the check"),
    "level": Column("VARCHAR", "of the check: must, should, may"),
    "requirements": Column("VARCHAR[]", "that it verifies"),
    "outcome": Column("VARCHAR", "how it ended"),
    "evidence": Column("VARCHAR", "native, composite, fallback, or null"),
    "duration_s": Column("DOUBLE", "in seconds, to three digits"),
    "message": Column("VARCHAR", "what is wrong; null if nothing is"),
    "reason": Column("VARCHAR", "why the check did not pass although nothing is wrong"),
    "issue": Column("VARCHAR", "of PyTorch that blocks the check; null if none does"),
    "mismatch": Column(
        "VARCHAR",
        "in what a result differs from the expected one, "
        "if the check failed by that: " + ", ".join(Mismatch),
    ),
    "repro": Column("VARCHAR", "code or a command that repeats it"),
    "fallbacks": Column("VARCHAR[]", "operators that ran by CPU fallback"),
    "waiver_list": Column("VARCHAR", "of the expectation that decided: unsupported, xfail, flaky"),
    "waiver_id": Column("VARCHAR", "of the expectation that decided"),
    "samples": Column("BIGINT", "verifications inside the check; null if it does not say"),
}


def _any_of(outcomes: frozenset[Outcome]) -> str:
    return f"outcome IN ({', '.join(repr(outcome.value) for outcome in sorted(outcomes))})"


#: Of a row of results, in SQL: whether it makes its run red, by the data of `is_unexpected`.
IS_BAD = f"({_any_of(BAD)} OR {_any_of(BAD_UNLESS_LISTED)} AND waiver_list IS NULL)"


def as_struct(columns: dict[str, Column]) -> str:
    """The columns as the argument `columns` of DuckDB's readers."""
    return "{" + ", ".join(f"'{name}': '{column.type}'" for name, column in columns.items()) + "}"


def names(columns: dict[str, Column]) -> str:
    """The columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in columns)


def empty(columns: dict[str, Column]) -> str:
    """A query that gives the columns and no row."""
    cast = ", ".join(f'NULL::{column.type} AS "{name}"' for name, column in columns.items())
    return f"SELECT {cast} WHERE false"
