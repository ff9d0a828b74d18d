# SPDX-License-Identifier: BSD-3-Clause
"""Runs of earlier suites keep their names in a store, and are read in today's.

The store of real runs in docs/dashboard has runs of torch 2.11 to 2.15 by a suite that called a
level Scale-out, had a level Compile, and one requirement for each topic of the operator database.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_backend_ci.dashboard import runs
from torch_backend_ci.results import duck, former_columns, schema
from torch_backend_ci.results.store import Store
from torch_conformance.results import levels
from torch_conformance.spec import catalogue, former_names, operator_families

NEW = ("issue", "mismatch")
STORE = Store(Path(__file__).resolve().parents[3] / "docs" / "dashboard" / "store")


def test_levels_of_old_runs_have_todays_names() -> None:
    found = STORE.read(runs.read)
    titles = {level.name: level.title for level in levels.every()}
    assert {run.level for run in found} >= {None, "multi_device"}
    assert all(run.title == titles[run.level] for run in found if run.level)
    aligned = [run for run in found if run.why_not is None]
    assert aligned
    known = tuple(titles.items())
    for run in aligned:  # the levels of its day, in the order of today's
        steps = tuple((step.name, step.title) for step in run.steps)
        assert steps == tuple(level for level in known if level in steps)
        assert len(steps) >= 4


def test_tiers_of_old_results_have_todays_names() -> None:
    with STORE.reading() as database:
        tiers = {
            tier for (tier,) in database.execute("SELECT DISTINCT tier FROM results").fetchall()
        }
    assert tiers <= set(catalogue.TIERS)
    assert tiers > {"smoke", "core", "inference", "training", "multi_device"}


def test_what_old_results_say_only_in_words_is_data() -> None:
    with STORE.reading() as database:
        blocked = database.execute(
            "SELECT DISTINCT issue, starts_with(reason, issue) FROM results "
            "WHERE outcome = 'blocked_upstream'"
        ).fetchall()
        others = database.execute(
            "SELECT count(issue) FROM results WHERE outcome <> 'blocked_upstream'"
        ).fetchone()
        wrong = database.execute(
            "SELECT mismatch, message FROM results WHERE message LIKE '%elements differ; first at%'"
        ).fetchall()
    assert blocked and all(issue.startswith("https://") and begins for issue, begins in blocked)
    assert others == (0,)
    assert all(mismatch in ("all_values", "some_values") for mismatch, _ in wrong)


def test_a_store_of_old_and_new_results_is_one(tmp_path: Path) -> None:
    columns = {name: schema.RESULTS[name] for name in ("outcome", "message", "reason", *NEW)}
    texts = ("NULL", "'x; 1 of 1 elements differ; first at (0,)'", "'2 of 3 elements differ; '")
    rows = ", ".join(f"('fail', {text}, NULL)" for text in texts)
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    with duck.connected() as database:
        said = f"SELECT * FROM (VALUES {rows}, ('blocked_upstream', NULL, 'a; b')) "
        said += "AS t(outcome, message, reason)"
        database.execute(f"COPY ({said}) TO {duck.literal(str(old))}")
        said = "SELECT 'fail' AS outcome, '1 of 1 elements differ; first at ' AS message, "
        said += "'c; d' AS reason, 'i' AS issue, 'shape' AS mismatch"
        database.execute(f"COPY ({said}) TO {duck.literal(str(new))}")
        query = former_columns.query(database, [old, new], columns)
        found = database.execute(f"SELECT issue, mismatch FROM ({query})").fetchall()
    assert sorted(found, key=str) == [
        ("a", None),
        ("i", "shape"),
        (None, "all_values"),
        (None, None),
        (None, None),
    ]


@pytest.fixture(scope="module")
def checks() -> dict[str, dict[str, list[str]]]:
    """The checks of the operator database by line of torch, with their requirements of then."""
    query = (
        "SELECT DISTINCT line, check_id, requirements FROM results JOIN runs ON runs.id = run "
        "WHERE surface = 'opinfo'"
    )
    found: dict[str, dict[str, list[str]]] = {}
    with STORE.reading() as database:
        for line, id, requirements in database.execute(query).fetchall():
            found.setdefault(line, {})[id] = requirements
    return found


def test_each_operator_of_every_torch_is_in_a_family(
    checks: dict[str, dict[str, list[str]]],
) -> None:
    assert set(checks) == {"2.11", "2.12", "2.13", "2.14", "2.15"}
    for ids in checks.values():
        assert operator_families.unlisted(ids) == []


def test_every_torch_has_checks_of_each_requirement_of_operators(
    checks: dict[str, dict[str, list[str]]],
) -> None:
    of_operators = {r.id for r in catalogue.load().values() if r.surface == "opinfo"}
    for ids in checks.values():
        today = {
            new
            for id, requirements in ids.items()
            for new in former_names.requirements(requirements, id)
        }
        assert today == of_operators
