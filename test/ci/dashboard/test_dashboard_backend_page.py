# SPDX-License-Identifier: BSD-3-Clause
"""The page of a backend: how far it is, what is in the way, and how that came about."""

from __future__ import annotations

from typing import Any

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BLOCKED, BROKEN, CHECKS, CRASHED, HOSTILE, report, sample

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.chart import trend
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import backend
from torch_backend_ci.dashboard.read import Model

FAILED = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


def of(model: Model, name: str = "cpu") -> Shown:
    return shown(next(page for page in backend.pages(model) if page.title == name))


def night(day: int, torch: str = "2.13.0", **said: Any) -> Any:
    return report(torch=torch, started=f"2026-11-{day:02}T02:00:00+00:00", driver=None, **said)


def made(*reports: Any) -> Shown:
    return of(dashboard_oracle.model(reports))


def column(page: Shown, line: str = "2.13") -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in page.data["series"] if s["line"] == line)["column"]
    return found


def test_there_is_one_for_each_backend(model: Model) -> None:
    found = [page.path for page in backend.pages(model)]
    assert found == [paths.of_backend(name) for name in model.backends]


def test_what_is_in_the_way_of_the_next_level_is_named_with_an_example() -> None:
    page = made(night(1, outcomes={BROKEN: FAILED}))
    assert "In the way of Core: 1 blocker" in page.text
    assert "MEM-003 broken Live blocks MUST NOT overlap" in page.text
    assert paths.of_requirement("MEM-003") in page.links
    assert paths.of_check(BROKEN) in page.links
    (blocker,) = column(page)["levels"][0]["blockers"]
    assert (blocker["what"], blocker["why"], blocker["example"]) == ("MEM-003", "broken", BROKEN)


def test_a_broken_capability_is_named_with_what_its_probe_saw() -> None:
    capabilities = dict(report()["run"]["capabilities"])
    page = made(night(1, capabilities=capabilities))
    assert "Broken" not in page.text
    capabilities["streams"] = {"value": False, "source": "probed", "broken": "RuntimeError: late"}
    page = made(night(1, capabilities=capabilities))
    assert "Broken: 1 capability" in page.text and "streams RuntimeError: late" in page.text


def test_bad_checks_are_grouped_by_cause_with_a_way_to_repeat_the_first() -> None:
    first, second = (
        {"outcome": "error", "message": f"RuntimeError: {n} pages are lost", "repro": repro}
        for n, repro in ((3, "import torch"), (5, "import numpy"))
    )
    page = made(night(1, outcomes={BROKEN: first, CRASHED: second}))
    (cause,) = column(page)["causes"]
    assert cause["text"] == "error: RuntimeError: N pages are lost"
    assert cause["checks"] == [BROKEN, CRASHED]
    assert cause["repro"] == "import torch"
    assert "2 checks error: RuntimeError: N pages are lost" in page.text


def test_the_history_of_levels_tells_when_one_was_lost_and_reached() -> None:
    page = made(night(1), night(2), night(3, outcomes={BROKEN: FAILED}), night(4))
    assert "Levels so far: 3 stretches" in page.text
    assert (
        "Training since 2026-11-04, 1 run No level 2026-11-03 to 2026-11-03, 1 run "
        "Training 2026-11-01 to 2026-11-02, 2 runs" in page.text
    )


def test_charts_need_two_runs() -> None:
    assert "figure" not in made(night(1)).tags
    page = made(night(1), night(2, outcomes={BROKEN: FAILED}))
    assert "Unexpected results in 2 runs: 0 on 2026-11-01, 1 on 2026-11-02" in page.text


def test_an_old_column_tells_its_age_and_what_became_of_the_runs_since() -> None:
    page = made(night(1), night(4, complete=False))
    assert "3 days older than the newest run of all: the run is incomplete" in page.text
    assert "Runs that do not count: 1" in page.text
    assert page.data["series"][0]["stale"] == {"days": 3, "reason": "the run is incomplete"}


def test_a_line_without_a_complete_run_says_why() -> None:
    page = made(night(1, complete=False))
    assert "No run counts yet: the run is incomplete" in page.text
    assert column(page) is None


def test_a_requirement_has_one_symbol_where_all_lines_say_the_same() -> None:
    page = made(night(1), night(1, "2.12.0", outcomes={BROKEN: FAILED}))
    assert "MEM-003 broken verified MEM-004" in page.text
    assert "MEM-001 verified MEM-002" in page.text


def test_surfaces_tell_how_many_of_their_checks_are_bad() -> None:
    page = made(night(1, outcomes={BROKEN: FAILED}))
    assert "memory 3 pass, 1 fail 1" in page.text
    assert column(page)["surfaces"]["memory"] == {"fail": 1, "pass": 3}


def test_the_share_of_fallbacks_is_told() -> None:
    fell = {id: {"evidence": "fallback", "fallbacks": ["aten::add"]} for id in list(CHECKS)[:6]}
    assert "6 fallback 25.0%" in made(night(1, outcomes=fell)).text


def test_lines_of_torch_can_be_linked(model: Model) -> None:
    html = of(model, "puone-sim").html
    for line in ("2.12", "2.13", "nightly"):
        assert f'id="{paths.of_series(Key("puone-sim", line)).partition("#")[2]}"' in html


def test_the_badge_can_be_copied_into_a_readme(model: Model) -> None:
    page = of(model, "puone-sim")
    assert "(SITE/backend/puone-sim/badge.svg)](SITE/backend/puone-sim/index.html)" in page.text


def test_what_hostile_reports_say_stays_text(model: Model) -> None:
    page = of(model, "hostile")
    assert HOSTILE not in page.html
    assert "script" not in page.tags


def test_what_is_not_asked_is_no_blocker() -> None:
    page = made(night(1, outcomes={BLOCKED: "blocked_upstream"}))
    assert column(page)["levels"][1]["blockers"] == []


def test_a_chart_spans_its_runs_and_begins_at_nothing(model: Model) -> None:
    runs = model.series[Key("cpu", "2.13")].runs
    chart = trend("Bad checks", "bad", runs, [0, 1234, 617, 0])
    heights = {text: y for y, text in chart.ticks}
    assert list(heights) == ["0", "700", "1,400"]
    (left, ground, _), (_, peak, told), *_, (right, end, _) = chart.points
    assert (left, right) == (chart.LEFT, chart.WIDTH - 8)
    assert ground == end == heights["0"]
    assert heights["1,400"] < peak < heights["700"]
    assert told == "1,234 on 2026-11-18, torch 2.13.0"
