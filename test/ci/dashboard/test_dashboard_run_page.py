# SPDX-License-Identifier: BSD-3-Clause
"""The page of a run says what was run, how far it came, what was bad, and how to run it again."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BROKEN, CHECKS, CRASHED, RENAMED, SLOWED, report, sample

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.model import Key, Run
from torch_backend_ci.dashboard.pages.run import (
    MAX_BAD,
    MAX_CAUSES,
    MAX_NAMED,
    commands,
    page_of_run,
)
from torch_backend_ci.dashboard.read import Model

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


def night(model: Model, key: Key, number: int) -> Run:
    return model.series[key].runs[number]


def of(model: Model, run: Run) -> Shown:
    return shown(page_of_run(run, model))


def single(**run: Any) -> tuple[Model, Run]:
    model = dashboard_oracle.model([report(**run)])
    (series,) = model.series.values()
    return model, (*series.runs, *series.others)[0]


def test_it_names_what_was_run(model: Model) -> None:
    page = of(model, night(model, Key("puone-sim", "2.13"), 2))
    for said in ("puone-sim", "torch 2.13.0", "2026-11-19 03:00 UTC", "name: sim, version: 1.0"):
        assert said in page.text
    assert "Devices sim 0, sim 1" in page.text


def test_what_changed_since_the_run_before_is_told_and_can_be_compared(model: Model) -> None:
    key = Key("puone-sim", "2.13")
    page = of(model, night(model, key, 2))
    assert "Regressions (2)" in page.text
    assert f"{BROKEN} pass → became fail" in page.text
    assert f"{SLOWED} native → became fallback" in page.text or SLOWED in page.text
    assert f"{RENAMED} pass" in page.text
    assert paths.of_choice(night(model, key, 1), night(model, key, 2)) in page.links
    assert {change["check"] for change in page.data["changes"]} == {BROKEN, SLOWED, RENAMED}


def test_the_first_run_of_a_series_has_none_before_it(model: Model) -> None:
    page = of(model, night(model, Key("cpu", "2.13"), 0))
    assert "Since the run before" not in page.text
    assert page.data["before"] is None


def test_a_run_like_the_one_before_says_so(model: Model) -> None:
    page = of(model, night(model, Key("cpu", "2.13"), 1))
    assert "No check came out otherwise." in page.text
    assert "None is." in page.text


def test_bad_checks_are_told_by_cause_with_message_and_repro(model: Model) -> None:
    page = of(model, night(model, Key("puone-sim", "2.13"), 2))
    assert "1 check: fail: N of N elements differ" in page.text
    assert "first at [2]" in page.text
    assert paths.of_check(BROKEN) in page.links
    assert [entry["id"] for entry in page.data["bad"]] == [BROKEN]


def test_the_lowest_level_that_is_not_reached_tells_what_is_in_its_way(model: Model) -> None:
    page = of(model, night(model, Key("puone-sim", "2.13"), 2))
    assert "MEM-003 broken : Live blocks MUST NOT overlap" in page.text
    core = next(step for step in page.data["steps"] if step["name"] == "core")
    assert core["blockers"] == 1
    assert [one["what"] for one in page.data["in_the_way"]] == ["MEM-003"]
    assert "verified" not in page.data["standings"]
    assert page.data["standings"]["broken"] == ["MEM-003"]


def test_a_run_that_does_not_count_says_why_and_links_no_check() -> None:
    page = of(*single(outcomes={BROKEN: WRONG}, complete=False))
    assert "This run does not count: the run is incomplete" in page.text
    assert not page.data["aligned"]
    assert not [link for link in page.links if link.startswith(paths.CHECK)]
    assert f"1 check: fail: N of N elements differ in memory/mem_003 {BROKEN}" in page.text


def test_a_backend_that_could_not_be_loaded_has_a_page(model: Model) -> None:
    for run in model.series[Key("hostile", "nightly")].others:
        page = of(model, run)
        assert "The backend did not come up: <script>alert(1)</script>" in page.text
        assert page.data["bad"] == []


def test_what_was_bad_in_the_run_before_is_named_and_not_told_again() -> None:
    told: list[dict[str, str | dict[str, Any]]] = [
        {BROKEN: WRONG},
        {BROKEN: WRONG, CRASHED: "crash"},
    ]
    nights = [
        report(outcomes=outcomes, started=f"2026-11-0{day}T02:00:00+00:00")
        for day, outcomes in enumerate(told, 1)
    ]
    model = dashboard_oracle.model(nights)
    first, second = (of(model, night(model, Key("cpu", "2.13"), n)).data for n in range(2))
    assert ([one["id"] for one in first["bad"]], first["still_bad"]) == ([BROKEN], [])
    assert ([one["id"] for one in second["bad"]], second["still_bad"]) == ([CRASHED], [BROKEN])


def test_the_run_of_the_cpu_is_the_reference() -> None:
    page = of(*single())
    assert "The reference that others are compared with" in page.text
    assert "No level" not in page.text


def test_hostile_texts_are_text(model: Model) -> None:
    for key in (Key("hostile", "2.13"), Key("hostile", "nightly")):
        for run in (*model.series[key].runs, *model.series[key].others):
            page = of(model, run)
            assert "alert(1)" in page.text
            assert not page.tags & {"script", "img"}
            assert "\u202e" not in page.html


def test_results_that_are_not_kept_any_more_are_not_said_to_be_good() -> None:
    model, run = single()
    page = shown(page_of_run(replace(run, kept=False), model))
    assert "not kept" in page.text
    assert "None is." not in page.text


def test_a_run_of_which_all_is_bad_stays_small() -> None:
    huge = {
        id: {**WRONG, "message": f"{id} says {'x' * 20000}", "repro": "y" * 20000} for id in CHECKS
    }
    page = of(*single(outcomes=huge))
    assert len(page.data["bad"]) == min(len(CHECKS), MAX_BAD)
    assert len(page.html) < 60_000 + MAX_CAUSES * MAX_NAMED * 200
    assert "more characters are in the report" in page.text


def test_the_commands_repeat_what_was_asked() -> None:
    _, run = single()
    assert commands(run)[-1] == "pytest conformance --backend=cpu"
    asked = {**run.options, "dtypes": ["float32", "int8"], "tier": "core", "checks": ["memory/*"]}
    run = replace(run, options=asked, seed=7)
    assert shlex.split(commands(run)[-1]) == [
        "pytest",
        "conformance",
        "--backend=cpu",
        "--check=memory/*",
        "--tier=core",
        "--dtypes=float32,int8",
        "--seed=7",
    ]


def test_a_name_with_a_shell_command_is_quoted() -> None:
    _, run = single(suite="1; rm -rf ~")
    assert "'torch-conformance==1; rm -rf ~'" in commands(run)[0]


def test_every_run_of_the_sample_has_a_page_whose_document_is_valid(model: Model) -> None:
    for series in model.series.values():
        for run in (*series.runs, *series.others):
            page = page_of_run(run, model)
            assert page.path == paths.of_run(run)
            assert shown(page).data["id"] == run.id
