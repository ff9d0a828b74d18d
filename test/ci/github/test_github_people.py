# SPDX-License-Identifier: BSD-3-Clause
"""People who do anything at any moment of a run: it ends, harms nobody, and the next ones agree."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake
from github_fake.world import Issue, Refusal
from github_fixtures import Verb, writes
from reporting import FAILS, a_finding, judged

HEADER = "c10/core/Allocator.h"
OURS, OTHER = 1, 2  # pull requests
LISTING = "issues/list-labels-for-repo"
LABELS = ("surface: allocator", "impact: compile-break", "impact: none", "bug")
Act = Callable[[GitHubFake, random.Random], object]


def _on_comment(act: Callable[[Issue, int], object]) -> Act:
    def on_some(fake: GitHubFake, chance: random.Random) -> None:
        issue = fake.repository.issue(OURS)
        if issue.comments:
            act(issue, chance.randrange(len(issue.comments)))

    return on_some


def _label_is_renamed(fake: GitHubFake, chance: random.Random) -> None:
    for label in fake.repository.labels[:1]:
        old, label.name = label.name, label.name.swapcase()
        for issue in fake.repository.issues.values():
            issue.labels = [label.name if name == old else name for name in issue.labels]


def _label_is_deleted(fake: GitHubFake, chance: random.Random) -> None:
    for label in fake.repository.labels[:1]:
        fake.repository.labels.remove(label)
        for issue in fake.repository.issues.values():
            issue.labels = [name for name in issue.labels if name != label.name]


ACTS: list[Act] = [
    lambda fake, chance: fake.person("alice").adds_label(OURS, chance.choice(LABELS)),
    lambda fake, chance: fake.person("alice").removes_label(OURS, chance.choice(LABELS)),
    lambda fake, _: fake.person("alice").comments(OURS, "<!-- puone-ci: gate -->\nmine"),
    _on_comment(lambda issue, which: issue.comments.pop(which)),
    _on_comment(lambda issue, which: setattr(issue.comments[which], "body", "edited")),
    lambda fake, _: fake.person("alice").closes(OURS),
    lambda fake, _: fake.person("alice").reopens(OURS),
    lambda fake, _: fake.person("alice").locks(OURS),
    lambda fake, _: fake.person("contributor").pushes_to_pull(OURS, {"b.h": "1\n"}),
    lambda fake, _: fake.person("contributor").pushes_to_pull(OURS, {HEADER: "2\n"}, force=True),
    lambda fake, _: fake.person("alice").merges(OURS),
    lambda fake, _: fake.person("contributor").deletes_fork(OURS),
    lambda fake, _: fake.person("alice").pushes({"other.h": "1\n"}),
    _label_is_renamed,
    _label_is_deleted,
]


def let_people_act(fake: GitHubFake, chance: random.Random) -> None:
    """Now and then, from now on; what GitHub does not let them do they do not do."""

    def act() -> None:
        try:
            chance.choice(ACTS)(fake, chance)
        except (Refusal, AssertionError, KeyError):  # merged twice, the fork is gone
            pass
        fake.meanwhile(chance.randint(1, 4), act)

    fake.meanwhile(chance.randint(1, 6), act)


@pytest.fixture
def words(github_fake: GitHubFake, tmp_path: Path) -> dict[str, list[object]]:
    """Verbs about one pull request, beside which there is another one."""
    (tmp_path / "body.md").write_text("said")
    pull, run = judged(github_fake, FAILS, found=(a_finding(),))
    assert pull.number == OURS
    github_fake.open_pull({HEADER: "3\n"}, branch="other", author="carol")
    comment = ["comment", "--pr", OURS, "--marker=gate", "--body", tmp_path / "body.md"]
    label: list[object] = ["label", "apply", "--pr", OURS]
    return {"label": label, "comment": comment, "report": ["report", "--run-id", run.id]}


def say_last_words(fake: GitHubFake) -> None:
    """Nothing hinders a verb any more but what people want."""
    issue, alice = fake.repository.issue(OURS), fake.person("alice")
    issue.locked = False
    if issue.pull and not issue.pull.merged_at:
        alice.reopens(OURS)
    alice.comments(OURS, "<!-- puone-ci: gate -->\nmine")
    for name in issue.labels[:1]:
        alice.removes_label(OURS, name)


def of_people(fake: GitHubFake) -> list[str]:
    """What they said."""
    return [c.body for c in fake.repository.issue(OURS).comments if c.author != BOT]


def taken_away(fake: GitHubFake) -> set[str]:
    """The labels that people do not want, by what was last done with each."""
    last = {e.label.lower(): e for e in fake.repository.issue(OURS).events if e.label}
    return {name for name, e in last.items() if (e.kind, e.actor) == ("unlabeled", "alice")}


@pytest.mark.parametrize("name", ["label", "comment", "report"])
@pytest.mark.parametrize("seed", range(10))
def test_whatever_people_do_meanwhile(
    github_fake: GitHubFake, verb: Verb, words: dict[str, list[object]], name: str, seed: int
) -> None:
    other = copy.deepcopy(github_fake.repository.issue(OTHER))
    let_people_act(github_fake, random.Random(seed))
    for _ in range(2):
        assert verb(*words[name]).status in (0, 2)
    github_fake.meanwhile(0, print)  # they go home
    say_last_words(github_fake)
    said, unwanted = of_people(github_fake), taken_away(github_fake)
    ended = verb(*words[name])
    assert of_people(github_fake) == said
    assert unwanted.isdisjoint(x.lower() for x in github_fake.repository.issue(OURS).labels)
    assert github_fake.repository.issue(OTHER) == other
    settled = github_fake.state()
    github_fake.calls.clear()
    assert verb(*words[name]).status == ended.status
    assert writes(github_fake) == []
    assert github_fake.state() == settled


def test_a_list_that_moves_while_it_is_read_hides_nothing_for_good(
    github_fake: GitHubFake, verb: Verb, words: dict[str, list[object]]
) -> None:
    """What stood first on the second page is on the first one when the second is asked for."""
    first = [github_fake.world.define_label(github_fake.repository, f"a{n}") for n in range(100)]
    hidden = "Surface: allocator"
    github_fake.world.define_label(github_fake.repository, hidden, "aabbcc", "by hand")

    def when_asked_for_the_second_page() -> None:
        if [call.operation for call in github_fake.calls].count(LISTING):
            github_fake.repository.labels.remove(first[0])
        else:
            github_fake.before(LISTING, when_asked_for_the_second_page)

    github_fake.before(LISTING, when_asked_for_the_second_page)
    assert verb(*words["label"]).status == 0
    (given,) = github_fake.repository.issue(OURS).labels
    assert given.lower() == hidden.lower()
    names = [label.name.lower() for label in github_fake.repository.labels]
    assert len(names) == len(set(names)) == 100
