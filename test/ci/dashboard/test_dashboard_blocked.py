# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch itself is in the way of: issue by issue, where and since when."""

from __future__ import annotations

from typing import Any

from dashboard_findings import model
from dashboard_pages import Shown, shown
from dashboard_sample import BLOCKED, BROKEN, CHECKS, HOSTILE, report, sample
from synthetic import Content

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import blocked
from torch_backend_ci.dashboard.pages.blocked import Issue
from torch_backend_ci.dashboard.read import Model

ISSUE = "https://github.com/pytorch/pytorch/pull/195815"
WAITS = {"outcome": "blocked_upstream", "reason": f"{ISSUE}; RuntimeError: no device"}


def night(day: int, torch: str = "2.13.0", outcome: Any = "pass", **more: Any) -> Content:
    return report(
        torch=torch,
        started=f"2026-11-{day:02}T02:00:00+00:00",
        outcomes={id: outcome for id in CHECKS if CHECKS[id] == "OP-027"},
        **more,
    )


def page(made: Model) -> Shown:
    (only,) = blocked.pages(made)
    assert only.path == paths.BLOCKED
    return shown(only)


def the_issue(made: Model) -> Issue:
    return next(issue for issue in blocked.issues(made) if issue.link == ISSUE)


def test_the_catalogue_names_the_issues_also_where_nothing_was_run() -> None:
    made = page(model([]))
    assert "pytorch/pytorch#195815" in made.text
    assert "OP-027 torch.from_dlpack SHOULD exchange device tensors without a copy." in made.text
    assert "Blocked with torch <2.16." in made.text
    assert "No run of the store has a check of it." in made.text
    assert f'href="{ISSUE}"' in made.html
    told = {issue["issue"]: issue for issue in made.data["issues"]}
    assert told[ISSUE]["requirements"][0]["torch"] == "<2.16"
    assert told[ISSUE]["checks"] == []


def test_since_when_is_the_first_of_the_runs_that_say_so_without_a_break() -> None:
    outcomes = ["pass", WAITS, "pass", WAITS, WAITS]
    made = model(night(day, outcome=outcome) for day, outcome in enumerate(outcomes, 1))
    key = Key("cpu", "2.13")
    since = the_issue(made).places[key].since
    assert since is made.series[key].runs[3]
    assert "since 2026-11-04" in page(made).text


def test_what_was_always_blocked_is_so_since_the_first_run() -> None:
    made = model([night(1, outcome=WAITS), night(2, outcome=WAITS)])
    key = Key("cpu", "2.13")
    assert the_issue(made).places[key].since is made.series[key].runs[0]


def test_where_it_is_gone_is_said_of_newer_torches_in_which_the_checks_pass() -> None:
    made = model(
        [
            night(1, "2.12.1", "pass"),
            night(1, "2.13.0", WAITS),
            night(1, "2.14.0", "unsupported"),
            night(1, "2.16.0", "pass"),
            night(1, "2.16.0", "pass", backend="other"),
        ]
    )
    issue = the_issue(made)
    assert issue.holding == [("cpu", "2.13")]
    assert issue.gone == [("cpu", "2.16")]
    assert "Not in the way any more: cpu torch 2.16." in page(made).text


def test_an_issue_that_only_reports_name_is_told_too() -> None:
    link = "https://example.org/issue/1"
    made = model(
        [report(outcomes={BROKEN: {"outcome": "blocked_upstream", "reason": f"{link}; x"}})]
    )
    told = page(made)
    issue = next(one for one in told.data["issues"] if one["issue"] == link)
    assert [check["id"] for check in issue["checks"]] == [BROKEN]
    assert issue["requirements"] == []
    assert "No requirement of this version of the suite names it; reports do." in told.text


def test_each_series_is_told_with_its_reason() -> None:
    made = page(model([night(1, outcome=WAITS), night(1, outcome="pass", backend="other")]))
    issue = next(one for one in made.data["issues"] if one["issue"] == ISSUE)
    assert issue["holding"] == [{"backend": "cpu", "line": "2.13"}]
    (one, other) = next(check for check in issue["checks"] if check["id"] == BLOCKED)["series"]
    assert (one["backend"], one["outcome"], one["reason"]) == (
        "cpu",
        "blocked_upstream",
        WAITS["reason"],
    )
    assert (other["backend"], other["outcome"], other["since"]) == ("other", "pass", None)
    assert "RuntimeError: no device" in made.text


def test_a_reason_that_is_no_address_does_not_become_a_link() -> None:
    for reason in ("javascript:alert(1); x", HOSTILE, ""):
        outcome = {"outcome": "blocked_upstream", "reason": reason}
        made = page(model([report(outcomes={BROKEN: outcome})]))
        assert 'href="javascript' not in made.html
        assert {"script", "img"}.isdisjoint(made.tags)
        assert "\u202e" not in made.html


def test_only_columns_count() -> None:
    made = model([night(1, outcome="pass"), night(2, outcome=WAITS, complete=False)])
    assert the_issue(made).holding == []


def test_the_sample_is_told() -> None:
    made = page(model(sample().values()))
    assert "puone-sim" in made.text
    assert "since 2026-11-17" in made.text
