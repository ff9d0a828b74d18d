# SPDX-License-Identifier: BSD-3-Clause
"""Two runs at once: wherever one is interrupted by the other, nothing is lost or double."""

from __future__ import annotations

from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake
from github_fake.company import bears_company
from test_github_convergence import FINDINGS, HEADER, RULES, repository

from ci.cli import main
from ci.github.change import perform
from ci.label import apply, sync
from ci.surface.report import json as findings_json


def test_two_runs_label_one_pull_request(github_fake: GitHubFake) -> None:
    number = github_fake.open_pull(HEADER).number
    findings = findings_json.read(FINDINGS).findings

    def label() -> None:
        repo = repository()
        planned = apply.planned_labels(repo, number, findings, RULES)
        perform(apply.changes(repo, number, planned, RULES), dry_run=False)

    bears_company(github_fake, label)
    names = [event.label for event in github_fake.repository.issue(number).events]
    assert len(names) == len(set(names)) > 2


def test_two_runs_define_the_labels(github_fake: GitHubFake) -> None:
    some = RULES.labels[:3]
    github_fake.world.define_label(github_fake.repository, some[0].name.upper(), "ffffff", "old")
    bears_company(github_fake, lambda: perform(sync.changes(repository(), some), dry_run=False))


def test_two_runs_comment(github_fake: GitHubFake, tmp_path: Path) -> None:
    number = github_fake.open_pull(HEADER).number
    body = tmp_path / "body.md"
    body.write_text("once")
    words = ["comment", f"--pr={number}", "--marker=gate", f"--body={body}"]
    bears_company(github_fake, lambda: main(words))
    (said,) = github_fake.repository.issue(number).comments
    assert said.author == BOT and said.body.endswith("once")


def test_two_runs_publish_files_of_their_own(github_fake: GitHubFake, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.json").write_text("{}")

    def publish(name: str) -> None:
        words = ["publish", "--branch=results", f"--from={tmp_path / name}", "--message=m"]
        assert main(words) == 0

    bears_company(github_fake, lambda: publish("one"), lambda: publish("two"))
    for name in ("one", "two"):
        assert github_fake.world.file(github_fake.repository, "results", f"{name}.json") == b"{}"


def test_the_helper_sees_who_overwrites_another(github_fake: GitHubFake, tmp_path: Path) -> None:
    number = github_fake.open_pull(HEADER, body="").number

    def say(word: str) -> None:
        issue = repository().get_issue(number)
        if word not in issue.body:
            issue.edit(body=f"{issue.body} {word}")

    with pytest.raises(AssertionError, match=r"before call 3 [(]issues/update[)] leads elsewhere"):
        bears_company(github_fake, lambda: say("one"), lambda: say("two"))
