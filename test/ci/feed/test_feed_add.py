# SPDX-License-Identifier: BSD-3-Clause
"""`feed add`: what was merged is found, told once, and labelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from github_fake import GitHubFake
from github_fixtures import Verb, writes
from reporting import HEADER, PLACE, a_pull, findings_text

from torch_backend_ci import document
from torch_backend_ci.cli import main
from torch_backend_ci.feed import feed
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity

Deliver = Callable[[str, dict[str, Any]], Path]
URL = "https://github.com/octo-org/puone"


def entries_of(fake: GitHubFake) -> list[dict[str, Any]]:
    data = fake.world.file(fake.repository, "feed", "feed.json")
    return [json.loads(document.dumps(entry)) for entry in feed.read(data)] if data else []


def files_of(fake: GitHubFake) -> set[str]:
    objects = fake.world.objects
    return set(objects.files(objects.commits[fake.repository.refs["refs/heads/feed"]].tree))


def main_of(fake: GitHubFake) -> str:
    return fake.repository.refs["refs/heads/main"]


@pytest.fixture
def pushed(github_fake: GitHubFake, github_event: Deliver) -> Callable[..., None]:
    """The event of a push to main since `before`."""

    def push(before: str, **more: Any) -> None:
        given = {"before": before, "after": main_of(github_fake), **more}
        github_event("push", github_fake.payload("push", **given))

    return push


def a_finding(name: str = "c10::Allocator::x", file: str = PLACE) -> Finding:
    before = Declaration(Domain.CPP, "method", name, "allocator", "virtual void x()", file, 7)
    after = Declaration(Domain.CPP, "method", name, "allocator", "virtual void x() = 0", file, 7)
    severity, message = Severity.COMPILE_BREAK, "it has become pure virtual"
    concerns = ("overriders",)
    return Finding(
        "made_pure", severity, "allocator", Domain.CPP, name, message, before, after, concerns
    )


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_a_merged_change_is_told_and_labelled(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None], tmp_path: Path, how: str
) -> None:
    before, pull = main_of(github_fake), a_pull(github_fake, title="Make x pure")
    commit = github_fake.person("alice").merges(pull.number, how)
    pushed(before)
    (tmp_path / "findings.json").write_text(findings_text(a_finding()))
    ended = verb("feed", "add", "--push", "--findings", tmp_path / "findings.json")
    assert ended.status == 0
    (entry,) = entries_of(github_fake)
    assert (entry["pr"], entry["title"], entry["commit"]) == (pull.number, "Make x pure", commit)
    assert (entry["severity"], entry["surfaces"]) == ("compile_break", ["allocator"])
    assert entry["url"] == f"{URL}/pull/{pull.number}"
    assert entry["findings"][0]["after"] == "virtual void x() = 0"
    assert files_of(github_fake) == {"feed.json", "feed.atom", f"entries/{entry['id']}.json"}
    assert set(github_fake.repository.issue(pull.number).labels) == {
        "impact: compile-break",
        "surface: allocator",
    }


def test_a_second_run_tells_nothing_twice(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before, pull = main_of(github_fake), a_pull(github_fake)
    github_fake.person("alice").merges(pull.number)
    pushed(before)
    verb("feed", "add", "--push")
    github_fake.calls.clear()
    assert verb("feed", "add", "--push").status == 0
    assert writes(github_fake) == []


def test_a_change_of_the_reference_backend_has_its_label(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before = main_of(github_fake)
    pull = github_fake.open_pull({"csrc/runtime/guard.cpp": "1", "README.md": "2"})
    github_fake.person("alice").merges(pull.number, "squash")
    pushed(before)
    verb("feed", "add", "--push")
    (entry,) = entries_of(github_fake)
    assert entry["reference_backend"] == ["csrc/runtime/guard.cpp"]
    assert entry["judged"] is False
    assert github_fake.repository.issue(pull.number).labels == ["reference-backend: touched"]


def test_findings_that_could_not_be_made_do_not_keep_the_news_back(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    commit = github_fake.person("alice").merges(a_pull(github_fake).number, "squash")
    ended = verb("feed", "add", "--commit", commit, "--findings", tmp_path / "none.json")
    assert (ended.status, "is not there" in ended.err) == (0, True)
    (entry,) = entries_of(github_fake)
    assert entry["judged"] is False


def test_findings_that_are_none_are_refused(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    (tmp_path / "f.json").write_text("{}")
    ended = verb("feed", "add", "--commit", "f" * 40, "--findings", tmp_path / "f.json")
    assert (ended.status, github_fake.calls) == (2, [])


def test_what_concerns_nobody_makes_no_branch(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before, pull = main_of(github_fake), github_fake.open_pull({"docs/x.md": "1"})
    github_fake.person("alice").merges(pull.number)
    pushed(before)
    ended = verb("feed", "add", "--push")
    assert (ended.status, "no entry" in ended.err) == (0, True)
    assert writes(github_fake) == []


def test_a_push_with_several_changes_tells_each_its_own_findings(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None], tmp_path: Path
) -> None:
    before = main_of(github_fake)
    one = a_pull(github_fake, title="One")
    two = github_fake.open_pull({"c10/core/Storage.h": "2"}, author="b", title="Two")
    for pull in (one, two):
        github_fake.person("alice").merges(pull.number, "squash")
    pushed(before)
    theirs = a_finding("c10::Storage::y", "torch/include/c10/core/Storage.h")
    (tmp_path / "f.json").write_text(findings_text(a_finding(), theirs))
    verb("feed", "add", "--push", "--findings", tmp_path / "f.json")
    told = {e["title"]: [f["name"] for f in e["findings"]] for e in entries_of(github_fake)}
    assert told == {"One": ["c10::Allocator::x"], "Two": ["c10::Storage::y"]}


# Bots that merge by pushing, as PyTorch's does.


def a_bots_commit(fake: GitHubFake, message: str) -> str:
    return fake.person("pytorchmergebot").pushes({HEADER: f"{len(message)}"}, message=message)


def test_a_trailer_names_the_pull_request_that_a_bot_merged(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before, pull = main_of(github_fake), a_pull(github_fake)
    text = f"Make x pure (#{pull.number})\n\nPull Request resolved: {URL}/pull/{pull.number}\n"
    commit = a_bots_commit(github_fake, text + "Approved by: https://github.com/alice")
    github_fake.person("pytorchmergebot").closes(pull.number)
    pushed(before)
    assert verb("feed", "add", "--push").status == 0
    (entry,) = entries_of(github_fake)
    assert (entry["pr"], entry["commit"]) == (pull.number, commit)
    assert entry["title"] == f"Make x pure (#{pull.number})"


def test_a_trailer_in_the_text_of_the_pull_request_does_not_count(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before = main_of(github_fake)
    victim = a_pull(github_fake, author="victim")
    pull = a_pull(github_fake, author="mallory", branch="other")
    claim = "Pull Request resolved: {}/pull/{}"
    a_bots_commit(
        github_fake,
        f"x\n\n{claim.format(URL, victim.number)}\n\n{claim.format(URL, pull.number)}\n",
    )
    pushed(before)
    verb("feed", "add", "--push")
    assert [entry["pr"] for entry in entries_of(github_fake)] == [pull.number]
    assert github_fake.repository.issue(victim.number).labels == []


@pytest.mark.parametrize(
    "line",
    [
        "Pull Request resolved: https://github.com/other/repo/pull/1",
        "Pull Request resolved: https://evil.example/octo-org/puone/pull/1",
        "Pull Request resolved: https://github.com/octo-org/puone/pull/999",
        "Pull Request resolved: https://github.com/octo-org/puone/pull/1/files",
        "See Pull Request resolved: https://github.com/octo-org/puone/pull/1",
        "Pull Request resolved: https://github.com/octo-org/puone/pull/" + "1" * 30,
        "nothing",
    ],
)
def test_a_commit_that_names_no_pull_request_of_ours_is_of_none(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None], line: str
) -> None:
    before, pull = main_of(github_fake), a_pull(github_fake)
    assert pull.number == 1
    a_bots_commit(github_fake, f"Change\n\n{line}")
    pushed(before)
    ended = verb("feed", "add", "--push")
    assert (ended.status, "of no pull request" in ended.err) == (0, True)
    assert writes(github_fake) == []


def test_a_revert_makes_an_entry_that_says_of_what(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    pull = a_pull(github_fake)
    merged = github_fake.person("alice").merges(pull.number, "squash")
    before = main_of(github_fake)
    title = f'Revert "Make x pure (#{pull.number})"'
    a_bots_commit(
        github_fake,
        f"{title}\n\nThis reverts commit {merged}.\n\n"
        f"Reverted {URL}/pull/{pull.number} on behalf of alice",
    )
    pushed(before)
    verb("feed", "add", "--push")
    (entry,) = entries_of(github_fake)
    assert (entry["title"], entry["reverts"], entry["pr"]) == (title, merged, pull.number)


def test_a_change_and_its_revert_are_two_entries(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before, pull = main_of(github_fake), a_pull(github_fake)
    merged = github_fake.person("alice").merges(pull.number, "squash")
    text = f"Revert\n\nThis reverts commit {merged}.\n\nReverted {URL}/pull/{pull.number} by x"
    a_bots_commit(github_fake, text)
    pushed(before)
    verb("feed", "add", "--push")
    entries = entries_of(github_fake)
    assert [entry["pr"] for entry in entries] == [pull.number] * 2
    assert [entry["reverts"] for entry in entries] == [merged, None]


# What is no merge.


def test_a_pull_request_that_is_open_or_went_elsewhere_is_not_told(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    before = main_of(github_fake)
    repository = github_fake.repository
    repository.refs["refs/heads/release"] = before
    fork = github_fake.world.add_repository("dave/puone", fork_of="octo-org/puone")
    github_fake.world.push(fork, {HEADER: "9"}, "topic", author="dave")
    port = github_fake.world.open_pull(repository, fork, "topic", "dave", "Port", base="release")
    commit = github_fake.person("alice").merges(port.number, "merge")
    github_fake.world.move(repository, "refs/heads/main", commit)
    pushed(before)
    ended = verb("feed", "add", "--push")
    assert (ended.status, writes(github_fake)) == (0, [])


def test_a_push_to_another_branch_is_not_told(
    github_fake: GitHubFake, verb: Verb, github_event: Deliver
) -> None:
    sha = github_fake.person("alice").pushes({HEADER: "1"}, "release")
    github_event("push", github_fake.payload("push", ref="refs/heads/release", after=sha))
    ended = verb("feed", "add", "--push")
    assert (ended.status, "nothing was merged" in ended.err) == (0, True)


def test_a_forced_push_whose_past_is_gone_tells_its_last_commit(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    pull = a_pull(github_fake)
    github_fake.person("alice").merges(pull.number, "squash")
    pushed("f" * 40, forced=True, commits=[], created=False)
    assert verb("feed", "add", "--push").status == 0
    assert [entry["pr"] for entry in entries_of(github_fake)] == [pull.number]


def test_the_event_must_be_a_push(
    github_fake: GitHubFake, verb: Verb, github_event: Deliver
) -> None:
    pull = a_pull(github_fake)
    github_event("pull_request", github_fake.payload("pull_request", "opened", number=pull.number))
    assert verb("feed", "add", "--push").status == 2


# By hand, and on bad days.


def test_a_commit_that_was_missed_is_added_by_hand(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    commit = github_fake.person("alice").merges(pull.number, "squash")
    assert (
        "would put 3 files on branch feed"
        in verb("feed", "add", "--commit", commit, "--dry-run").out
    )
    assert writes(github_fake) == []
    assert verb("feed", "add", "--commit", commit).status == 0
    assert len(entries_of(github_fake)) == 1


@pytest.mark.parametrize("sha", ["", "main", "f" * 39, "F" * 40, "../../git/refs/heads/main"])
def test_what_is_no_commit_is_refused(github_fake: GitHubFake, sha: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["feed", "add", f"--commit={sha}"])
    assert end.value.code == 2


def test_two_pushes_at_once_are_both_told(
    github_fake: GitHubFake, verb: Verb, pushed: Callable[..., None]
) -> None:
    pulls = [a_pull(github_fake, author=name, title=name) for name in ("one", "two")]
    first, second = (github_fake.person("alice").merges(p.number, "squash") for p in pulls)
    verb("feed", "add", "--commit", first)
    theirs = {
        path: github_fake.world.file(github_fake.repository, "feed", path)
        for path in files_of(github_fake)
    }
    del github_fake.repository.refs["refs/heads/feed"]
    world = github_fake.world

    def other() -> None:
        commit = world.commit(world.tree({}, theirs), [], "Theirs")
        world.move(github_fake.repository, "refs/heads/feed", commit)

    github_fake.before("git/create-ref", other)
    verb("feed", "add", "--commit", second)
    assert {entry["title"] for entry in entries_of(github_fake)} == {"one", "two"}


def test_a_damaged_feed_is_not_overwritten(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake)
    commit = github_fake.person("alice").merges(pull.number, "squash")
    github_fake.person("alice").pushes({"feed.json": "{}"}, "feed")
    ended = verb("feed", "add", "--commit", commit)
    assert (ended.status, "feed.json: " in ended.err) == (2, True)
    assert writes(github_fake) == []


def test_a_label_that_a_person_took_away_is_not_put_back(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull = a_pull(github_fake)
    commit = github_fake.person("alice").merges(pull.number, "squash")
    github_fake.person("alice").adds_label(pull.number, "surface: allocator")
    github_fake.person("alice").removes_label(pull.number, "surface: allocator")
    assert verb("feed", "add", "--commit", commit).status == 0
    assert github_fake.repository.issue(pull.number).labels == []


@pytest.mark.nightly
def test_killed_at_any_call_the_feed_converges(
    github_fake: GitHubFake, converges: Callable[..., None], tmp_path: Path
) -> None:
    pull = a_pull(github_fake)
    commit = github_fake.person("alice").merges(pull.number, "squash")
    (tmp_path / "f.json").write_text(findings_text(a_finding()))
    words = ["feed", "add", "--commit", commit, "--findings", str(tmp_path / "f.json")]
    converges(lambda: main(words))
    assert len(entries_of(github_fake)) == 1


def test_the_atom_feed_is_beside_the_json(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake, title="<b>Make</b> it & pure")
    commit = github_fake.person("alice").merges(pull.number, "squash")
    verb("feed", "add", "--commit", commit)
    atom = github_fake.world.file(github_fake.repository, "feed", "feed.atom")
    assert atom is not None
    assert b"&lt;b&gt;Make&lt;/b&gt; it &amp; pure (#1)" in atom
    assert f"{URL}/raw/feed/feed.atom".encode() in atom
    assert entries_of(github_fake)[0]["title"] == pull.title
