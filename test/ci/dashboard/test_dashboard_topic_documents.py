# SPDX-License-Identifier: BSD-3-Clause
"""The document of a topic says how its checks come out everywhere, and what was said."""

from __future__ import annotations

import json
from typing import Any

import dashboard_oracle
import pytest
from dashboard_pages import valid
from dashboard_sample import BLOCKED, BROKEN, CRASHED, RENAMED, SLOWED, report, sample

from torch_backend_ci.dashboard.pages import check
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.render import encode
from torch_backend_ci.dashboard.stems import topic_of

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


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


def document(model: Model, id: str) -> dict[str, Any]:
    """Of the topic of a check, as programs read it; it keeps to its schema."""
    topic = topic_of(id)
    mine = sorted((c for c in model.checks() if topic_of(c.id) == topic), key=lambda c: c.id)
    told: dict[str, Any] = json.loads(encode(check.document(topic, mine, model)))
    valid(told)
    return told


def courses(told: dict[str, Any], id: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What the document says of a check in each series, with texts and outcomes in place of
    indices and letters."""
    named = {
        ":".join(filter(None, (told["topic"], one["name"]))): one
        for group in told["groups"]
        for one in group["checks"]
    }
    return {
        (series["backend"], series["line"]): {
            **course,
            "said": told["said"][course["said"]] if "said" in course else {},
        }
        for course in named[id]["courses"]
        for series in [told["series"][course["series"]]]
    }


def of(model: Model, id: str, backend: str = "cpu", line: str = "2.13") -> dict[str, Any]:
    return courses(document(model, id), id)[backend, line]


def test_a_history_is_letters_with_the_runs_from_which_they_hold() -> None:
    told = document(nights("pass", "pass", WRONG, None, "pass"), BROKEN)
    assert courses(told, BROKEN)["cpu", "2.13"]["history"] == "A0B2-3A4"
    assert [state[0] for state in told["states"]] == ["pass", "fail"]


def test_what_the_newest_run_says_is_told_and_whether_it_is_bad() -> None:
    mine = of(nights("pass", WRONG), BROKEN)
    assert mine["bad"]
    assert mine["said"]["message"] == WRONG["message"]
    assert mine["said"]["repro"] == WRONG["repro"]
    assert "last_bad" not in mine


def test_what_was_bad_for_the_last_time_is_told_after_it_was_mended(model: Model) -> None:
    told = document(model, BROKEN)
    mine = courses(told, BROKEN)["puone-sim", "2.13"]
    assert "bad" not in mine
    assert (mine["last_bad"]["run"], mine["last_bad"]["outcome"]) == (2, "fail")
    assert told["said"][mine["last_bad"]["said"]]["message"].startswith("3 of 8 elements differ")


def test_a_check_that_vanished_ends_with_runs_that_do_not_have_it(model: Model) -> None:
    mine = of(model, RENAMED, "puone-sim")
    assert mine["history"].endswith("-2")
    assert mine["said"] == {}


def test_a_change_of_evidence_is_a_stretch_of_its_own(model: Model) -> None:
    mine = of(model, SLOWED, "puone-sim")
    assert len(mine["history"]) == 4
    assert mine["said"]["fallbacks"] == ["aten::add.out"]


def test_series_that_never_had_a_check_are_not_told_of_it() -> None:
    both = [report("cpu"), report("puone", without=(BROKEN,))]
    told = document(dashboard_oracle.model(both), BROKEN)
    assert [one["backend"] for one in told["series"]] == ["cpu", "puone"]
    assert courses(told, BROKEN).keys() == {("cpu", "2.13")}


def test_what_is_blocked_upstream_is_not_bad(model: Model) -> None:
    mine = of(model, BLOCKED, "puone-sim")
    assert "https://github.com/pytorch/pytorch" in mine["said"]["reason"]
    assert "bad" not in mine


def test_an_expectation_that_decided_is_named() -> None:
    entry = {"list": "xfail", "entry": "memory/*"}
    mine = of(nights({"outcome": "xfail", "reason": "not yet", "excused": entry}), BROKEN)
    assert mine["said"]["waiver"] == "xfail: memory/*"
    assert "bad" not in mine


def test_a_flake_is_bad_unless_an_expectation_lists_it() -> None:
    attempts = [{"outcome": "fail", "message": "no"}, {"outcome": "pass"}]
    red = {"outcome": "flaky", "message": "no", "repro": "import torch", "attempts": attempts}
    listed = {
        "outcome": "flaky",
        "reason": "known",
        "excused": {"list": "flaky", "entry": BROKEN},
    }
    assert of(nights(red), BROKEN)["bad"]
    mixed = of(nights(red, listed), BROKEN)
    assert "bad" not in mixed
    assert mixed["history"] == "A0", "as bad or not is no other outcome"


def test_what_several_backends_say_alike_is_said_once() -> None:
    made = [report(name, outcomes={BROKEN: WRONG}) for name in ("cpu", "puone", "other")]
    told = document(dashboard_oracle.model(made), BROKEN)
    assert [one["message"] for one in told["said"] if "message" in one] == [WRONG["message"]]


def test_a_long_message_is_cut_and_said_how_much_is_left_out() -> None:
    long = {**WRONG, "message": "x" * (check.MAX_TEXT + 1234)}
    said = of(nights(long), BROKEN)["said"]
    assert said["left_out"] == 1234
    assert len(said["message"]) == check.MAX_TEXT


def test_a_series_without_a_complete_run_is_not_told() -> None:
    made = [report("cpu"), report("puone", complete=False)]
    told = document(dashboard_oracle.model(made), BROKEN)
    assert [one["backend"] for one in told["series"]] == ["cpu"]


@pytest.mark.parametrize("id", [BROKEN, SLOWED, BLOCKED, CRASHED, RENAMED])
def test_the_checks_of_a_topic_are_in_its_document_with_their_requirements(
    id: str, model: Model
) -> None:
    told = document(model, id)
    (asked,) = {requirement for group in told["groups"] for requirement in group["requirements"]}
    assert told["statements"] == {asked: model.requirements[asked].statement}
    assert courses(told, id)
