# SPDX-License-Identifier: BSD-3-Clause
"""Two runs on a page: the very comparison that the command line makes, or why there is none."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import synthetic
from dashboard_findings import between, finding, model
from dashboard_pages import Shown, comparisons, shown
from dashboard_sample import BROKEN, CHECKS, HOSTILE, RENAMED, SLOWED, report, sample
from synthetic import Content

from torch_backend_ci.dashboard import causes, pairs
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import compare
from torch_backend_ci.dashboard.pairs import Pair
from torch_backend_ci.dashboard.read import Model
from torch_conformance.results import comparison

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ"}


def night(day: int, **more: Any) -> Content:
    return report(started=f"2026-11-{day:02}T02:00:00+00:00", **more)


def newest(made: Model) -> Pair:
    return next(pairs.consecutive(made, Key("cpu", "2.13")))


def page(*reports: Content) -> Shown:
    made = model(reports)
    return shown(compare.page(newest(made), made))


def told(made: comparison.Comparison) -> dict[str, Any]:
    """Without the names, which are those of files on the command line."""
    return {name: value for name, value in made.to_json().items() if name not in ("old", "new")}


OLD = night(
    1,
    outcomes={
        BROKEN: WRONG,
        SLOWED: {"evidence": "native"},
        "smoke/smoke_001:c0": {
            "outcome": "flaky",
            "excused": {"list": "flaky", "entry": "smoke/*"},
        },
        "model/model_001:c0": WRONG,
        "model/model_001:c1": "xfail",
        "opinfo/opinfo_unary_001:c1": "unsupported",
    },
    without=("device/dev_001:c0", "device/dev_001:c1"),
)
NEW = night(
    2,
    python="3.14.0",
    outcomes={
        SLOWED: {"evidence": "fallback", "fallbacks": ["aten::add.out", "aten::mul.out"]},
        "smoke/smoke_001:c0": "flaky",
        "model/model_001:c0": "unsupported",
        "model/model_001:c1": {"outcome": "crash", "message": "SIGSEGV\n at 0x12"},
        "opinfo/opinfo_unary_001:c1": "blocked_upstream",
        "device/dev_001:c0": WRONG,
    },
    without=(RENAMED,),
    capabilities=synthetic.run()["capabilities"]
    | {"streams": {"value": False, "source": "declared"}},
)


def compared_by_suite(old: Content, new: Content) -> comparison.Comparison:
    """What the suite's own comparison says."""
    before, after = (comparison.side_of(synthetic.document(one)) for one in (old, new))
    return comparison.compare(before, after)


def test_the_page_says_what_the_command_line_says() -> None:
    expected = compared_by_suite(OLD, NEW)
    for name in ("regressions", "improvements", "withdrawn", "changed", "added", "removed"):
        assert getattr(expected, name), f"nothing is of the list {name}: the test is of no use"
    assert expected.capabilities
    assert expected.notes
    made = page(OLD, NEW)
    assert {k: v for k, v in made.data["comparison"].items() if k not in ("old", "new")} == told(
        expected
    )
    for change in [*expected.regressions, *expected.removed, *expected.withdrawn, *expected.added]:
        assert change.id in made.text
    assert "capability streams there, probed absent, declared" in made.text
    assert "python 3.11.7 3.14.0" in made.text


@pytest.mark.parametrize("seed", range(20))
def test_for_any_two_reports_the_page_says_what_the_command_line_says(seed: int) -> None:
    draw = random.Random(seed)

    def drawn(day: int) -> Content:
        outcomes = {id: draw.choice(OUTCOMES) for id in CHECKS if draw.random() < 0.6}
        gone = tuple(id for id in CHECKS if draw.random() < 0.1)
        return night(day, outcomes=outcomes, without=gone)

    old, new = drawn(1), drawn(2)
    made = model([old, new])
    runs = made.series[Key("cpu", "2.13")].runs
    expected = compared_by_suite(old, new)
    assert told(pairs.compared(made, Pair(*runs))) == told(expected)


OUTCOMES: list[Any] = [
    "pass",
    WRONG,
    "crash",
    "xfail",
    "unsupported",
    "blocked_upstream",
    "flaky",
    {"outcome": "flaky", "excused": {"list": "flaky", "entry": "*"}},
    {"evidence": "fallback", "fallbacks": ["aten::add.out"]},
    {"evidence": "native"},
    {"evidence": None},
]


# Runs that did not ask the same.


@pytest.mark.parametrize(
    ("differs", "name"),
    [
        ({"seed": 7}, "seed"),
        ({"source": {"commit": None, "digest": "b" * 64}}, "suite"),
        ({"device_type": "other"}, "backend"),
        ({"options": synthetic.run()["options"] | {"isolate": "test"}}, "options"),
    ],
)
def test_runs_that_did_not_ask_the_same_are_refused_and_the_page_says_why(
    differs: dict[str, Any], name: str
) -> None:
    old, new = night(1), night(2, outcomes={BROKEN: WRONG}, **differs)
    with pytest.raises(comparison.IncomparableError) as refusal:
        compared_by_suite(old, new)
    made = page(old, new)
    assert refusal.value.names == [name]
    assert [f"  {sentence}" for sentence in made.data["refused"]] == str(
        refusal.value
    ).splitlines()[1:]
    assert made.data["comparison"] is None
    assert f"--across {name}" in made.text
    assert "Regressions" not in made.text


def test_the_command_that_the_page_gives_is_one_that_the_suite_takes() -> None:
    differs: dict[str, Any] = {"seed": 7, "source": {"commit": None, "digest": "b" * 64}}
    made = page(night(1), night(2, **differs))
    assert (
        "python -m torch_conformance compare OLD.json NEW.json --across suite --across seed"
        in made.text
    )


def test_runs_whose_results_are_not_kept_any_more_are_not_said_to_have_lost_their_checks() -> None:
    made = model([night(1), night(2, outcomes={BROKEN: WRONG})])
    old, new = newest(made)
    pair = Pair(replace(old, kept=False), new)
    shown_page = shown(compare.page(pair, made))
    assert "cannot be compared any more" in shown_page.text
    assert "2026-11-01 02:00 are not kept any more" in shown_page.text
    assert "--across" not in shown_page.text
    assert shown_page.data["comparison"] is None


# Which runs have a page.


def test_a_run_that_is_as_the_one_before_it_has_no_page() -> None:
    made = model([night(1), night(2), night(3, outcomes={BROKEN: WRONG}), night(4)])
    days = [
        (pair.old.started.day, pair.new.started.day)
        for pair in pairs.consecutive(made, Key("cpu", "2.13"))
    ]
    assert days == [(3, 4), (2, 3)]


@pytest.mark.parametrize(
    "differs",
    [
        {"outcomes": {SLOWED: {"evidence": "fallback"}}},
        {"seed": 3},
        {
            "capabilities": synthetic.run()["capabilities"]
            | {"streams": {"value": False, "source": "probed"}}
        },
    ],
)
def test_what_is_no_outcome_may_be_what_changed(differs: dict[str, Any]) -> None:
    made = model([night(1), night(2, **differs)])
    assert len(list(pairs.consecutive(made, Key("cpu", "2.13")))) == 1


def test_of_a_long_series_the_newest_changes_have_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pairs.NEWEST == 30
    monkeypatch.setattr(pairs, "NEWEST", 3)
    made = model(night(day, outcomes={BROKEN: WRONG} if day % 2 else {}) for day in range(1, 9))
    found = list(pairs.consecutive(made, Key("cpu", "2.13")))
    assert [pair.new.started.day for pair in found] == [8, 7, 6]


def test_neighbouring_lines_are_compared_by_their_columns() -> None:
    made = model(sample().values())
    lines = [(pair.old.key.line, pair.new.key.line) for pair in pairs.neighbours(made, "puone-sim")]
    assert lines == [("2.12", "2.13"), ("2.13", "nightly")]
    for pair in pairs.neighbours(made, "puone-sim"):
        assert pair == (made.series[pair.old.key].column, made.series[pair.new.key].column)


def test_every_comparison_that_another_page_links_has_a_page() -> None:
    torches = ("2.11.0", "2.12.1", "2.13.0")
    made = model(
        [
            report(torch=torch, started=f"2026-11-01T0{n}:00:00+00:00")
            for n, torch in enumerate(torches)
        ],
        between("2.11.0", "2.13.0", finding()),
    )
    lines = [(pair.old.key.line, pair.new.key.line) for pair in compare.wanted(made)]
    assert lines == [("2.11", "2.12"), ("2.12", "2.13"), ("2.11", "2.13")]
    assert len({page.path for page in comparisons(made)}) == 3


def test_without_runs_and_with_one_there_is_nothing_to_compare() -> None:
    assert comparisons(model([])) == []
    assert comparisons(model([night(1)])) == []


def test_the_title_says_what_is_compared() -> None:
    made = model([night(1), night(2), report(started="2026-11-02T05:00:00+00:00")])
    one, two, three = made.series[Key("cpu", "2.13")].runs
    assert compare.title(Pair(one, two)) == "cpu, torch 2.13: 2026-11-01 to 2026-11-02"
    assert compare.title(Pair(two, three)) == "cpu, torch 2.13: 2026-11-02 to 05:00"
    made = model([report(torch="2.12.1"), report(torch="2.13.0")])
    (pair,) = pairs.neighbours(made, "cpu")
    assert compare.title(pair) == "cpu: torch 2.12.1 to 2.13.0"


def test_of_what_differs_besides_and_has_parts_only_those_are_said_that_differ() -> None:
    sim = {"name": "sim", "version": "1.0", "features": ["streams", "graphs"]}
    old = night(1, driver=sim)
    new = night(2, driver=sim | {"version": "1.1", "features": []}, outcomes={BROKEN: WRONG})
    (pair,) = pairs.consecutive(model([old, new]), Key("cpu-sim", "2.13"))
    assert pairs.apart(pair) == [
        ("driver features", "streams, graphs", "none"),
        ("driver version", "1.0", "1.1"),
    ]


# How much there is to read.


def test_5000_changes_are_a_few_lines_and_all_in_the_document() -> None:
    def many(day: int, outcome: str) -> Content:
        records = [
            synthetic.record("OPINFO-UNARY-001", outcome, n, **said(n, outcome))
            for n in range(5000)
        ]
        return synthetic.content(
            records, started=f"2026-11-{day:02}T02:00:00+00:00", backend="cpu", device_type="cpu"
        )

    def said(n: int, outcome: str) -> dict[str, str]:
        return {"message": f"op{n} raised {n % 200}: at {n}"} if outcome == "error" else {}

    made = page(many(1, "pass"), many(2, "error"))
    assert len(made.data["comparison"]["regressions"]) == 5000
    assert "Regressions 5,000" in made.text
    assert made.html.count("<tr>") <= causes.ROOM + compare.MOST_CAUSES
    assert len(made.html) < 120_000
    assert "more" in made.text


def test_causes_keep_apart_what_changed_otherwise() -> None:
    changes = [
        comparison.Change("a/x:c1", "pass", "fail", "3 of 8"),
        comparison.Change("a/x:c2", "pass", "fail", "5 of 9"),
        comparison.Change("a/x:c3", "xfail", "fail", "3 of 8"),
        comparison.Change("a/x:c4", "pass", "crash", "SIGSEGV"),
    ]
    found = causes.of_comparison(changes, {})
    assert [(c.before, c.after, c.text, c.ids) for c in found] == [
        ("pass", "fail", "N of N in a/x", ("a/x:c1", "a/x:c2")),
        ("pass", "crash", "SIGSEGV", ("a/x:c4",)),
        ("xfail", "fail", "N of N in a/x", ("a/x:c3",)),
    ]


def test_whatever_runs_say_is_text() -> None:
    for one in comparisons(model(sample().values())):
        made = shown(one.make())
        assert {"script", "img"}.isdisjoint(made.tags)
        assert "\u202e" not in made.html
        assert HOSTILE not in made.html
