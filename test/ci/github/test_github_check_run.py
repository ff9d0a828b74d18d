# SPDX-License-Identifier: BSD-3-Clause
"""A check run: one per commit, name and `external_id`, with all its annotations once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import pytest
from github_fake import GitHubFake
from github_fixtures import writes

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access
from torch_backend_ci.github.change import perform
from torch_backend_ci.github.check_run import Annotation, CheckRun, changes


@pytest.fixture
def wanted(github_fake: GitHubFake) -> CheckRun:
    issue = github_fake.open_pull({"a.h": "1\n"})
    assert issue.pull
    sha = issue.pull.head_sha
    return CheckRun("gate", sha, "run 7.1", "failure", "2 regressions", "**two**")


def report(wanted: CheckRun, *, dry_run: bool = False) -> int:
    repo = access.repository(argparse.Namespace(repo=None))
    with access.failures("report"):
        return perform(changes(repo, wanted), dry_run)


def lines(count: int) -> list[Annotation]:
    return [Annotation("a.h", n + 1, "failure", "new failure", f"no {n}") for n in range(count)]


def annotated(fake: GitHubFake) -> list[str]:
    (check,) = fake.repository.checks
    return [annotation["message"] for annotation in check.annotations]


def test_it_is_made_once_and_changed_in_place(github_fake: GitHubFake, wanted: CheckRun) -> None:
    assert report(wanted) == 1
    assert report(wanted) == 0
    assert report(replace(wanted, conclusion="success", title="fine", text="more")) == 1
    (check,) = github_fake.repository.checks
    assert (check.conclusion, check.external_id, check.status) == (
        "success",
        "run 7.1",
        "completed",
    )
    assert check.output == {"title": "fine", "summary": "**two**", "text": "more"}


def test_another_run_has_its_own(github_fake: GitHubFake, wanted: CheckRun) -> None:
    report(wanted)
    report(replace(wanted, external_id="run 8.1"))
    report(replace(wanted, name="other"))
    assert len(github_fake.repository.checks) == 3


def test_annotations_go_in_batches_and_once(github_fake: GitHubFake, wanted: CheckRun) -> None:
    wanted = replace(wanted, annotations=lines(120))
    assert report(wanted) == 3
    assert report(wanted) == 0
    assert annotated(github_fake) == [f"no {n}" for n in range(120)]


def test_annotations_that_are_missing_are_added(github_fake: GitHubFake, wanted: CheckRun) -> None:
    report(replace(wanted, annotations=lines(60)))
    report(replace(wanted, annotations=[*lines(130), lines(1)[0]]))
    assert sorted(annotated(github_fake)) == sorted([f"no {n}" for n in range(130)] + ["no 0"])


def test_of_two_whose_first_answer_was_lost_the_one_that_is_shown_is_complete(
    github_fake: GitHubFake, wanted: CheckRun, waits: list[float]
) -> None:
    github_fake.fail_next("checks/create", 502, applied=True)
    wanted = replace(wanted, annotations=lines(60))
    report(wanted)
    assert report(wanted) == 0
    older, newer = github_fake.repository.checks
    assert (len(older.annotations), len(newer.annotations)) == (50, 60)


HOSTILE: Sequence[Annotation] = (
    Annotation("a.h", 1, "failure", "t" * 300, "m" * 70_000),
    Annotation("a.h", 2, "warning", "\u202eltr\n", "\x1b[31mred\x00\ud800\r\n\tline"),
    Annotation("é 😀/a,b:c.h", 3, "notice", "𝄞" * 100, "𝄞" * 20_000),
)


def test_texts_that_github_would_refuse_are_shortened(
    github_fake: GitHubFake, wanted: CheckRun
) -> None:
    wanted = replace(
        wanted,
        title="\x00" + "x" * 1000,
        summary="| cell |\n" * 20_000,
        text="```\n" + "ü" * 70_000 + "\n```",
        annotations=HOSTILE,
    )
    assert report(wanted) == 1
    assert report(wanted) == 0, "what is compared is what was sent"
    (check,) = github_fake.repository.checks
    assert all(len(str(text).encode()) <= 65_535 for text in check.output.values())
    assert check.annotations[1]["message"] == "\\x1b[31mred\\x00\\ud800\\r\n\tline"


def test_a_commit_that_was_pushed_away_is_said(github_fake: GitHubFake, wanted: CheckRun) -> None:
    with pytest.raises(CiError, match=r"cannot report: .*No commit found"):
        report(replace(wanted, head_sha="0" * 40))
    assert writes(github_fake) == []


def test_a_token_without_the_permission_names_it(
    github_fake: GitHubFake, wanted: CheckRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = {"checks": "read", "contents": "read"}
    monkeypatch.setenv("GITHUB_TOKEN", github_fake.new_token(rights))
    with pytest.raises(CiError, match="permission checks=write"):
        report(wanted)


def test_a_dry_run_makes_none(
    github_fake: GitHubFake, wanted: CheckRun, capsys: pytest.CaptureFixture[str]
) -> None:
    report(replace(wanted, annotations=lines(60)), dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        f"would report the check gate on {wanted.head_sha[:12]}: failure",
        f"would annotate 10 lines on {wanted.head_sha[:12]}",
    ]
    assert github_fake.repository.checks == []
