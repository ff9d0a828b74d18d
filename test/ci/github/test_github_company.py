# SPDX-License-Identifier: BSD-3-Clause
"""Runs that meet each other, or any failure, at any of their calls: nothing is lost or double."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake
from github_fake.bad_days import STRIKES, withstands
from github_fake.company import bears_company
from reporting import FAILS, a_finding, findings_text, judged
from reporting import HEADER as HEADER_FILE
from test_github_convergence import FINDINGS, HEADER, RULES, repository

from torch_backend_ci.cli import main
from torch_backend_ci.github import access
from torch_backend_ci.github.change import perform
from torch_backend_ci.label import apply, sync
from torch_backend_ci.surface.report import json as findings_json

Run = Callable[[], object]


@pytest.fixture
def label(github_fake: GitHubFake) -> Run:
    number = github_fake.open_pull(HEADER).number
    findings = findings_json.read(FINDINGS).findings

    def run() -> None:
        repo = repository()
        with access.failures():
            planned = apply.planned_labels(repo, number, findings, RULES)
            perform(apply.changes(repo, number, planned, RULES), dry_run=False)

    return run


@pytest.fixture
def define(github_fake: GitHubFake) -> Run:
    some = RULES.labels[:3]
    github_fake.world.define_label(github_fake.repository, some[0].name.upper(), "ffffff", "old")

    def run() -> None:
        repo = repository()
        with access.failures():
            perform(sync.changes(repo, some), dry_run=False)

    return run


@pytest.fixture
def comment(github_fake: GitHubFake, tmp_path: Path) -> Run:
    number = github_fake.open_pull(HEADER).number
    body = tmp_path / "body.md"
    body.write_text("once")
    return lambda: main(["comment", f"--pr={number}", "--marker=gate", f"--body={body}"])


@pytest.fixture
def publish(tmp_path: Path) -> Callable[[str], int]:
    def run(name: str) -> int:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{name}.json").write_text("{}")
        words = ["publish", "--branch=results", f"--from={tmp_path / name}", "--message=m"]
        return main(words)

    return run


def test_two_runs_label_one_pull_request(github_fake: GitHubFake, label: Run) -> None:
    bears_company(github_fake, label)
    names = [event.label for event in github_fake.repository.issue(1).events]
    assert len(names) == len(set(names)) > 2


def test_two_runs_define_the_labels(github_fake: GitHubFake, define: Run) -> None:
    bears_company(github_fake, define)


def test_two_runs_comment(github_fake: GitHubFake, comment: Run) -> None:
    bears_company(github_fake, comment)
    (said,) = github_fake.repository.issue(1).comments
    assert said.author == BOT and said.body.endswith("once")


def test_two_runs_publish_files_of_their_own(
    github_fake: GitHubFake, publish: Callable[[str], int]
) -> None:
    bears_company(github_fake, lambda: publish("one"), lambda: publish("two"))
    for name in ("one", "two"):
        assert github_fake.world.file(github_fake.repository, "results", f"{name}.json") == b"{}"


@pytest.fixture
def feed(github_fake: GitHubFake, tmp_path: Path) -> Callable[[int], int]:
    """Tells of one of two merged pull requests."""
    merged = []
    for number in range(2):
        files = {HEADER_FILE: f"{number}\n", f"reference_backend/{number}.py": "1\n"}
        pull = github_fake.open_pull(files, branch=f"topic-{number}")
        merged.append(github_fake.person("alice").merges(pull.number, "squash"))
    found = tmp_path / "findings.json"
    found.write_text(findings_text(a_finding()))
    return lambda number: main(["feed", "add", f"--commit={merged[number]}", f"--findings={found}"])


@pytest.fixture
def report(github_fake: GitHubFake) -> Run:
    _, run = judged(github_fake, FAILS, found=(a_finding(),))
    return lambda: main(["report", f"--run-id={run.id}"])


@pytest.mark.nightly
def test_two_runs_tell_of_merged_pull_requests(
    github_fake: GitHubFake, feed: Callable[[int], int]
) -> None:
    bears_company(github_fake, lambda: feed(0), lambda: feed(1))


WITH_MANY_CALLS = ("feed", "report")


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("verb", ["label", "define", "comment", "publish", *WITH_MANY_CALLS])
def test_any_failure_at_any_call_is_made_good_by_another_run(
    github_fake: GitHubFake,
    verb: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = request.getfixturevalue(verb)
    which = {"publish": ("one",), "feed": (0,)}.get(verb, ())
    strikes = 1 if verb in WITH_MANY_CALLS else len(STRIKES)
    withstands(github_fake, lambda: run(*which), strikes)
    said = "".join(capsys.readouterr())
    assert said and not any(token in said for token in github_fake.tokens)


def test_who_overwrites_another_is_seen(github_fake: GitHubFake) -> None:
    number = github_fake.open_pull(HEADER, body="").number

    def say(word: str) -> None:
        issue = repository().get_issue(number)
        if word not in issue.body:
            issue.edit(body=f"{issue.body} {word}")

    with pytest.raises(AssertionError, match=r"before call 3 [(]issues/update[)] leads elsewhere"):
        bears_company(github_fake, lambda: say("one"), lambda: say("two"))
