# SPDX-License-Identifier: BSD-3-Clause
"""`report` of a pull request: what it is told, in place, and only on the right one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import requests
from github_fake import BOT, GitHubFake, Reply
from github_fake.world import CheckRun, Issue, Run
from github_fixtures import Verb, writes
from reporting import (
    FAILS,
    HEADER,
    a_finding,
    a_pull,
    a_run,
    a_verdict,
    evidence,
    findings_text,
    judged,
    zipped,
)

from torch_backend_ci import document
from torch_backend_ci.cli import main
from torch_backend_ci.gate import verdict
from torch_backend_ci.report import page


def labels_of(fake: GitHubFake, pull: Issue) -> set[str]:
    return set(fake.repository.issue(pull.number).labels)


def comments_of(fake: GitHubFake, pull: Issue) -> list[str]:
    return [comment.body for comment in fake.repository.issue(pull.number).comments]


def the_check(fake: GitHubFake) -> CheckRun:
    (check,) = fake.repository.checks
    return check


def untouched(fake: GitHubFake) -> bool:
    """Whether nothing at all was written."""
    return not writes(fake)


# An honest run.


def test_a_regression_becomes_labels_a_check_run_and_a_comment(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    assert verb("report", "--run-id", run.id).status == 0
    assert labels_of(github_fake, pull) == {"impact: compile-break", "surface: allocator"}
    check = the_check(github_fake)
    assert (check.name, check.conclusion, check.head_sha) == ("verdict", "failure", run.head_sha)
    assert (check.external_id, check.output["title"]) == (
        str(run.id),
        "regression; 1 compile break",
    )
    (annotation,) = check.annotations
    assert (annotation["path"], annotation["start_line"]) == (HEADER, 7)
    assert annotation["annotation_level"] == "failure"
    (comment,) = comments_of(github_fake, pull)
    assert comment.startswith("<!-- puone-ci: gate -->\nOf commit `")
    assert run.head_sha[:12] in comment
    assert FAILS in comment
    assert "c10::Allocator::x" in comment


def test_a_second_run_over_the_same_changes_nothing(github_fake: GitHubFake, verb: Verb) -> None:
    _, run = judged(github_fake, FAILS, found=(a_finding(),))
    verb("report", "--run-id", run.id)
    github_fake.calls.clear()
    assert verb("report", "--run-id", run.id).status == 0
    assert untouched(github_fake)


def test_a_fixed_pull_request_is_told_so_in_place(github_fake: GitHubFake, verb: Verb) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    verb("report", "--run-id", run.id)
    first = github_fake.repository.issue(pull.number).comments[0].id
    sha = github_fake.person("contributor").pushes_to_pull(pull.number, {HEADER: "fixed\n"})
    fixed = a_run(github_fake, pull, evidence(sha))
    assert verb("report", "--run-id", fixed.id).status == 0
    (comment,) = github_fake.repository.issue(pull.number).comments
    assert comment.id == first
    assert sha[:12] in comment.body
    assert FAILS not in comment.body
    assert labels_of(github_fake, pull) == {"impact: none", "surface: allocator"}
    conclusions = {check.head_sha: check.conclusion for check in github_fake.repository.checks}
    assert conclusions == {run.head_sha: "failure", sha: "success"}


def test_a_dry_run_only_says_what_it_would_do(github_fake: GitHubFake, verb: Verb) -> None:
    _, run = judged(github_fake, FAILS, found=(a_finding(),))
    ended = verb("report", "--run-id", run.id, "--dry-run")
    assert ended.status == 0
    assert "would label #1" in ended.out
    assert "would report the check verdict" in ended.out
    assert "would comment on #1" in ended.out
    assert untouched(github_fake)


def test_a_run_without_findings_claims_no_impact(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    assert pull.pull is not None
    text = verdict.render(a_verdict(pull.pull.head_sha))
    run = a_run(github_fake, pull, zipped({"verdict.json": text}))
    verb("report", "--run-id", run.id)
    assert labels_of(github_fake, pull) == {"surface: allocator"}
    assert "The surface was not examined" in comments_of(github_fake, pull)[0]


def test_the_check_is_never_better_than_the_run(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    assert pull.pull is not None
    run = a_run(github_fake, pull, evidence(pull.pull.head_sha), conclusion="failure")
    verb("report", "--run-id", run.id)
    check = the_check(github_fake)
    assert check.conclusion == "failure"
    assert "the run ended as failure" in (check.output["title"] or "")


def test_what_is_no_news_begins_no_conversation(github_fake: GitHubFake, verb: Verb) -> None:
    pull, run = judged(github_fake, found=(a_finding(severity="cosmetic"),))
    verb("report", "--run-id", run.id)
    assert the_check(github_fake).conclusion == "success"
    assert comments_of(github_fake, pull) == []


@pytest.mark.parametrize("conclusion", ["action_required", "skipped"])
def test_a_run_that_waits_for_approval_is_nothing_to_tell_of(
    github_fake: GitHubFake, verb: Verb, conclusion: str
) -> None:
    run = a_run(github_fake, a_pull(github_fake), None, conclusion=conclusion)
    ended = verb("report", "--run-id", run.id)
    assert (ended.status, conclusion in ended.err) == (0, True)
    assert untouched(github_fake)


def test_a_repeated_run_changes_its_own_check_run(github_fake: GitHubFake, verb: Verb) -> None:
    pull, run = judged(github_fake, FAILS)
    verb("report", "--run-id", run.id)
    assert pull.pull is not None
    run.attempt, run.conclusion = 2, "success"
    data = evidence(pull.pull.head_sha)
    github_fake.world.add_artifact(github_fake.repository, run, "verdict", data)
    verb("report", "--run-id", run.id)
    assert the_check(github_fake).conclusion == "success"


# People.


def test_a_label_that_a_person_took_away_is_not_put_back(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    verb("report", "--run-id", run.id)
    github_fake.person("alice").removes_label(pull.number, "surface: allocator")
    verb("report", "--run-id", run.id)
    assert labels_of(github_fake, pull) == {"impact: compile-break"}


def test_a_comment_with_our_marker_of_somebody_else_is_left_alone(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, FAILS)
    forged = "<!-- puone-ci: gate -->\nAll is well."
    github_fake.person("mallory").comments(pull.number, forged)
    verb("report", "--run-id", run.id)
    theirs, ours = github_fake.repository.issue(pull.number).comments
    assert (theirs.author, theirs.body) == ("mallory", forged)
    assert ours.author == BOT


def test_a_locked_pull_request_still_gets_its_check_run(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, FAILS)
    github_fake.person("alice").locks(pull.number)
    assert verb("report", "--run-id", run.id).status == 0
    assert the_check(github_fake).conclusion == "failure"
    assert comments_of(github_fake, pull) == []


# Which pull request.


def test_a_number_that_the_artifact_names_is_of_no_interest(
    github_fake: GitHubFake, verb: Verb
) -> None:
    victim = a_pull(github_fake, author="victim")
    pull = a_pull(github_fake, author="mallory", branch="other")
    assert pull.pull is not None
    honest = verdict.render(a_verdict(pull.pull.head_sha))
    number = f"{victim.number}\n"
    files = {
        "verdict.json": honest,
        "pr.txt": number,
        "number": number,
        "event.json": json.dumps({"pull_request": {"number": victim.number}}),
    }
    run = a_run(github_fake, pull, zipped(files))
    verb("report", "--run-id", run.id)
    assert comments_of(github_fake, victim) == []
    assert labels_of(github_fake, victim) == set()
    assert len(comments_of(github_fake, pull)) == 1


@pytest.mark.parametrize("key", ["pr", "number", "pull_request", "repository", "run_id"])
def test_a_verdict_with_a_number_in_it_is_no_verdict(
    github_fake: GitHubFake, verb: Verb, key: str
) -> None:
    victim = a_pull(github_fake, author="victim")
    pull = a_pull(github_fake, author="mallory", branch="other")
    assert pull.pull is not None
    document = json.loads(verdict.render(a_verdict(pull.pull.head_sha))) | {key: victim.number}
    run = a_run(github_fake, pull, zipped({"verdict.json": json.dumps(document)}))
    verb("report", "--run-id", run.id)
    assert the_check(github_fake).conclusion == "action_required"
    assert comments_of(github_fake, victim) == []


@pytest.mark.parametrize("whose", ["nobody's", "the victim's", "the base's", "no"])
def test_a_verdict_on_another_commit_is_not_believed(
    github_fake: GitHubFake, verb: Verb, whose: str
) -> None:
    victim = a_pull(github_fake, author="victim")
    pull = a_pull(github_fake, author="mallory", branch="other")
    assert pull.pull is not None
    assert victim.pull is not None
    shas: dict[str, str | None] = {
        "nobody's": "f" * 40,
        "the victim's": victim.pull.head_sha,
        "the base's": pull.pull.base_sha,
        "no": None,
    }
    made = document.plain(a_verdict("")) | {"head_sha": shas[whose]}
    run = a_run(github_fake, pull, zipped({"verdict.json": json.dumps(made)}))
    verb("report", "--run-id", run.id)
    check = the_check(github_fake)
    assert (check.head_sha, check.conclusion) == (pull.pull.head_sha, "action_required")
    assert "the verdict is of commit" in comments_of(github_fake, pull)[0]
    assert comments_of(github_fake, victim) == []
    assert labels_of(github_fake, pull) == set()


@pytest.mark.parametrize("force", [True, False])
def test_a_run_of_a_commit_that_was_replaced_is_outdated(
    github_fake: GitHubFake, verb: Verb, force: bool
) -> None:
    pull, run = judged(github_fake, FAILS)
    github_fake.person("contributor").pushes_to_pull(pull.number, {HEADER: "2"}, force=force)
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 0
    assert "is outdated" in ended.err
    assert untouched(github_fake)


@pytest.mark.parametrize(
    "operation",
    [
        "actions/get-workflow-run",
        "actions/list-workflow-run-artifacts",
        "actions/download-artifact",
        "pulls/list-files",
        "issues/list-events-for-timeline",
    ],
)
def test_a_push_before_anything_was_written_leaves_nothing(
    github_fake: GitHubFake, verb: Verb, operation: str
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    person = github_fake.person("contributor")
    github_fake.after(
        operation, lambda: person.pushes_to_pull(pull.number, {HEADER: "2"}, force=True)
    )
    assert verb("report", "--run-id", run.id).status == 0
    assert untouched(github_fake)


@pytest.mark.parametrize("operation", ["issues/add-labels", "checks/create"])
def test_a_push_in_the_middle_ends_the_telling(
    github_fake: GitHubFake, verb: Verb, operation: str
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    person = github_fake.person("contributor")
    github_fake.after(
        operation, lambda: person.pushes_to_pull(pull.number, {HEADER: "2"}, force=True)
    )
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 0
    assert "nothing more is published" in ended.err
    assert writes(github_fake)[-1] == operation
    assert comments_of(github_fake, pull) == []


def test_of_two_forks_with_the_same_branch_only_one_is_told(
    github_fake: GitHubFake, verb: Verb
) -> None:
    ours, run = judged(github_fake, FAILS)
    theirs = a_pull(github_fake, author="bystander")
    assert theirs.pull is not None
    assert ours.pull is not None
    assert theirs.pull.head_branch == ours.pull.head_branch
    verb("report", "--run-id", run.id)
    assert comments_of(github_fake, theirs) == []
    assert len(comments_of(github_fake, ours)) == 1


def test_of_two_forks_with_the_same_commit_only_one_is_told(
    github_fake: GitHubFake, verb: Verb
) -> None:
    # Somebody pushes another's commit to a branch of the same name in a fork of his own.
    victim = a_pull(github_fake, author="victim")
    assert victim.pull is not None
    copy = github_fake.world.add_repository("mallory/puone", fork_of="octo-org/puone")
    github_fake.world.move(copy, "refs/heads/topic", victim.pull.head_sha)
    pull = github_fake.world.open_pull(github_fake.repository, copy, "topic", "mallory", "Mine")
    run = a_run(github_fake, pull, evidence(victim.pull.head_sha, FAILS))
    verb("report", "--run-id", run.id)
    assert comments_of(github_fake, victim) == []
    assert len(comments_of(github_fake, pull)) == 1


def test_a_branch_of_ours_with_the_name_of_the_fork_s_is_another_one(
    github_fake: GitHubFake, verb: Verb
) -> None:
    ours = a_pull(github_fake, author="maintainer", fork=False)
    theirs, run = judged(github_fake, FAILS)
    verb("report", "--run-id", run.id)
    assert comments_of(github_fake, ours) == []
    assert len(comments_of(github_fake, theirs)) == 1


def test_a_list_that_github_did_not_filter_is_filtered_here(
    github_fake: GitHubFake, verb: Verb
) -> None:
    others = [a_pull(github_fake, author=f"someone{n}", branch=f"b{n}") for n in range(3)]
    pull, run = judged(github_fake, FAILS)
    token = {"Authorization": f"token {github_fake.token}"}
    every = requests.get(f"{github_fake.url}/repos/octo-org/puone/pulls", headers=token, timeout=9)
    assert len(every.json()) == 4
    github_fake.rewrite("pulls/list", lambda reply: setattr(reply, "body", every.json()))
    verb("report", "--run-id", run.id)
    assert [comments_of(github_fake, other) for other in others] == [[], [], []]
    assert len(comments_of(github_fake, pull)) == 1


def test_a_run_for_one_of_two_bases_is_told_to_neither(github_fake: GitHubFake, verb: Verb) -> None:
    pull, run = judged(github_fake, FAILS)
    assert pull.pull is not None
    repository = github_fake.repository
    repository.refs["refs/heads/release"] = repository.refs["refs/heads/main"]
    fork = github_fake.world.repository("contributor/puone")
    github_fake.world.open_pull(repository, fork, "topic", "contributor", "Port", base="release")
    ended = verb("report", "--run-id", run.id)
    assert "it may have been for any of #2, #1" in ended.err
    assert untouched(github_fake)


def closes(fake: GitHubFake, number: int) -> None:
    fake.person("alice").closes(number)


def merges(fake: GitHubFake, number: int) -> None:
    fake.person("alice").merges(number)


def loses_its_fork(fake: GitHubFake, number: int) -> None:
    gone = {"head_repository": None}  # as GitHub says it, though its description does not
    fake.rewrite("actions/get-workflow-run", lambda reply: reply.body.update(gone))


def loses_its_fork_meanwhile(fake: GitHubFake, number: int) -> None:
    def gone(reply: Reply) -> None:
        reply.body["head"]["repo"] = None

    fake.rewrite("pulls/get", gone)


@pytest.mark.parametrize("happens", [closes, merges, loses_its_fork, loses_its_fork_meanwhile])
def test_a_pull_request_that_has_ended_is_told_nothing(
    github_fake: GitHubFake, verb: Verb, happens: Callable[[GitHubFake, int], None]
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    happens(github_fake, pull.number)
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 0
    assert "nothing is published" in ended.err
    assert untouched(github_fake)


def test_a_pull_request_that_is_closed_meanwhile_is_told_no_more(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    github_fake.after("issues/add-labels", lambda: closes(github_fake, pull.number))
    ended = verb("report", "--run-id", run.id)
    assert "#1 is closed" in ended.err
    assert not github_fake.repository.checks
    assert comments_of(github_fake, pull) == []


# What the run left is nothing to be believed.


def of_schema(version: object) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | {"schema_version": version})


HOSTILE_TEXTS: dict[str, Callable[[str], str | bytes]] = {
    "a version from the future": of_schema(2),
    "a version that is text": of_schema("1"),
    "no JSON": lambda text: "<html>",
    "nothing": lambda text: "",
    "half of it": lambda text: text[: len(text) // 2],
    "a list": lambda text: "[]",
    "a number": lambda text: "7",
    "null": lambda text: "null",
    "nested deeply": lambda text: "[" * 200_000,
    "nested deeply in place": lambda text: text.rstrip()[:-1] + ',"x":' + '{"a":' * 50_000,
    "a key twice": lambda text: text.rstrip()[:-1] + ',"outcome": "ok"}',
    "NaN": lambda text: text.replace("null", "NaN", 1),
    "a huge number": lambda text: text.replace('"left_out": 0', f'"left_out": {"9" * 5000}'),
    "a negative count": lambda text: text.replace('"left_out": 0', '"left_out": -1'),
    "UTF-16": lambda text: text.encode("utf-16"),
    "half a character": lambda text: text.replace("2.13.0", "\\ud800"),
    "9 MB of text": lambda text: text.replace("2.13.0", "x" * 9_000_000),
    "an outcome that does not follow": lambda text: text.replace('"regression"', '"ok"', 1),
    "an outcome that does not exist": lambda text: text.replace('"regression"', '"great"', 1),
    "fewer checks than it says": lambda text: text.replace('"regression": 1', '"regression": 9'),
}


@pytest.mark.parametrize("how", HOSTILE_TEXTS)
def test_a_verdict_that_is_none_becomes_infrastructure(
    github_fake: GitHubFake, verb: Verb, how: str
) -> None:
    pull = a_pull(github_fake)
    assert pull.pull is not None
    text = verdict.render(a_verdict(pull.pull.head_sha, FAILS))
    spoiled = HOSTILE_TEXTS[how](text)
    assert spoiled != text
    data = zipped({"verdict.json": spoiled, "findings.json": findings_text(a_finding())})
    told_infrastructure(github_fake, verb, pull, a_run(github_fake, pull, data))


HOSTILE_FINDINGS: dict[str, Callable[[str], str]] = {
    "a version from the future": of_schema(99),
    "no JSON": lambda text: text[:-5],
    "nested deeply": lambda text: "[" * 200_000,
    "a surface that does not exist": lambda text: text.replace('"allocator"', '"everything"'),
    "a severity that does not exist": lambda text: text.replace("compile_break", "splendid"),
    "a declaration of another form": lambda text: text.replace('"line": 7', '"line": "7"'),
    "a key too many": lambda text: text.replace('"hidden": 0', '"hidden": 0, "pr": 1'),
}


@pytest.mark.parametrize("how", HOSTILE_FINDINGS)
def test_findings_that_are_none_discredit_the_verdict_too(
    github_fake: GitHubFake, verb: Verb, how: str
) -> None:
    pull = a_pull(github_fake)
    assert pull.pull is not None
    text = findings_text(a_finding())
    spoiled = HOSTILE_FINDINGS[how](text)
    assert spoiled != text
    honest = verdict.render(a_verdict(pull.pull.head_sha))
    data = zipped({"verdict.json": honest, "findings.json": spoiled})
    told_infrastructure(github_fake, verb, pull, a_run(github_fake, pull, data))


def told_infrastructure(fake: GitHubFake, verb: Verb, pull: Issue, run: Run) -> None:
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 0
    check = the_check(fake)
    assert (check.conclusion, check.head_sha) == ("action_required", run.head_sha)
    assert check.annotations == []
    assert (check.output["title"] or "").startswith("infrastructure")
    assert labels_of(fake, pull) == set()
    (comment,) = comments_of(fake, pull)
    assert "infrastructure" in comment
    assert len(comment) < 5000


def no_artifact(fake: GitHubFake, pull: Issue) -> Run:
    return a_run(fake, pull, None, conclusion="cancelled")


def of_another_name(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    return a_run(fake, pull, evidence(pull.pull.head_sha), name="verdict2")


def of_another_run(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    a_run(fake, pull, evidence(pull.pull.head_sha))
    return a_run(fake, pull, None)


def expired(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    run = a_run(fake, pull, evidence(pull.pull.head_sha))
    next(iter(fake.repository.artifacts.values())).expired = True
    return run


def gone_meanwhile(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    fake.fail_next("actions/download-artifact", 410)
    return a_run(fake, pull, evidence(pull.pull.head_sha))


def of_200_mb(fake: GitHubFake, pull: Issue) -> Run:
    run = a_run(fake, pull, b"PK")
    next(iter(fake.repository.artifacts.values())).size = 200_000_000
    return run


def a_bomb(fake: GitHubFake, pull: Issue) -> Run:
    return a_run(fake, pull, zipped({"verdict.json": bytes(50_000_000)}))


def a_slip(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    honest = verdict.render(a_verdict(pull.pull.head_sha))
    return a_run(fake, pull, zipped({"verdict.json": honest, "../../ci/cli.py": "evil"}))


def truncated(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    return a_run(fake, pull, evidence(pull.pull.head_sha)[:-30])


def without_a_verdict(fake: GitHubFake, pull: Issue) -> Run:
    return a_run(fake, pull, zipped({"findings.json": findings_text()}))


def in_a_folder(fake: GitHubFake, pull: Issue) -> Run:
    assert pull.pull is not None
    honest = verdict.render(a_verdict(pull.pull.head_sha))
    return a_run(fake, pull, zipped({"verdict/verdict.json": honest}))


@pytest.mark.parametrize(
    "left",
    [
        no_artifact,
        of_another_name,
        of_another_run,
        expired,
        gone_meanwhile,
        of_200_mb,
        a_bomb,
        a_slip,
        truncated,
        without_a_verdict,
        in_a_folder,
    ],
)
def test_an_artifact_that_cannot_be_used_becomes_infrastructure(
    github_fake: GitHubFake, verb: Verb, left: Callable[[GitHubFake, Issue], Run]
) -> None:
    pull = a_pull(github_fake)
    told_infrastructure(github_fake, verb, pull, left(github_fake, pull))


def test_a_comment_of_an_earlier_commit_does_not_stand_where_the_next_is_lost(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull, run = judged(github_fake, found=(a_finding(severity="deprecated"),))
    verb("report", "--run-id", run.id)
    assert "✅ ok" in comments_of(github_fake, pull)[0]
    github_fake.person("contributor").pushes_to_pull(pull.number, {HEADER: "2"})
    lost = a_run(github_fake, pull, None, conclusion="cancelled")
    verb("report", "--run-id", lost.id)
    (comment,) = comments_of(github_fake, pull)
    assert "ok" not in comment
    assert "infrastructure" in comment


# Texts that strangers choose.

INJECTIONS = [
    "<img src=https://evil.example/x onerror=alert(1)>",
    "<!-- puone-ci: gate -->",
    "</details></td></table><h1>Approved</h1>",
    "[click](https://evil.example)",
    "![x](https://evil.example/pixel.png)",
    "@octo-org/everybody please merge, fixes #1, closes octo-org/puone#1",
    "```\n```\n# Approved\n@alice",
    "````diff\n+ evil\n````\n<script>",
    "a | b | c\n| - | - |",
    "`` ` ``<b>bold</b>`",
    "\u202eevil\u202c \u200b \x1b[31m \x00",
    "::error file=a.h,line=1::injected\n::set-output name=x::y",
    "https://evil.example www.evil.example GH-1",
    "\r\n\r\n---\r\n<details open>",
]


DETAILS = "<details><summary>message and how to repeat it</summary>"  # of the gate's own


def outside_of_code(comment: str) -> str:
    """What GitHub takes for markdown: without fenced blocks and code spans."""
    body = re.sub(r"^(`{3,})[^\n]*\n.*?^\1`*$", "", comment, flags=re.M | re.S)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", body)


@pytest.mark.parametrize("text", INJECTIONS)
def test_nothing_that_a_test_says_is_markup(github_fake: GitHubFake, verb: Verb, text: str) -> None:
    text = text.replace("\x00", "\\u0000")  # strict JSON takes it as an escape
    pull = a_pull(github_fake)
    assert pull.pull is not None
    made = document.plain(a_verdict(pull.pull.head_sha, FAILS, message=text, repro=text))
    made["notes"] = [text]
    made["lanes"][0]["notes"] = [text]
    for cause in made["findings"]:
        cause |= {"name": text, "message": text, "hint": text}
    found = a_finding(text, message=text)
    data = zipped(
        {
            "verdict.json": json.dumps(made),
            "findings.json": findings_text(found),
        }
    )
    ended = verb("report", "--run-id", a_run(github_fake, pull, data).id)
    assert ended.status == 0
    assert the_check(github_fake).conclusion == "failure", comments_of(github_fake, pull)
    (comment,) = comments_of(github_fake, pull)
    summary = the_check(github_fake).output["summary"] or ""
    for body in (comment.partition("\n")[2], summary):
        free = re.sub(r"\[run \d+\]\(<[^>]*>\)|</?sub>", "", outside_of_code(body))
        assert free.count("</details>") == free.count(DETAILS) == 1
        free = free.replace(DETAILS, "").replace("</details>", "")
        assert not re.search(r"<[A-Za-z!/]", free), free
        assert not re.search(r"(?<!\\)\]\(", free)
        assert not re.search(r"(?<![\w&])@\w", free)
        assert not re.search(r"(?<!&)#\d", free)
        assert "https://evil" not in free
        assert not re.search("[\u202a-\u202e\x00\x1b]", body)
    assert comment.count("<!-- puone-ci: gate -->\nOf commit") == 1
    assert not re.search(r"^::", ended.out + ended.err, re.M)


def test_however_much_there_is_to_say_github_takes_it(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    assert pull.pull is not None
    failing = [f"allocator/case{n}:\u00e9{'x' * 50}:float32" for n in range(400)]
    found = tuple(a_finding(f"c10::x{n}", message="\u00e9" * 900, line=n) for n in range(300))
    data = evidence(pull.pull.head_sha, *failing, found=found, message="\U0001f600" * 3000)
    assert verb("report", "--run-id", a_run(github_fake, pull, data).id).status == 0
    check = the_check(github_fake)
    assert check.conclusion == "failure", comments_of(github_fake, pull)[0][:500]
    assert len(check.annotations) == page.MOST_ANNOTATIONS
    (comment,) = comments_of(github_fake, pull)
    assert 20_000 < len(comment) <= 65_536


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "torch/include/../../x.h",
        "torch/include/c10/core/Other.h",
        "torch/include/c10/core/Allocator.h\n",
        "a.h",
        "",
    ],
)
def test_annotations_are_made_only_in_files_that_the_pull_request_changes(
    github_fake: GitHubFake, verb: Verb, file: str
) -> None:
    _, run = judged(github_fake, found=(a_finding(file=file), a_finding("c10::y")))
    verb("report", "--run-id", run.id)
    assert [a["path"] for a in the_check(github_fake).annotations] == [HEADER]


@pytest.mark.parametrize(("line", "shown"), [(0, 1), (7, 7), (10**15, 1)])
def test_annotations_stand_on_lines_that_files_have(
    github_fake: GitHubFake, verb: Verb, line: int, shown: int
) -> None:
    _, run = judged(github_fake, found=(a_finding(line=line),))
    verb("report", "--run-id", run.id)
    assert the_check(github_fake).annotations[0]["start_line"] == shown


# Runs that are not meant.


def test_a_run_of_another_workflow_is_refused(github_fake: GitHubFake, verb: Verb) -> None:
    # A PR can bring a workflow of its own that is called `pr` too.
    pull = a_pull(github_fake)
    run = a_run(github_fake, pull, None, path=".github/workflows/evil.yml", name="pr")
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 2
    assert "evil.yml" in ended.err
    assert untouched(github_fake)


def test_a_run_that_goes_on_is_left_alone(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    run = a_run(github_fake, pull, None, status="in_progress", conclusion=None)
    ended = verb("report", "--run-id", run.id)
    assert (ended.status, "has not ended" in ended.err) == (0, True)
    assert untouched(github_fake)


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "1e3", "\u0661", str(1 << 53), "1 2"])
def test_what_is_no_number_of_a_run_is_refused(
    github_fake: GitHubFake, verb: Verb, number: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["report", f"--run-id={number}"])
    assert end.value.code == 2
    assert github_fake.calls == []


def test_a_run_that_does_not_exist_is_said(github_fake: GitHubFake, verb: Verb) -> None:
    ended = verb("report", "--run-id", 424242)
    assert ended.status == 2
    assert "cannot tell of run 424242: GitHub says 404" in ended.err


# Tokens.


def test_a_token_that_expires_midway_is_said_and_a_new_one_completes(
    github_fake: GitHubFake, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    old = github_fake.tokens[github_fake.token]
    github_fake.after("issues/add-labels", lambda: setattr(old, "expired", True))
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 2
    assert "401" in ended.err
    assert old.text not in ended.out + ended.err
    monkeypatch.setenv("GITHUB_TOKEN", github_fake.new_token())
    assert verb("report", "--run-id", run.id).status == 0
    assert the_check(github_fake).conclusion == "failure"
    assert len(comments_of(github_fake, pull)) == 1


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("actions", "actions=read"),
        ("checks", "checks=read"),
        ("issues", "issues=write"),
    ],
)
def test_a_permission_that_is_missing_is_named(
    github_fake: GitHubFake,
    verb: Verb,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    named: str,
) -> None:
    _, run = judged(github_fake, FAILS, found=(a_finding(),))
    all_of_them = {
        "actions": "read",
        "checks": "write",
        "contents": "read",
        "issues": "write",
        "pull_requests": "write",
    }
    less = {name: level for name, level in all_of_them.items() if name != missing}
    if missing == "issues":
        less["pull_requests"] = "read"
    monkeypatch.setenv("GITHUB_TOKEN", github_fake.new_token(less))
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 2
    assert named in ended.err
    monkeypatch.setenv("GITHUB_TOKEN", github_fake.new_token(all_of_them))
    assert verb("report", "--run-id", run.id).status == 0


# Kills.


@pytest.mark.nightly
def test_killed_at_any_call_the_report_converges(
    github_fake: GitHubFake, converges: Callable[..., None]
) -> None:
    _, run = judged(github_fake, FAILS, found=(a_finding(),))
    for name in ("impact: compile-break", "surface: allocator"):  # that `label` makes them: there
        github_fake.world.define_label(github_fake.repository, name)
    converges(lambda: main(["report", "--run-id", str(run.id)]))
