# SPDX-License-Identifier: BSD-3-Clause
"""The first page: what every backend reached with every torch, and what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BROKEN, CRASHED, HOSTILE, report, sample

from torch_backend_ci.dashboard import nights, paths, render
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import overview
from torch_backend_ci.dashboard.read import Model

NOISY = Key("puone-sim", "2.13")
FAILED = {"outcome": "fail", "message": "3 of 8 elements differ"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


def of(model: Model) -> Shown:
    return shown(next(overview.pages(model)))


def night(day: int, backend: str = "cpu", **said: Any) -> Any:
    return report(backend, started=f"2026-11-{day:02}T02:00:00+00:00", driver=None, **said)


def made(*reports: Any) -> Shown:
    return of(dashboard_oracle.model(reports))


def test_a_cell_tells_the_level_and_the_number_of_unexpected_results(model: Model) -> None:
    page = of(model)
    assert "puone-sim sim 0 No level 1 unexpected Training 0 unexpected" in page.text
    told = {(c["backend"], c["line"]): c for c in page.data["columns"]}
    cell = told["puone-sim", "2.13"]
    assert (cell["level"], cell["bad"]) == ("training", 0)
    assert [level["met"] for level in cell["levels"]] == [True] * 3 + [False] * 3
    assert told["puone-sim", "nightly"]["bad"] == 1


def test_the_newest_torch_is_leftmost(model: Model) -> None:
    assert "Backend torch nightly torch 2.13 torch 2.12" in of(model).text


def test_the_cpu_is_the_reference_and_no_backend_that_failed(model: Model) -> None:
    page = of(model)
    said = "For comparison: PyTorch's own CPU, on the checks that need no accelerator cpu Reference"
    assert said in page.text
    assert page.text.index("puone-sim") < page.text.index(said)


def test_an_incomplete_night_leaves_the_column_and_tells_its_age_and_the_reason(
    model: Model,
) -> None:
    assert "1 day old: the run is incomplete" in of(model).text


def test_a_series_without_a_complete_run_says_why() -> None:
    page = made(night(1), night(1, "new", complete=False))
    assert "No whole run the run is incomplete" in page.text
    assert page.data["columns"][1]["run"] is None


def test_the_first_sentence_says_what_broke_last_night() -> None:
    page = made(night(1), night(2, outcomes={BROKEN: FAILED}))
    assert "Last night, 2026-11-02 : 1 run; 1 check got worse" in page.text
    assert "1 worse last night" in page.text
    better = made(night(1, outcomes={BROKEN: FAILED}), night(2))
    assert "1 run; nothing got worse, 1 check got better" in better.text
    assert "worse last night" not in better.text


def test_runs_of_one_night_are_told_apart_by_time_torch_and_suite() -> None:
    source = {"commit": "0123456789abcdef0123456789abcdef01234567", "digest": "a" * 64}
    first = night(1, outcomes={BROKEN: FAILED})
    second = report("cpu", started="2026-11-01T05:30:00+00:00", driver=None, source=source)
    page = made(first, second)
    assert "cpu 2.13.0 05:30 01234567" in page.text
    assert "cpu 2.13.0 02:00 superseded" in page.text


def test_every_series_has_its_nights_on_one_axis_of_time() -> None:
    page = made(night(1), night(3, outcomes={BROKEN: FAILED}), night(4, complete=False))
    assert "Series 2026-10-22 2026-10-29 2026-11-04" in page.text
    assert "Now no whole run, 1 run: 2026-11-04; before that unexpected results" in page.text


def test_the_axis_ends_after_sixty_nights() -> None:
    old = report("cpu", started="2026-01-01T02:00:00+00:00", driver=None)
    assert len(nights.calendar(dashboard_oracle.model([old, night(1)])).nights) == nights.MOST


def test_a_backend_that_never_ran_with_a_torch_has_no_report() -> None:
    page = made(night(1), night(1, "new", torch="2.12.0"))
    assert page.text.count("No report") == 2


def test_backends_stand_in_the_order_of_their_names(model: Model) -> None:
    rows = overview.rows(model, model.lines)
    assert [row.backend for row in rows] == ["hostile", "puone-sim", "cpu"], "references are last"


def test_regressions_are_told_newest_first_and_by_their_causes() -> None:
    page = made(
        night(1),
        night(2, outcomes={CRASHED: {"outcome": "crash", "message": "SIGSEGV"}}),
        night(3, outcomes={BROKEN: FAILED, CRASHED: "pass"}),
    )
    newest, oldest = page.text.index("N of N elements differ"), page.text.index("SIGSEGV")
    assert newest < oldest
    assert paths.of_check(BROKEN) in page.links
    assert "1 regression, 1 improvement" in page.text


def test_a_check_that_falls_back_to_the_cpu_has_regressed() -> None:
    fell = {"evidence": "fallback", "fallbacks": ["aten::add"]}
    page = made(night(1), night(2, outcomes={BROKEN: fell}))
    assert "fallback memory/mem_003:c0 aten::add" in page.text


def test_what_did_not_change_in_the_newest_night_takes_one_line() -> None:
    page = made(night(1), night(1, "other"), night(2), night(2, "other"))
    assert "Nothing changed: 2 series" in page.text
    assert "Nothing from one run to the next" in page.text


def test_a_series_that_is_silent_in_the_newest_night_is_named() -> None:
    assert "No run that night: 1 series" in made(night(1), night(2, "other")).text


def test_first_runs_have_nothing_to_be_compared_with() -> None:
    assert "Nothing to compare yet" in made(night(1)).text


def test_a_store_without_runs_says_what_to_do() -> None:
    page = made()
    assert "torch-backend-ci results add" in page.text
    assert page.data["columns"] == []


def test_hostile_names_stay_text(model: Model) -> None:
    assert HOSTILE not in of(model).html
    assert "script" not in of(model).tags


def test_twenty_backends_with_five_lines_of_torch_fit_into_200_kb(model: Model) -> None:
    """Each of them with a column that is old, and with regressions in the newest night."""
    runs = [
        *model.series[Key("hostile", "2.13")].runs,
        *model.series[Key("hostile", "2.13")].others,
    ]
    many = [
        replace(
            run, id=f"{run.id[:50]}{number:07}{line:07}", key=Key(f"backend-{number}", f"2.{line}")
        )
        for run in runs
        for number in range(20)
        for line in range(10, 15)
    ]
    page = next(overview.pages(Model(many, _Changed(model))))
    html = next(iter(render.render(page))).content
    assert html.count(b"day old:") == 100
    assert len(html) < 200_000


class _Changed:
    """All that ever changed in a series, in the second run of every one."""

    def __init__(self, model: Model) -> None:
        self.checks, self.check_ids = model.checks, model.check_ids
        self.results, self.bad, self.read_ahead = model.results, model.bad, model.read_ahead
        self.changes = lambda _: [replace(c, run=1) for c in model.changes(NOISY)]
