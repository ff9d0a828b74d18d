# SPDX-License-Identifier: BSD-3-Clause
"""The page of a check says how it comes out everywhere, since when, and what was said."""

from __future__ import annotations

from typing import Any

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BLOCKED, BROKEN, CRASHED, RENAMED, SLOWED, report, sample

from ci.dashboard import paths
from ci.dashboard.model import Key
from ci.dashboard.pages.check import page_of_check
from ci.dashboard.read import Model
from ci.dashboard.texts import MOST, ROOM

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


def of(model: Model, id: str) -> Shown:
    return shown(page_of_check(next(c for c in model.checks() if c.id == id), model))


def nights(*outcomes: dict[str, Any] | str | None) -> Model:
    """One backend; what `BROKEN` was in each night, None for a night without the check."""
    return dashboard_oracle.model(
        report(
            started=f"2026-11-{day + 1:02}T02:00:00+00:00",
            outcomes={BROKEN: outcome} if outcome else {},
            without=() if outcome else (BROKEN,),
        )
        for day, outcome in enumerate(outcomes)
    )


def series(page: Shown, backend: str = "cpu", line: str = "2.13") -> dict[str, Any]:
    return next(s for s in page.data["series"] if (s["backend"], s["line"]) == (backend, line))


def test_a_regression_is_shown_with_the_day_the_outcome_before_and_a_comparison() -> None:
    made = nights("pass", "pass", WRONG, WRONG)
    page = of(made, BROKEN)
    runs = made.series[Key("cpu", "2.13")].runs
    assert "fail in 1 of 1 column" in page.text
    assert "2026-11-03, was pass (regression) compare" in page.text
    assert paths.of_choice(runs[1], runs[2]) in page.links
    assert paths.of_run(runs[2]) in page.links
    assert "3 of 8 elements differ" in page.text
    assert "import torch" in page.text
    mine = series(page)
    assert mine["bad"]
    assert (mine["was"], mine["since"]["id"]) == ("pass", runs[2].id[:12])
    assert [spell["outcome"] for spell in mine["history"]] == ["pass", "fail"]


def test_what_was_bad_for_the_last_time_is_told_after_it_was_mended(model: Model) -> None:
    page = of(model, BROKEN)
    assert "When it was bad for the last time" in page.text
    assert "fail on puone-sim 2.13 (2026-11-19)" in page.text
    assert "3 of 8 elements differ" in page.text
    mine = series(page, "puone-sim")
    assert mine["now"]["outcome"] == "pass"
    assert mine["last_bad"]["outcome"] == "fail"
    assert mine["last_bad"]["run"]["started"].startswith("2026-11-19")


def test_a_check_that_vanished_is_said_to_be_gone_since_the_first_run_without_it(
    model: Model,
) -> None:
    page = of(model, RENAMED)
    mine = series(page, "puone-sim")
    assert mine["now"] is None
    assert mine["since"]["started"].startswith("2026-11-19")
    assert mine["was"] == "pass"
    assert "gone 2026-11-19, was pass" in page.text
    assert "gone in 3 of 9 columns" in page.text


def test_a_new_check_is_said_to_be_new() -> None:
    page = of(nights(None, None, "pass", "pass"), BROKEN)
    assert "pass native 2026-11-03, new then" in page.text


def test_a_check_that_never_changed_is_said_to_have_been_so_always() -> None:
    page = of(nights("pass", "pass", "pass"), BROKEN)
    assert "pass native 2026-11-01, always" in page.text
    assert "Now pass, 3 runs: 2026-11-01 to 2026-11-03" in page.text


def test_a_check_that_came_back_is_not_said_to_be_new() -> None:
    page = of(nights("pass", None, WRONG, "pass"), BROKEN)
    assert "2026-11-04, was fail (improvement) compare" in page.text


def test_a_change_of_evidence_does_not_begin_a_new_outcome(model: Model) -> None:
    page = of(model, SLOWED)
    mine = series(page, "puone-sim")
    assert len(mine["history"]) == 2
    assert mine["since"]["started"].startswith("2026-11-17")
    assert mine["now"]["evidence"] == "fallback"
    assert "By CPU fallback: aten::add.out" in page.text


def test_backends_that_never_had_the_check_are_named() -> None:
    both = [report("cpu"), report("puone", without=(BROKEN,))]
    page = of(dashboard_oracle.model(both), BROKEN)
    assert "pass in 1 of 1 column" in page.text
    assert "No complete run had it: puone torch 2.13" in page.text


def test_what_is_blocked_upstream_says_by_what(model: Model) -> None:
    page = of(model, BLOCKED)
    assert "blocked upstream in 3" in page.text
    assert "https://github.com/pytorch/pytorch" in page.text
    assert not series(page, "puone-sim")["bad"]


def test_an_expectation_that_decided_is_named() -> None:
    entry = {"list": "xfail", "entry": "memory/*"}
    page = of(nights({"outcome": "xfail", "reason": "not yet", "excused": entry}), BROKEN)
    assert "expected failure in 1 of 1 column" in page.text
    assert "Decided by the expectation xfail: memory/*" in page.text
    assert series(page)["now"]["waiver"] == "xfail: memory/*"
    assert not series(page)["bad"]


def test_a_flake_is_bad_unless_an_expectation_lists_it() -> None:
    attempts = [{"outcome": "fail", "message": "no"}, {"outcome": "pass"}]
    red = {"outcome": "flaky", "message": "no", "repro": "import torch", "attempts": attempts}
    listed = {
        "outcome": "flaky",
        "reason": "known",
        "excused": {"list": "flaky", "entry": BROKEN},
    }
    assert series(of(nights(red), BROKEN))["bad"]
    assert not series(of(nights(listed), BROKEN))["bad"]


def test_what_several_backends_say_alike_is_said_once() -> None:
    made = [report(name, outcomes={BROKEN: WRONG}) for name in ("cpu", "puone", "other")]
    page = of(dashboard_oracle.model(made), BROKEN)
    assert page.html.count("3 of 8 elements differ") == 1
    assert "fail on cpu 2.13, other 2.13, puone 2.13" in page.text


def test_a_requirement_is_linked_with_its_statement(model: Model) -> None:
    page = of(model, BROKEN)
    assert paths.of_requirement("MEM-003") in page.links
    assert model.requirements["MEM-003"].statement in page.text


def test_hostile_texts_are_text(model: Model) -> None:
    for id in (BROKEN, SLOWED, BLOCKED, CRASHED):
        page = of(model, id)
        assert "alert(1)" in page.text
        assert not page.tags & {"script", "img"}
        assert "\u202e" not in page.html
        assert "\\u202e" in page.text
        assert "\x1b" not in page.html


def test_a_long_message_is_cut_and_said_where_the_rest_is() -> None:
    long = {**WRONG, "message": "x" * (MOST + 1234)}
    page = of(nights(long), BROKEN)
    assert "1,234 more characters" in page.text
    assert paths.api(paths.of_check(BROKEN)) in page.links
    assert series(page)["now"]["message"] == long["message"]


def test_many_long_messages_share_the_room_of_a_page() -> None:
    made = [
        report(f"chip{n}", outcomes={BROKEN: {**WRONG, "message": f"{n} " + "x" * 4000}})
        for n in range(30)
    ]
    page = of(dashboard_oracle.model(made), BROKEN)
    assert page.html.count("x" * 200) == 30
    assert page.html.count("x") < 1.1 * ROOM


def test_a_check_of_a_series_without_a_complete_run_has_a_page() -> None:
    made = [report("cpu"), report("puone", complete=False)]
    page = of(dashboard_oracle.model(made), BROKEN)
    assert [s["backend"] for s in page.data["series"]] == ["cpu"]


def test_every_check_of_the_sample_has_a_page_whose_document_is_valid(model: Model) -> None:
    for check in model.checks():
        page = page_of_check(check, model)
        assert shown(page).data["id"] == check.id
        assert page.path == paths.of_check(check.id)
