# SPDX-License-Identifier: BSD-3-Clause
"""What changed in PyTorch, joined with what began to fail; torch is blamed for nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from dashboard_findings import between, finding, model
from dashboard_pages import Shown, shown
from dashboard_sample import BROKEN, CHECKS, HOSTILE, SLOWED, report, sample
from synthetic import Content

from torch_backend_ci.dashboard import paths, steps
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.pages import upstream
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.steps import OnBackend, TorchStep
from torch_backend_ci.surface import snapshot_file
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Severity
from torch_backend_ci.surface.report.json import parse

SNAPSHOTS = Path(snapshot_file.__file__).parent / "snapshots"
FAILS = {"outcome": "fail", "message": "Allocator::copy_data: 3 of 8 elements differ"}
WRONG = {"outcome": "fail", "message": "3 of 8 elements differ"}
STEP = between("2.12.1", "2.13.0", finding())


def before(night: str = "19", **more: Any) -> Content:
    return report(torch="2.12.1", started=f"2026-11-{night}T02:00:00+00:00", **more)


def after(night: str = "20", **more: Any) -> Content:
    return report(torch="2.13.0", started=f"2026-11-{night}T02:00:00+00:00", **more)


def of_suite(digest: str) -> dict[str, Any]:
    return {"source": {"commit": None, "digest": digest * 64}}


def the_step(made: Model) -> TorchStep:
    (step,) = steps.between(made)
    return step


def on_cpu(*reports: Content) -> OnBackend:
    (one,) = the_step(model(reports, STEP)).backends
    return one


def rendered(made: Model) -> dict[str, Shown]:
    return {page.path: shown(page) for page in upstream.pages(made)}


# Joins that hold.


def test_a_check_that_began_to_fail_is_told_with_the_finding_that_its_message_names() -> None:
    one = on_cpu(before(), after(outcomes={BROKEN: FAILS}))
    (failing,) = one.failing
    assert (failing.change.id, failing.change.old, failing.change.new) == (BROKEN, "pass", "fail")
    assert (failing.named, failing.parts) == ((finding().identity,), ())
    assert (one.naming, one.standing) == (1, 0)


def test_without_a_name_it_is_told_on_which_parts_that_changed_the_check_stands() -> None:
    (failing,) = on_cpu(before(), after(outcomes={BROKEN: WRONG})).failing
    assert (failing.named, failing.parts) == ((), ("allocator",))
    elsewhere = between("2.12.1", "2.13.0", finding("at::x", "distributed"))
    made = model([before(), after(outcomes={BROKEN: WRONG})], elsewhere)
    (one,) = the_step(made).backends
    assert [(failing.named, failing.parts) for failing in one.failing] == [((), ())]
    harmless = between("2.12.1", "2.13.0", finding(severity=Severity.NEW_CAPABILITY))
    (one,) = the_step(model([before(), after(outcomes={BROKEN: WRONG})], harmless)).backends
    assert [failing.parts for failing in one.failing] == [()]


def test_the_page_of_the_step_leads_from_the_check_to_the_finding_and_back() -> None:
    pages = rendered(model([before(), after(outcomes={BROKEN: FAILS})], STEP))
    page = pages[paths.of_step("2.12.1", "2.13.0")]
    assert f'href="../upstream/2.12.1-2.13.0.html#f-{finding().identity}"' in page.html
    assert f'id="f-{finding().identity}"' in page.html
    assert "1 check began to fail" in page.text
    assert "Fails on cpu and names this: memory/mem_003:c0" in page.text
    assert "void c10::Allocator::copy_data(long)" in page.text
    assert "concerns overriders; used by torch_npu" in page.text
    (told,) = page.data["findings"]
    assert told["failing"] == {"cpu": [BROKEN]}
    (failing,) = page.data["backends"][0]["failing"]
    assert (failing["named"], failing["parts"]) == ([finding().identity], [])
    overview = pages[paths.UPSTREAM]
    assert "1 check 1 names what changed" in overview.text
    (step,) = overview.data["steps"]
    assert step["findings"] == {"silent_break": 1}
    assert (step["backends"][0]["began_to_fail"], step["backends"][0]["naming"]) == (1, 1)


def test_the_page_of_the_step_counts_the_checks_that_stand_on_what_changed() -> None:
    pages = rendered(model([before(), after(outcomes={BROKEN: WRONG})], STEP))
    page = pages[paths.of_step("2.12.1", "2.13.0")]
    assert "1 check that began to fail on cpu stands on this part" in page.text
    assert "a change of allocator" in page.text
    assert "1 check 1 stands on a part that changed" in pages[paths.UPSTREAM].text


def test_runs_that_asked_the_same_are_taken_although_newer_ones_are_there() -> None:
    old, new = of_suite("a"), of_suite("b")
    reports = [before("18", **old), after("18", outcomes={BROKEN: FAILS}, **old)]
    one = on_cpu(*reports, before("19", **new), after("20", **of_suite("c")))
    assert [run.started.day for run in one.pair] == [18, 18]
    assert one.unlike == ()
    assert one.naming == 1


def test_a_nightly_build_is_joined_with_the_run_of_this_very_build() -> None:
    nights = [f"2.14.0.dev202611{day}" for day in (18, 19, 20)]
    reports = [
        report(torch=night, started=f"2026-11-{night[-2:]}T02:00:00+00:00", outcomes=outcomes)
        for night, outcomes in zip(nights, ({}, {BROKEN: FAILS}, {}), strict=True)
    ]
    found = between(nights[0], nights[1], finding())
    made = model(reports, found)
    (one,) = the_step(made).backends
    assert [run.torch for run in one.pair] == nights[:2]
    assert [failing.change.id for failing in one.failing] == [BROKEN]
    pages = rendered(made)
    assert "Between nightly builds" in pages[paths.UPSTREAM].text


def test_the_commit_decides_which_nightly_build_a_run_was_of_if_both_sides_tell_it() -> None:
    night = "2.14.0.dev20261120"
    other = report(torch=night)
    other["run"]["torch"]["git"] = "b" * 40
    step = between("2.12.1", night, finding(), git=(None, "a" * 40))
    assert the_step(model([before(), other], step)).backends == ()
    other["run"]["torch"]["git"] = "a" * 40
    assert len(the_step(model([before(), other], step)).backends) == 1


# Joins that must not be made.


@pytest.mark.parametrize(
    ("differs", "named"),
    [({"seed": 7}, "seed"), (of_suite("b"), "suite"), ({"device_type": "other"}, "backend")],
)
def test_where_more_than_torch_changed_that_is_said_and_torch_is_not_blamed(
    differs: dict[str, Any], named: str
) -> None:
    reports = [before(), after(outcomes={BROKEN: FAILS}, **differs)]
    one = on_cpu(*reports)
    assert [(failing.named, failing.parts) for failing in one.failing] == [((), ())]
    assert [sentence.partition(" ")[0] for sentence in one.unlike] == [named]
    pages = rendered(model(reports, STEP))
    page = pages[paths.of_step("2.12.1", "2.13.0")]
    assert "did not ask the same, so no finding is named" in page.text
    assert "Fails on" not in page.text
    assert page.data["findings"][0]["failing"] == {}
    assert "the suite or its options changed too" in pages[paths.UPSTREAM].text


def test_what_failed_before_or_is_new_or_fell_back_did_not_begin_to_fail() -> None:
    fallback = {"evidence": "fallback", "fallbacks": ["aten::add.out"]}
    new = next(iter(CHECKS))
    old = before(outcomes={BROKEN: WRONG, SLOWED: {"evidence": "native"}}, without=(new,))
    assert on_cpu(old, after(outcomes={BROKEN: FAILS, SLOWED: fallback, new: FAILS})).failing == ()


def test_a_check_that_is_only_not_asked_any_more_did_not_begin_to_fail() -> None:
    assert on_cpu(before(), after(outcomes={BROKEN: "unsupported"})).failing == ()


def test_what_differs_besides_torch_is_said() -> None:
    one = on_cpu(before(), after(outcomes={BROKEN: FAILS}, python="3.14.0", platform="Other"))
    assert one.besides == ("python", "platform")
    assert one.naming == 1
    page = rendered(model([before(), after(python="3.14.0")], STEP))["upstream/2.12.1-2.13.0.html"]
    assert "Besides torch, what differs is: python." in page.text


def test_a_run_that_is_not_complete_is_joined_with_nothing() -> None:
    broken = after(outcomes={BROKEN: FAILS}, complete=False)
    assert the_step(model([before(), broken], STEP)).backends == ()


def test_runs_whose_results_are_not_kept_are_no_ground_for_saying_that_nothing_fails() -> None:
    made = model([before(), after()], STEP)
    made.series = {
        key: replace(one, runs=tuple(replace(run, kept=False) for run in one.runs))
        for key, one in made.series.items()
    }
    assert the_step(made).backends == ()
    assert "no two runs" in rendered(made)[paths.UPSTREAM].text


# What is shown of which step.


def test_a_step_that_nobody_looked_at_is_told_with_what_began_to_fail() -> None:
    made = model([before(), after(outcomes={BROKEN: WRONG})])
    page = rendered(made)[paths.UPSTREAM]
    assert "2.12 → 2.13" in page.text
    assert "1 check nothing known to be why compare" in page.text
    series = made.series
    pair = (series[Key("cpu", "2.12")].runs[0], series[Key("cpu", "2.13")].runs[0])
    assert paths.of_comparison(*pair) in page.links
    assert page.data["steps"][0]["findings"] is None
    assert list(steps.unread(model([before(), after()], STEP))) == []


def test_of_two_documents_of_one_step_always_the_same_is_shown() -> None:
    other = between("2.12.1", "2.13.0", finding("c10::other"))
    reports = [the_step(model([], *order)).report for order in ((STEP, other), (other, STEP))]
    assert reports[0] == reports[1]
    assert reports[0] is not None


def test_a_release_candidate_is_of_its_line_and_no_nightly_build() -> None:
    made = model([before(), after()], between("2.12.1", "2.13.0rc1", finding("c10::new")))
    assert not the_step(made).is_nightly
    assert [one.backend for one in the_step(made).backends] == ["cpu"]


def test_of_steps_between_nightly_builds_the_newest_are_shown() -> None:
    every = [between(f"2.14.0.dev{day}", f"2.14.0.dev{day + 1}") for day in range(steps.NIGHTS + 5)]
    found = list(steps.between(model([], *every, STEP)))
    assert len(found) == steps.NIGHTS + 1
    assert "2.14.0.dev0" not in {step.before for step in found}


def test_the_newest_step_comes_first() -> None:
    pairs = [("2.9.1", "2.11.0"), ("2.11.0", "2.13.0"), ("2.13.0", "2.15.0")]
    page = rendered(model([], *(between(*pair) for pair in pairs)))[paths.UPSTREAM]
    assert [(step["before"], step["after"]) for step in page.data["steps"]] == pairs[::-1]
    lines = ("2.9.1", "2.12.0", "2.13.0", "2.14.0.dev20261120")
    unread = steps.unread(model([report(torch=torch) for torch in lines]))
    assert [(step.before, step.after) for step in unread] == [
        ("2.13", "nightly"),
        ("2.12", "2.13"),
        ("2.9", "2.12"),
    ]


def test_without_runs_and_findings_the_page_says_how_to_get_some() -> None:
    pages = rendered(model([]))
    assert list(pages) == [paths.UPSTREAM]
    assert "torch-backend-ci surface diff" in pages[paths.UPSTREAM].text


def test_of_5000_checks_that_began_to_fail_the_page_can_be_read() -> None:
    ids = [synthetic.check_id("MEM-003", number) for number in range(5000)]
    old = [synthetic.record("MEM-003", "pass", number) for number in range(5000)]
    new = [
        synthetic.record(
            "MEM-003", "fail", number, message=f"{number} of 8 in c10::Allocator::copy_data"
        )
        for number in range(5000)
    ]
    made = model(
        [
            synthetic.content(old, torch={"version": "2.12.1", "git": None}),
            synthetic.content(new, torch={"version": "2.13.0", "git": None}),
        ],
        STEP,
    )
    page = rendered(made)["upstream/2.12.1-2.13.0.html"]
    assert "5,000 checks began to fail" in page.text
    assert "N of N in c10::Allocator::copy_data" in page.text
    assert len(page.html) < 40_000
    assert page.data["findings"][0]["failing"]["mychip"] == sorted(ids)


def test_every_finding_between_two_real_torches_is_shown_with_what_to_do() -> None:
    files = (SNAPSHOTS / f"{version}.json.gz" for version in ("2.13.0", "2.15.0"))
    read = [snapshot_file.read(file) for file in files]
    worse = [f for f in diff(*read) if f.severity is not Severity.COSMETIC]
    (page,) = [
        shown(page)
        for page in upstream.pages(model([], between("2.13.0", "2.15.0", *worse)))
        if page.path != paths.UPSTREAM
    ]
    assert [told["name"] for told in page.data["findings"]] == [f.name for f in worse]
    assert all(told["hint"] for told in page.data["findings"])
    assert page.html.count('<details class="finding"') == len(worse) > 100
    assert len(page.html) < 1_000 * len(worse)


def test_whatever_findings_and_runs_say_is_text() -> None:
    evil = finding(HOSTILE, "allocator", message=HOSTILE, hint=HOSTILE)
    evil = replace(evil, used_by=(HOSTILE,))
    reports = [made for made in sample().values() if made["run"]["backend"] == "hostile"]
    step = between("2.12.1", "2.13.0", evil)
    assert parse(dict(step.document), "evil").findings == (evil,)
    for page in rendered(model(reports, step)).values():
        assert {"script", "img"}.isdisjoint(page.tags)
        assert "\u202e" not in page.html
        assert "\x1b" not in page.html


def test_pages_are_made_of_the_model_alone() -> None:
    def all_pages() -> list[Page]:
        return list(upstream.pages(model(sample().values(), STEP)))

    assert [shown(page).html for page in all_pages()] == [shown(page).html for page in all_pages()]


def test_what_began_to_fail_and_is_mended_since_is_told_so() -> None:
    first = (before(**of_suite("1")), after(outcomes={BROKEN: WRONG}, **of_suite("1")))
    assert on_cpu(*first).lasting == 1
    made = model([*first, after("21", **of_suite("2"))], STEP)
    (one,) = the_step(made).backends
    assert (len(one.failing), one.lasting) == (1, 0)
    pages = rendered(made)
    page = pages[paths.of_step("2.12.1", "2.13.0")]
    assert "1 check began to fail, all mended since" in page.text
    assert page.data["backends"][0]["failing"][0]["mended"]
    (step,) = pages[paths.UPSTREAM].data["steps"]
    assert (step["backends"][0]["began_to_fail"], step["backends"][0]["lasting"]) == (1, 0)
