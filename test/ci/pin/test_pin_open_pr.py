# SPDX-License-Identifier: BSD-3-Clause
"""A pin is moved by one pull request, which is kept up to date and never stands in people's way."""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from github_fake import BOT, GitHubFake
from github_fake.bad_days import withstands
from github_fake.company import bears_company
from github_fake.world import Issue
from github_fixtures import Ended, Verb, writes
from pin_index import REQUIREMENTS, PinIndex, pin, put, serving_pins

from torch_backend_ci.github import access, commit
from torch_backend_ci.pin import file, pull_request
from torch_backend_ci.pin.model import Pin, Source
from torch_backend_ci.pin.show import resolved
from torch_backend_ci.pin.verbs import update

# Until pip 24, finding packages imports what setuptools calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:pkg_resources:DeprecationWarning")

BRANCH = "pin/newest"
Run = Callable[..., Ended]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PinIndex]:
    with serving_pins(tmp_path / "index", monkeypatch) as running:
        yield running


@pytest.fixture
def run(verb: Verb, tmp_path: Path) -> Run:
    """`pin open-pr newest`; the checkout knows no pin that the repository on GitHub has not."""

    def run(*words: object) -> Ended:
        fixed = ["--root", tmp_path, "--cache", tmp_path / "cache"]
        return verb("pin", "open-pr", *(words or ("newest", "--no-surface-diff")), *fixed)

    return run


def pushed(fake: GitHubFake, *pins: Pin) -> str:
    """The pins on the default branch."""
    files = {file.place(one.name): file.render(one) for one in pins}
    return fake.person("maintainer").pushes(files | {"requirements/torch.txt": REQUIREMENTS})


def on(fake: GitHubFake, branch: str, name: str = "newest") -> Pin:
    data = fake.world.file(fake.repository, branch, file.place(name))
    assert data is not None
    return file.parse(name, data, branch)


def pulls(fake: GitHubFake) -> list[Issue]:
    return [issue for issue, _ in fake.repository.pulls()]


def open_pulls(fake: GitHubFake) -> list[Issue]:
    return [issue for issue in pulls(fake) if issue.state == "open"]


def tip(fake: GitHubFake, branch: str = BRANCH) -> str:
    return fake.repository.refs[f"refs/heads/{branch}"]


def parents(fake: GitHubFake, branch: str = BRANCH) -> tuple[str, ...]:
    return fake.world.objects.commits[tip(fake, branch)].parents


@pytest.fixture
def proposed(index: PinIndex, github_fake: GitHubFake, run: Run) -> GitHubFake:
    """2.14.0 is proposed after 2.13.0."""
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    assert run().status == 0
    github_fake.calls.clear()
    return github_fake


def test_a_newer_release_is_proposed_on_a_branch_of_its_own(proposed: GitHubFake) -> None:
    (issue,) = pulls(proposed)
    assert issue.title == "Pin newest: torch 2.13.0 -> 2.14.0"
    assert issue.pull and issue.pull.head_branch == BRANCH
    assert resolved(on(proposed, BRANCH)).version == "2.14.0"
    assert resolved(on(proposed, "main")).version == "2.13.0"
    assert parents(proposed) == (tip(proposed, "main"),)


def test_two_runs_a_day_make_one_pull_request(proposed: GitHubFake, run: Run) -> None:
    ended = run()
    assert (ended.status, writes(proposed)) == (0, [])
    assert "#1 proposes it already" in ended.err


def test_a_pin_that_needs_nothing_gets_no_pull_request(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    ended = run()
    assert (ended.status, writes(github_fake)) == (0, [])
    assert "there is nothing to propose" in ended.err


def test_a_newer_version_takes_over_the_open_pull_request(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    index.add("2.15.0")
    assert run().status == 0
    (issue,) = pulls(proposed)
    assert issue.title == "Pin newest: torch 2.13.0 -> 2.15.0"
    assert resolved(on(proposed, BRANCH)).version == "2.15.0"
    assert parents(proposed) == (tip(proposed, "main"),)


def test_when_the_base_moves_the_branch_is_put_on_top_of_it(proposed: GitHubFake, run: Run) -> None:
    main = proposed.person("maintainer").pushes({"README.md": "new"})
    assert run().status == 0
    assert parents(proposed) == (main,)
    assert proposed.world.file(proposed.repository, BRANCH, "README.md") == b"new"
    assert len(pulls(proposed)) == 1
    assert "pulls/update" not in writes(proposed)


def test_words_that_people_changed_stay_as_long_as_the_version(
    proposed: GitHubFake, run: Run
) -> None:
    (issue,) = pulls(proposed)
    issue.title = "Please look at this"
    issue.body = f"Ask Ada.\n{issue.body}"
    proposed.person("maintainer").pushes({"README.md": "new"})
    assert run().status == 0
    assert issue.title == "Please look at this"
    assert (issue.body or "").startswith("Ask Ada.")


def test_a_branch_that_somebody_pushed_to_is_left_alone(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    theirs = proposed.person("ada").pushes_to_pull(1, {"docs/note.md": "needs care"})
    proposed.person("maintainer").pushes({"README.md": "new"})
    index.add("2.15.0")
    ended = run()
    assert (ended.status, writes(proposed)) == (0, [])
    assert "somebody pushed to pin/newest (#1): it is left alone" in ended.err
    assert tip(proposed) == theirs


def test_a_commit_of_ours_that_somebody_amended_is_theirs(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    def amended(reply: Any) -> None:
        reply.body["committer"]["name"] = "Ada"

    index.add("2.15.0")
    proposed.rewrite("git/get-commit", amended, times=10)
    assert "is left alone" in run().err
    assert writes(proposed) == []


def test_a_branch_of_that_name_that_was_never_ours_is_left_alone(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    github_fake.person("ada").pushes({"x": "y"}, BRANCH)
    ended = run()
    assert (ended.status, writes(github_fake)) == (0, [])
    assert "somebody pushed to pin/newest: it is left alone" in ended.err


def test_somebody_who_pushes_in_this_moment_loses_nothing(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    index.add("2.15.0")
    ada = proposed.person("ada")
    proposed.before("git/create-commit", lambda: ada.pushes_to_pull(1, {"note.md": "mine"}))
    ended = run()
    assert ended.status == 2
    assert "pin/newest moved in this moment" in ended.err
    assert proposed.world.file(proposed.repository, BRANCH, "note.md") == b"mine"


def test_a_version_that_was_declined_is_not_proposed_again_but_the_next_one_is(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    proposed.person("maintainer").closes(1)
    for _ in range(2):
        ended = run()
        assert (ended.status, writes(proposed)) == (0, [])
        assert "was declined in #1: not proposed again" in ended.err
    index.add("2.15.0")
    assert run().status == 0
    assert [i.title for i in open_pulls(proposed)] == ["Pin newest: torch 2.13.0 -> 2.15.0"]


def test_who_asks_for_a_declined_version_by_name_gets_it(proposed: GitHubFake, run: Run) -> None:
    proposed.person("maintainer").closes(1)
    words = ("newest", "--to", "2.14.0", "--no-surface-diff")
    assert run(*words).status == 0
    assert [issue.number for issue in open_pulls(proposed)] == [2]
    assert run(*words).status == 0
    assert len(pulls(proposed)) == 2


def test_a_pull_request_that_was_reopened_is_kept_up_to_date(
    proposed: GitHubFake, run: Run
) -> None:
    proposed.person("maintainer").closes(1)
    proposed.person("maintainer").reopens(1)
    main = proposed.person("maintainer").pushes({"README.md": "new"})
    assert run().status == 0
    assert parents(proposed) == (main,)
    assert len(pulls(proposed)) == 1


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_after_a_merge_all_is_done_until_there_is_a_newer_version(
    how: str, proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    proposed.person("maintainer").merges(1, how)
    assert (run().status, writes(proposed)) == (0, [])
    index.add("2.15.0")
    assert run().status == 0
    assert [i.title for i in open_pulls(proposed)] == ["Pin newest: torch 2.14.0 -> 2.15.0"]
    assert parents(proposed) == (tip(proposed, "main"),)


def test_a_version_that_was_taken_back_after_the_merge_is_not_proposed_again(
    proposed: GitHubFake, run: Run
) -> None:
    before = file.render(on(proposed, "main"))
    proposed.person("maintainer").merges(1)
    proposed.person("maintainer").pushes({file.place("newest"): before}, message="Revert")
    ended = run()
    assert (ended.status, writes(proposed)) == (0, [])
    assert "was merged and taken back in #1" in ended.err


def test_a_pull_request_whose_version_was_yanked_is_closed_with_the_reason(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    index.yank("2.14.0", "<img src=x> @everyone")
    assert run().status == 0
    (issue,) = pulls(proposed)
    assert issue.state == "closed"
    body = issue.body or ""
    assert "was yanked" in body
    assert "<img" not in body
    assert "@everyone" not in body


def test_a_version_that_was_yanked_by_mistake_is_proposed_anew(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    index.yank("2.14.0", "oops")
    run()
    index.behaviour.yanked.clear()
    assert run().status == 0
    assert [issue.number for issue in open_pulls(proposed)] == [2]


def test_if_only_a_declined_version_is_left_the_open_pull_request_is_closed(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    proposed.person("maintainer").closes(1)
    index.add("2.15.0")
    run()
    index.yank("2.15.0", "")
    assert run().status == 0
    assert open_pulls(proposed) == []


def test_a_pull_request_without_our_key_is_neither_closed_nor_rewritten(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    (issue,) = pulls(proposed)
    issue.body = "Mine now."
    index.yank("2.14.0", "")
    assert (run().status, writes(proposed)) == (0, [])
    index.add("2.15.0")
    assert run().status == 0
    assert (issue.title, issue.body) == ("Pin newest: torch 2.13.0 -> 2.14.0", "Mine now.")


@pytest.mark.parametrize("fork", ["mallory/puone", "octo-org/puone-copy"])
def test_a_pull_request_from_a_fork_speaks_neither_for_nor_against_a_version(
    fork: str, index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    key = pull_request.key(pin(index.add("2.14.0")))
    theirs = github_fake.world.add_repository(fork, fork_of=github_fake.repository.full_name)
    github_fake.person("mallory", theirs).pushes({"evil.py": ""}, BRANCH)
    body = f"<!-- proposal: {key} -->"
    for state in ("closed", "open"):
        issue = github_fake.world.open_pull(
            github_fake.repository, theirs, BRANCH, "mallory", "Mine", body
        )
        if state == "closed":
            github_fake.person("mallory").closes(issue.number)
    assert run().status == 0
    assert [(i.number, i.title) for i in open_pulls(github_fake)] == [
        (3, "Pin newest: torch 2.13.0 -> 2.14.0"),
        (2, "Mine"),
    ]
    assert github_fake.repository.issues[2].body == body


def test_of_two_runs_at_once_one_opens_the_pull_request(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    github_fake.before(
        "pulls/create",
        lambda: github_fake.world.open_pull(
            github_fake.repository, github_fake.repository, BRANCH, BOT, "The other's"
        ),
    )
    ended = run()
    assert ended.status == 2
    assert "A pull request already exists" in ended.err
    assert run().status == 0
    assert len(pulls(github_fake)) == 1


@pytest.mark.parametrize("lost", ["git/create-ref", "pulls/create", "git/create-commit"])
def test_an_answer_that_was_lost_is_made_up_for(
    lost: str, index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    github_fake.close_connection(lost)
    run()
    assert None in [call.status for call in github_fake.calls if call.operation == lost]
    assert run().status == 0
    assert [issue.title for issue in pulls(github_fake)] == ["Pin newest: torch 2.13.0 -> 2.14.0"]


def test_the_requirements_move_with_the_development_pin(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0"), "development", Source.PEOPLE))
    index.add("2.14.0")
    assert run("development", "--no-surface-diff").status == 0
    assert pulls(github_fake) == []
    assert run("development", "--to", "2.14.0", "--no-surface-diff").status == 0
    dev = github_fake.world.file(
        github_fake.repository, "pin/development", "requirements/torch.txt"
    )
    assert dev == b"# ours\ntorch==2.14.0\nnumpy==2.4.6\n"


def test_each_pin_has_a_pull_request_of_its_own(
    index: PinIndex, github_fake: GitHubFake, run: Run, tmp_path: Path
) -> None:
    pins = (pin(index.add("2.13.0")), pin(None, "nightly", Source.NIGHTLY))
    pushed(github_fake, *pins)
    put(tmp_path, *pins)
    index.add("2.14.0")
    index.add("2.16.0.dev20261120+cpu")
    assert run("--no-surface-diff").status == 0
    assert sorted(issue.title for issue in pulls(github_fake)) == [
        "Pin newest: torch 2.13.0 -> 2.14.0",
        "Pin nightly: torch nothing -> 2.16.0.dev20261120+cpu",
    ]


def test_a_dry_run_prints_the_diff_and_sends_nothing(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    ended = run("newest", "--dry-run", "--no-surface-diff")
    assert (ended.status, writes(github_fake)) == (0, [])
    assert "-version: 2.13.0\n+version: 2.14.0\n" in ended.out
    assert "would make the branch pin/newest: ci/pins/newest.yaml on top of " in ended.out
    assert "would open the pull request 'Pin newest: torch 2.13.0 -> 2.14.0'" in ended.out


def test_a_reader_is_told_what_changed_for_backends(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    assert run("newest").status == 0
    body = pulls(github_fake)[0].body or ""
    assert "newest: torch 2.13.0 -&#62; 2.14.0" in body
    assert "## PyTorch 2.13.0 -&gt; 2.14.0" in body


def test_two_torches_that_cannot_be_compared_do_not_hinder_the_pull_request(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    pushed(github_fake, pin(index.add("2.12.0")))
    index.add("2.14.0")
    index.remove("2.12.0")
    assert run("newest").status == 0
    body = pulls(github_fake)[0].body or ""
    assert "The surfaces could not be compared: there is no torch 2" in body


@pytest.mark.parametrize(
    "text",
    [b"name: !!python/object/apply:os.system [id]", b"\xff", b"name: oldest\n", b"[" * 60_000],
    ids=["a tag", "not UTF-8", "only a name", "deep"],
)
def test_a_hostile_pin_on_the_base_is_refused(
    text: bytes, index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    index.add("2.13.0")
    github_fake.person("mallory").pushes({file.place("newest"): text})
    ended = run()
    assert (ended.status, writes(github_fake)) == (2, [])
    assert re.search(r"\bmain:ci/pins/newest\.yaml(:\d+)?: ", ended.err)


def test_a_pin_that_the_base_does_not_have_is_told(
    index: PinIndex, github_fake: GitHubFake, run: Run
) -> None:
    ended = run()
    assert ended.status == 2
    assert "has no file ci/pins/newest.yaml on main" in ended.err


def test_an_index_that_is_down_proposes_nothing_and_closes_nothing(
    proposed: GitHubFake, index: PinIndex, run: Run
) -> None:
    index.behaviour.listing = (500, b"")
    ended = run()
    assert (ended.status, writes(proposed)) == (2, [])
    assert "offers no torch at all" in ended.err


@pytest.mark.parametrize(
    ("permissions", "needed"),
    [
        ({"contents": "read", "pull_requests": "write"}, "contents=write"),
        ({"contents": "write", "pull_requests": "read"}, "pull_requests=write"),
    ],
)
def test_a_token_that_may_not_says_what_it_lacks(
    permissions: dict[str, str],
    needed: str,
    index: PinIndex,
    github_fake: GitHubFake,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    token = github_fake.new_token(permissions)
    monkeypatch.setenv("GITHUB_TOKEN", token)
    ended = run()
    assert ended.status == 2
    assert needed in ended.err
    assert token not in ended.err + ended.out


@pytest.fixture
def survives(
    github_fake: GitHubFake,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    converges: Callable[..., None],
) -> Callable[[], None]:
    """Kills and repeats `pin open-pr`, and lets two of it meet.

    The index is asked only once: this is about GitHub.
    """

    def survives() -> None:
        monkeypatch.setattr(update, "decided", functools.cache(update.decided))
        assert run("newest", "--dry-run", "--no-surface-diff").status == 0
        github_fake.calls.clear()
        before = github_fake.checkpoint()
        converges(lambda: _must(run()))
        github_fake.restore(before)
        bears_company(github_fake, run)

    return survives


@pytest.mark.nightly
def test_one_who_was_killed_anywhere_is_caught_up_with(
    index: PinIndex, github_fake: GitHubFake, survives: Callable[[], None]
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    survives()


@pytest.mark.usefixtures("waits")
def test_any_failure_at_any_call_is_made_good_by_another_run(
    index: PinIndex, github_fake: GitHubFake, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(github_fake, pin(index.add("2.13.0")))
    index.add("2.14.0")
    monkeypatch.setattr(update, "decided", functools.cache(update.decided))
    withstands(github_fake, run)


@pytest.mark.nightly
def test_one_who_was_killed_while_updating_is_caught_up_with(
    proposed: GitHubFake, index: PinIndex, survives: Callable[[], None]
) -> None:
    proposed.person("maintainer").pushes({"README.md": "new"})
    index.add("2.15.0")
    survives()


def test_one_who_was_killed_while_withdrawing_is_caught_up_with(
    proposed: GitHubFake, index: PinIndex, survives: Callable[[], None]
) -> None:
    index.yank("2.14.0", "")
    survives()


def _must(ended: Ended) -> None:
    assert ended.status == 0, ended.err


# Upstream's commits


@pytest.mark.parametrize("status", [404, 422])
def test_a_commit_that_upstream_has_no_more_is_told(
    status: int, index: PinIndex, github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    github_fake.world.add_repository("pytorch/pytorch")
    put(tmp_path, pin(index.add("2.13.0")))
    if status == 404:
        github_fake.fail_next("repos/get-commit", 404)
    ended = verb("pin", "check", "--root", tmp_path)
    assert ended.status == 1
    assert ended.out.startswith("newest: orphaned: upstream has no commit 0123456789abcdef")


def test_an_outage_of_github_says_nothing_about_a_commit(
    index: PinIndex, github_fake: GitHubFake, verb: Verb, tmp_path: Path, waits: list[float]
) -> None:
    github_fake.world.add_repository("pytorch/pytorch")
    put(tmp_path, pin(index.add("2.13.0")))
    github_fake.fail_next("repos/get-commit", 502, times=100)
    ended = verb("pin", "check", "--root", tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert "GitHub answered 502" in ended.err


def test_a_commit_that_upstream_has_is_found(github_fake: GitHubFake) -> None:
    upstream = github_fake.world.add_repository("pytorch/pytorch")
    repository = access.repository(argparse.Namespace(repo="pytorch/pytorch"))
    assert commit.exists(repository, upstream.refs["refs/heads/main"])
