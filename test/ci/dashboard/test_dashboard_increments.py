# SPDX-License-Identifier: BSD-3-Clause
"""However a store came to be, its model is the same; changes are those of a comparison."""

from __future__ import annotations

import random
from pathlib import Path

import dashboard_oracle
import pytest
import synthetic
from dashboard_sample import CHECKS, report, store
from synthetic import Content, Record
from test_dashboard_build import assert_alike, model

from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.results.compact import compact
from torch_backend_ci.results.store import Store
from torch_conformance.results import comparison

IDS = list(CHECKS)[:6]
BACKENDS, TORCHES = ("cpu", "other"), ("2.12.1", "2.13.0")
LISTED: Record = {
    "outcome": "flaky",
    "reason": "known",
    "excused": {"list": "flaky", "entry": "operator/*"},
}
OUTCOMES: list[str | Record] = [
    "pass",
    "pass",
    "pass",
    {"evidence": "fallback", "fallbacks": ["aten::add"]},
    "fail",
    "crash",
    "xfail",
    "unsupported",
    "blocked_upstream",
    "flaky",
    LISTED,
]


def drawn(draw: random.Random, day: int) -> Content:
    """A report of a day at some hour, in which anything may have happened."""
    started = f"2026-11-{day:02}T{draw.randrange(24):02}:00:00+00:00"
    outcomes = {id: draw.choice(OUTCOMES) for id in IDS if draw.random() < 0.5}
    without = tuple(id for id in IDS if draw.random() < 0.1)
    return report(
        draw.choice(BACKENDS),
        draw.choice(TORCHES),
        started,
        {id: outcome for id, outcome in outcomes.items() if id not in without},
        without=(*without, *list(CHECKS)[8:]),
        complete=draw.random() < 0.9,
    )


def compared_by_suite(old: Content, new: Content) -> comparison.Comparison:
    """What the suite's own comparison says."""
    before, after = (comparison.side_of(synthetic.document(one)) for one in (old, new))
    return comparison.compare(before, after)


@pytest.mark.parametrize("seed", range(2))
def test_reports_in_any_order_and_number_at_a_time_make_the_same_model(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    coming = [drawn(draw, day) for day in range(1, 17)]
    late = draw.sample(coming, 2)
    coming = [made for made in coming if made not in late] + late
    there: list[Content] = []
    while coming:
        count = draw.randrange(3, 9)
        batch, coming = coming[:count], coming[count:]
        there += batch
        store(tmp_path / "store", {str(number): made for number, made in enumerate(batch)})
        made = model(tmp_path / "store", tmp_path / "state")
        assert_alike(made, dashboard_oracle.model(there))


def test_what_retention_takes_from_the_store_goes_from_the_history(tmp_path: Path) -> None:
    draw = random.Random(9)
    reports = {str(day): drawn(draw, day) for day in range(1, 12)}
    folder = store(tmp_path / "store", reports)
    before = list(model(folder, tmp_path / "state").checks())
    for _ in compact(Store(folder), keep_days=4):
        pass
    store(folder, {"new": drawn(draw, 12)})
    after = model(folder, tmp_path / "state")
    assert any(not run.kept for series in after.series.values() for run in series.runs)
    assert list(after.checks()) != before
    assert_alike(after, model(folder, tmp_path / "anew"))


@pytest.mark.parametrize("seed", range(5))
def test_a_regression_is_what_the_comparison_of_two_reports_calls_one(seed: int) -> None:
    draw = random.Random(seed)
    pair: list[Content] = []
    while len(pair) < 2:
        made = drawn(draw, len(pair) + 1)
        if made["complete"]:
            said = {
                "backend": "cpu",
                "device_type": "cpu",
                "torch": {"version": "2.13.0", "git": None},
            }
            pair.append(made | {"run": made["run"] | said})
    compared = compared_by_suite(pair[0], pair[1])
    changes = dashboard_oracle.model(pair).changes(Key("cpu", "2.13"))
    for kind, expected in (
        ("regression", compared.regressions),
        ("improvement", compared.improvements),
    ):
        assert {c.check for c in changes if c.kind == kind} <= {c.id for c in expected}
    outcomes = {c.id for c in compared.regressions if c.new != "fallback"}
    assert outcomes <= {c.check for c in changes if c.kind == "regression"}
