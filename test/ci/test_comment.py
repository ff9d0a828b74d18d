# SPDX-License-Identifier: BSD-3-Clause
"""`comment`: one comment per marker, ours and nobody else's, kept up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake
from github_fixtures import Ended, Verb, writes

HEAD = "<!-- puone-ci: gate -->"


class Said:
    """A PR, and what is said on it."""

    def __init__(self, fake: GitHubFake, verb: Verb, folder: Path) -> None:
        self.fake, self._verb, self._folder = fake, verb, folder
        self.number = fake.open_pull({"a.h": "1\n"}).number

    def say(self, text: str, *more: str, marker: str = "gate") -> Ended:
        body = self._folder / "body.md"
        body.write_text(text, newline="")
        words = ("--pr", self.number, "--marker", marker, "--body", body, *more)
        return self._verb("comment", *words)

    @property
    def comments(self) -> list[tuple[str, str]]:
        return [(c.author, c.body) for c in self.fake.repository.issue(self.number).comments]


@pytest.fixture
def pull(github_fake: GitHubFake, verb: Verb, tmp_path: Path) -> Said:
    return Said(github_fake, verb, tmp_path)


def test_a_comment_is_made_once_and_edited_in_place(pull: Said) -> None:
    assert pull.say("first").status == 0
    assert pull.comments == [(BOT, f"{HEAD}\nfirst")]
    assert pull.say("second").status == 0
    assert pull.comments == [(BOT, f"{HEAD}\nsecond")]
    pull.fake.calls.clear()
    assert pull.say("second\r\n").status == 0
    assert writes(pull.fake) == []


def test_each_marker_has_a_comment(pull: Said) -> None:
    pull.say("a")
    pull.say("b", marker="labels")
    pull.say("c", marker="gate2")
    assert [body.split("\n")[1] for _, body in pull.comments] == ["a", "b", "c"]


def test_a_marker_that_somebody_copied_is_not_ours(pull: Said) -> None:
    pull.fake.person("mallory").comments(pull.number, f"{HEAD}\nall is well")
    pull.fake.person("mallory").comments(pull.number, f"look: {HEAD}")
    pull.say("it is not")
    pull.say("it is not at all")
    assert pull.comments[2:] == [(BOT, f"{HEAD}\nit is not at all")]
    assert [author for author, _ in pull.comments[:2]] == ["mallory", "mallory"]


def test_a_marker_inside_a_body_of_ours_is_text(pull: Said) -> None:
    pull.say(f"```\n{HEAD}\n```", marker="labels")
    pull.say("gate")
    assert len(pull.comments) == 2


def test_a_comment_on_the_third_page_is_found(pull: Said) -> None:
    for index in range(120):
        pull.fake.person("alice").comments(pull.number, f"remark {index}")
    pull.say("old")
    for index in range(120):
        pull.fake.person("alice").comments(pull.number, f"remark {index}")
    pull.say("new")
    assert [body for author, body in pull.comments if author == BOT] == [f"{HEAD}\nnew"]


def test_a_person_who_deletes_the_comment_gets_a_new_one(pull: Said) -> None:
    pull.say("first")
    (comment,) = pull.fake.repository.issue(pull.number).comments
    pull.fake.person("alice").deletes_comment(pull.number, comment.id)
    pull.say("second")
    assert pull.comments == [(BOT, f"{HEAD}\nsecond")]


def other_run(pull: Said, text: str) -> None:
    issue = pull.fake.repository.issue(pull.number)
    pull.fake.world.comment(issue, BOT, f"{HEAD}\n{text}")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_two_runs_at_once_end_with_one_comment(pull: Said, moment: str) -> None:
    act = pull.fake.before if moment == "before" else pull.fake.after
    act("issues/create-comment", lambda: other_run(pull, "theirs"))
    assert pull.say("ours").status == 0
    assert pull.comments == [(BOT, f"{HEAD}\nours")]


def test_a_second_comment_that_is_gone_already_is_no_error(pull: Said) -> None:
    other_run(pull, "one")
    other_run(pull, "two")
    second = pull.fake.repository.issue(pull.number).comments[1]
    alice = pull.fake.person("alice")
    pull.fake.before("issues/delete-comment", lambda: alice.deletes_comment(pull.number, second.id))
    assert pull.say("one").status == 0
    assert pull.comments == [(BOT, f"{HEAD}\none")]


def test_an_answer_that_is_lost_does_not_make_a_second_comment(
    pull: Said, waits: list[float]
) -> None:
    pull.fake.fail_next("issues/create-comment", 502, applied=True)
    assert pull.say("once").status == 0
    assert pull.comments == [(BOT, f"{HEAD}\nonce")]


def test_a_body_that_is_too_long_is_cut_and_says_so(pull: Said) -> None:
    pull.say("```\n" + "𝄞 line\n" * 20_000 + "```\nend")
    ((_, body),) = pull.comments
    assert len(body.encode()) <= 65_536
    assert body.endswith("more lines") and body.count("```") == 2


def test_on_a_locked_pr_nothing_is_said(pull: Said) -> None:
    pull.fake.person("alice").locks(pull.number)
    ended = pull.say("x")
    assert (ended.status, pull.comments, writes(pull.fake)) == (0, [], [])
    assert "is locked" in ended.err


def test_a_closed_pr_hears_how_it_ended(pull: Said) -> None:
    pull.fake.person("alice").closes(pull.number)
    assert pull.say("x").status == 0
    assert len(pull.comments) == 1


def test_a_token_of_somebody_else_needs_its_name(
    pull: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", pull.fake.new_token(actor="release-bot"))
    ended = pull.say("x")
    assert ended.status == 2 and "--author=release-bot" in ended.err
    assert pull.say("y", "--author=release-bot").status == 0
    assert pull.comments == [("release-bot", f"{HEAD}\ny")]


def test_a_dry_run_says_nothing_on_github(pull: Said) -> None:
    assert pull.say("x", "--dry-run").out == f"would comment on #{pull.number} (gate)\n"
    assert pull.comments == []


@pytest.mark.parametrize("marker", ["", "a b", "-->", "a\nb", "é", "x" * 65, "../x", "--x"])
def test_a_marker_that_could_end_its_comment_is_refused(pull: Said, marker: str) -> None:
    body = Path(__file__)
    ended = pull._verb("comment", "--pr", pull.number, f"--marker={marker}", "--body", body)
    assert ended.status == 2 and "a marker is made of" in ended.err
    assert pull.comments == []


@pytest.mark.parametrize("body", [b"", b" \n\t", b"\xff\xfe", b"x" * ((4 << 20) + 1)])
def test_a_body_that_is_none_is_refused(pull: Said, tmp_path: Path, body: bytes) -> None:
    (tmp_path / "bad.md").write_bytes(body)
    ended = pull._verb(
        "comment", "--pr", pull.number, "--marker=gate", "--body", tmp_path / "bad.md"
    )
    assert ended.status == 2 and pull.comments == []


def test_a_body_that_is_not_there_is_said(pull: Said, tmp_path: Path) -> None:
    ended = pull._verb("comment", "--pr", pull.number, "--marker=gate", "--body", tmp_path / "no")
    assert ended.status == 2 and "No such file" in ended.err
