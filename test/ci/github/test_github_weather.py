# SPDX-License-Identifier: BSD-3-Clause
"""GitHub on a bad day: what passes is waited for, what does not is said, and no token is shown."""

from __future__ import annotations

import time

import pytest
from github_fake import GitHubFake, Reply
from github_fixtures import Ended, Verb, writes

ALLOCATOR = "surface: allocator"
HEADER = {"c10/core/Allocator.h": "struct Allocator;\n"}
OPERATIONS = [
    "repos/get",
    "pulls/get",
    "pulls/list-files",
    "issues/get",
    "issues/list-events-for-timeline",
    "issues/list-labels-for-repo",
    "issues/create-label",
    "issues/add-labels",
]


class Pull:
    """A PR to be labelled."""

    def __init__(self, fake: GitHubFake, verb: Verb) -> None:
        self.fake, self._verb = fake, verb
        self.number = fake.open_pull(HEADER).number

    def label(self) -> Ended:
        ended = self._verb("label", "apply", "--pr", self.number)
        assert not any(token in ended.out + ended.err for token in self.fake.tokens)
        return ended

    @property
    def labels(self) -> list[str]:
        return self.fake.repository.issue(self.number).labels


@pytest.fixture
def pull(github_fake: GitHubFake, verb: Verb, waits: list[float]) -> Pull:
    return Pull(github_fake, verb)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("applied", [False, True])
def test_an_outage_of_a_moment_is_waited_for(
    pull: Pull, waits: list[float], operation: str, applied: bool
) -> None:
    pull.fake.fail_next(operation, 502, times=3, applied=applied)
    assert pull.label().status == 0
    assert pull.labels == [ALLOCATOR]
    assert sum(waits) == 6, "2 and 4 seconds; the first try is at once"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_connection_that_breaks_is_tried_again(pull: Pull, operation: str) -> None:
    pull.fake.close_connection(operation, times=2)
    assert pull.label().status == 0
    assert pull.labels == [ALLOCATOR]


@pytest.mark.parametrize("status", [403, 429])
def test_a_rate_limit_is_waited_for_as_long_as_it_says(
    pull: Pull, waits: list[float], status: int
) -> None:
    pull.fake.limit_secondary("issues/add-labels", retry_after=17, status=status)
    assert pull.label().status == 0
    assert waits == [17] and pull.labels == [ALLOCATOR]


def test_a_limit_that_does_not_say_how_long_takes_a_minute(pull: Pull, waits: list[float]) -> None:
    pull.fake.limit_secondary("issues/add-labels", retry_after=None)
    assert pull.label().status == 0
    assert waits == [60]


def test_the_hourly_limit_is_waited_for_if_it_ends_soon(pull: Pull, waits: list[float]) -> None:
    pull.fake.limit_rate("pulls/list-files", reset_in=100)
    assert pull.label().status == 0
    assert len(waits) == 1 and 95 < waits[0] <= 102


def test_the_hourly_limit_ends_the_run_if_it_lasts(pull: Pull, waits: list[float]) -> None:
    pull.fake.limit_rate("pulls/list-files", reset_in=3000)
    ended = pull.label()
    until = time.strftime("%Y-%m-%d %H:", time.gmtime(time.time() + 3000))
    assert ended.status == 2 and f"used up until {until}" in ended.err
    assert waits == [] and writes(pull.fake) == []


def test_nobody_waits_for_hours_because_a_header_says_so(pull: Pull, waits: list[float]) -> None:
    pull.fake.limit_secondary("issues/add-labels", retry_after=10**9)
    assert pull.label().status == 0
    assert waits == [300]


@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_without_end_ends_the_run(pull: Pull, status: int) -> None:
    pull.fake.limit_secondary("issues/add-labels", status=status, times=99)
    ended = pull.label()
    assert ended.status == 2 and "a rate limit); run it again later" in ended.err


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_outage_without_end_ends_the_run(pull: Pull, status: int) -> None:
    pull.fake.fail_next("pulls/get", status, times=99)
    ended = pull.label()
    assert ended.status == 2 and f"answered {status} 6 times (an outage" in ended.err


def test_an_expired_token_is_said_and_nothing_is_done(
    pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", pull.fake.new_token(expired=True))
    ended = pull.label()
    assert ended.status == 2 and "wrong or has expired" in ended.err
    assert len(pull.fake.calls) == 1


def test_a_token_that_expires_during_the_run_is_said(pull: Pull) -> None:
    def expire() -> None:
        pull.fake.tokens[pull.fake.token].expired = True

    pull.fake.after("issues/create-label", expire)
    ended = pull.label()
    assert ended.status == 2 and f'cannot label #{pull.number} with "{ALLOCATOR}"' in ended.err
    assert "has expired" in ended.err


def test_a_token_of_a_fork_may_only_read(pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = {"issues": "read", "pull_requests": "read", "contents": "read"}
    monkeypatch.setenv("GITHUB_TOKEN", pull.fake.new_token(rights))
    ended = pull.label()
    assert ended.status == 2 and "Resource not accessible by integration" in ended.err
    assert "needs the permission issues=write" in ended.err and pull.labels == []


def test_a_token_of_another_repository_changes_nothing_here(
    pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", pull.fake.new_token(repository="evil/fork"))
    assert pull.label().status == 2
    assert pull.labels == []


def test_an_answer_that_shows_the_token_is_not_repeated(pull: Pull) -> None:
    body = {"message": f"bad header: token {pull.fake.token}"}
    pull.fake.fail_next("issues/add-labels", 400, body=body)
    ended = pull.label()
    assert ended.status == 2 and "token ***" in ended.err


def test_an_answer_with_a_command_in_it_is_none(pull: Pull) -> None:
    body = {"message": "no\n::set-output name=x::y\r::add-mask::a ##[error]"}
    pull.fake.fail_next("issues/add-labels", 422, body=body)
    ended = pull.label()
    assert ended.status == 2 and "##[" not in ended.err
    assert not any(line.lstrip().startswith("::") for line in ended.err.splitlines())


@pytest.mark.parametrize("status", [400, 404, 409, 410, 422, 451])
def test_a_refusal_ends_the_run_at_once(pull: Pull, waits: list[float], status: int) -> None:
    pull.fake.fail_next("issues/add-labels", status)
    ended = pull.label()
    assert ended.status == 2 and f"GitHub says {status}" in ended.err
    assert waits == [] and writes(pull.fake).count("issues/add-labels") == 1


def test_an_answer_that_is_cut_off_is_said(pull: Pull) -> None:
    pull.fake.close_connection("pulls/get", body_bytes=50, times=99)
    ended = pull.label()
    assert ended.status == 2 and "cannot label" in ended.err


def test_an_answer_that_is_html_is_said(pull: Pull) -> None:
    pull.fake.fail_next("pulls/get", 418, {"content-type": "text/html"}, b"<html>teapot</html>")
    ended = pull.label()
    assert ended.status == 2 and "GitHub says 418" in ended.err


def test_a_page_that_links_to_another_host_is_not_followed(pull: Pull) -> None:
    def elsewhere(reply: Reply) -> None:
        reply.headers["link"] = '<https://evil.example/files?page=2>; rel="next"'

    pull.fake.rewrite("pulls/list-files", elsewhere)
    ended = pull.label()
    assert ended.status == 2 and "cannot be believed: evil.example" in ended.err
    assert pull.labels == []


@pytest.mark.parametrize("labels", [{"a": 1}, "all", [1], [["x"]]])
def test_an_answer_of_another_type_is_not_believed(pull: Pull, labels: object) -> None:
    pull.fake.rewrite("issues/get", lambda reply: reply.body.update(labels=labels))
    ended = pull.label()
    assert ended.status == 2 and "cannot be believed" in ended.err
    assert pull.labels == []


def test_a_repository_that_is_not_there_is_said(
    pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo-org/gone")
    ended = pull.label()
    assert ended.status == 2 and "cannot open octo-org/gone" in ended.err


def test_where_nobody_listens_the_run_ends(pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1")
    ended = pull.label()
    assert ended.status == 2 and "no answer from 127.0.0.1" in ended.err
