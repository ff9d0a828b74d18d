# SPDX-License-Identifier: BSD-3-Clause
"""The line to GitHub, and who else may be on it: each answer is taken, or refused in one line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest
from github.Repository import Repository
from github_fake import BOT, GitHubFake, Reply

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access
from torch_backend_ci.github.change import Change, perform

LABELS = "issues/list-labels-for-repo"
MANY = 250  # three pages


def opened() -> Repository:
    return access.repository(argparse.Namespace(repo=None, dry_run=False))


def read() -> list[str]:
    """The labels, as a verb reads them."""
    repository = opened()
    with access.failures("read the labels"):
        return [label.name for label in repository.get_labels()]


def write() -> None:
    """One more label, as a verb writes it."""
    repository = opened()
    change = Change("make the label new", lambda: repository.create_label("new", "aabbcc"))
    perform([change], dry_run=False)


@pytest.fixture
def fake(github_fake: GitHubFake, waits: list[float]) -> GitHubFake:
    for number in range(MANY):
        github_fake.world.define_label(github_fake.repository, f"label {number}")
    return github_fake


def refused(fake: GitHubFake, action: Any = read) -> str:
    """What is said: one line, without any token."""
    with pytest.raises(CiError) as error:
        action()
    said = str(error.value)
    assert said.startswith("cannot ") and "\n" not in said and len(said) < 1000
    assert not any(token in said for token in fake.tokens)
    return said


def linked(header: str) -> Any:
    def rewrite(reply: Reply) -> None:
        reply.headers["link"] = header

    return rewrite


# --- redirections


def test_a_repository_that_moved_is_found_by_its_old_name(fake: GitHubFake) -> None:
    fake.world.rename(fake.repository, "octo-org/renamed")
    assert opened().full_name == "octo-org/renamed"
    assert len(read()) == MANY


def test_a_redirection_to_itself_ends(fake: GitHubFake) -> None:
    here = f"{fake.url}/repos/octo-org/puone"
    fake.fail_next("repos/get", 301, {"location": here}, times=99)
    assert "redirected" in refused(fake)


def test_a_circle_of_redirections_ends(fake: GitHubFake, request: pytest.FixtureRequest) -> None:
    limit = sys.getrecursionlimit()
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    sys.setrecursionlimit(400)  # PyGithub goes round until that ends it
    fake.world.add_repository("octo-org/other")
    for name in ["other", "puone"] * 200:
        place = {"location": f"{fake.url}/repos/octo-org/{name}"}
        fake.fail_next("repos/get", 301, place)
    refused(fake)


@pytest.mark.parametrize(
    "location",
    ["{storage}/repos/octo-org/puone", "https://127.0.0.1/x", "//evil.example/x", "ftp://x/y"],
)
def test_a_redirection_elsewhere_is_not_followed(fake: GitHubFake, location: str) -> None:
    where = location.format(storage=fake.storage_url)
    fake.fail_next("repos/get", 301, {"location": where}, times=99)
    assert "redirected" in refused(fake)  # and the fake would mind the token there


@pytest.mark.parametrize("status", [300, 302, 303, 304, 307, 308])
def test_a_write_that_was_sent_elsewhere_is_not_called_done(
    fake: GitHubFake, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    place = {"location": f"{fake.url}/repositories/1/labels"}
    fake.fail_next("issues/create-label", status, place, times=99)
    refused(fake, write)
    assert "did make" not in capsys.readouterr().err


# --- pages


@pytest.mark.parametrize(
    "place",
    [
        "{storage}/repos/octo-org/puone/labels?page=2",
        "http://127.0.0.1:1@evil.example/labels",
        "http://127.0.0.1.evil.example/labels",
        "https://evil.example/labels",
    ],
)
def test_a_next_page_on_another_host_is_not_asked_for(fake: GitHubFake, place: str) -> None:
    fake.rewrite(LABELS, linked(f'<{place.format(storage=fake.storage_url)}>; rel="next"'))
    assert "cannot be believed" in refused(fake)


@pytest.mark.parametrize(
    "header", ["next", "<>", '<x>; rel="next"; y; z, ', ";;;", "<" * 9000, '<x>;rel="next"']
)
def test_links_that_are_none_are_refused(fake: GitHubFake, header: str) -> None:
    fake.rewrite(LABELS, linked(header))
    assert "cannot be believed" in refused(fake)


def test_a_list_that_never_ends_is_given_up(fake: GitHubFake) -> None:
    again = f'<{fake.url}/repos/octo-org/puone/labels?page=1>; rel="next"'
    fake.rewrite(LABELS, linked(again), times=10**9)
    assert "cannot be believed" in refused(fake)


def test_a_page_behind_the_end_is_empty(fake: GitHubFake) -> None:
    beyond = f'<{fake.url}/repos/octo-org/puone/labels?page=99>; rel="next"'
    fake.rewrite(LABELS, linked(beyond))
    assert len(read()) == 100  # what the first page had


# --- bodies


@pytest.mark.parametrize("count", [1, 2, 100, 10_000])
def test_a_list_that_breaks_off_is_no_shorter_list(fake: GitHubFake, count: int) -> None:
    fake.close_connection(LABELS, body_bytes=count, times=99, after=1)
    refused(fake)


def test_a_write_whose_answer_breaks_off_is_not_called_done(
    fake: GitHubFake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.close_connection("issues/create-label", body_bytes=9, times=99)
    refused(fake, write)
    assert "did make" not in capsys.readouterr().err
    assert fake.repository.label("new") is not None  # another run finds it


@pytest.mark.parametrize("body", [b"", b"{", b"<html>Log in to this network</html>", b"\xff\xfe"])
def test_what_is_no_json_is_refused(fake: GitHubFake, body: bytes) -> None:
    fake.fail_next(LABELS, 200, body=body, times=99)
    refused(fake)


@pytest.mark.parametrize("body", [7, "text", [7], [[]], None])
def test_what_is_no_list_of_labels_is_refused(fake: GitHubFake, body: Any) -> None:
    def instead(reply: Reply) -> None:
        reply.body = body

    fake.rewrite(LABELS, instead, times=99)
    refused(fake)


@pytest.mark.parametrize("body", [7, "text", {"url": 1}, {"url": "https://evil.example/"}])
def test_what_is_no_repository_is_refused(fake: GitHubFake, body: Any) -> None:
    def instead(reply: Reply) -> None:
        reply.body = body

    fake.rewrite("repos/get", instead, times=99)
    refused(fake)


def test_a_bottomless_answer_is_refused(fake: GitHubFake) -> None:
    fake.fail_next(LABELS, 200, body=b"[" * 200_000, times=99)
    refused(fake)


def test_a_wrong_compression_is_refused(fake: GitHubFake) -> None:
    fake.fail_next(LABELS, 200, {"content-encoding": "gzip"}, b"not gzip", times=99)
    refused(fake)


# --- lines and headers


@pytest.mark.parametrize(
    "said",
    [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"\0" * 70_000],
)
def test_what_is_no_http_is_refused(fake: GitHubFake, said: bytes) -> None:
    fake.babble(LABELS, said, times=99)
    refused(fake)


def test_a_moment_of_something_else_is_tried_again(fake: GitHubFake) -> None:
    fake.babble(LABELS, b"\0\0\0", times=2)
    assert len(read()) == MANY


def test_headers_without_end_are_refused(fake: GitHubFake) -> None:
    fake.rewrite(LABELS, lambda reply: reply.headers.update(x="y" * 70_000), times=99)
    assert "no answer" in refused(fake)


@pytest.mark.parametrize("name", ["x-ratelimit-reset", "x-ratelimit-remaining"])
@pytest.mark.parametrize("value", ["soon", "", "nan", "1e999"])
def test_a_number_that_is_none_in_a_good_answer_is_refused(
    fake: GitHubFake, name: str, value: str
) -> None:
    fake.rewrite(LABELS, lambda reply: reply.headers.update({name: value}), times=99)
    refused(fake)


@pytest.mark.parametrize("reset", ["soon", "-1", "9" * 30, ""])
def test_a_limit_until_no_time_is_refused(fake: GitHubFake, reset: str) -> None:
    fake.limit_rate(LABELS, times=99)
    fault = fake.faults.waiting[0]
    assert fault.instead
    fault.instead.headers["x-ratelimit-reset"] = reset
    refused(fake)


@pytest.mark.parametrize("wait", ["soon", "-5", "1e9", "Fri, 99 Foo 2026 00:00:00 GMT", ""])
def test_a_wait_that_is_none_is_not_waited_for(
    fake: GitHubFake, waits: list[float], wait: str
) -> None:
    fake.limit_secondary(LABELS, times=99)
    fault = fake.faults.waiting[0]
    assert fault.instead
    fault.instead.headers["retry-after"] = wait
    refused(fake)
    assert sum(waits) <= 5 * 300


def test_a_slow_answer_is_asked_for_again(
    fake: GitHubFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_TIMEOUT", 1)
    fake.slow("repos/get", seconds=1.5)
    assert opened().full_name == "octo-org/puone"


def test_an_answer_that_does_not_come_is_given_up(
    fake: GitHubFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_TIMEOUT", 1)
    monkeypatch.setattr(access, "_TRIES_MORE", 0)
    fake.slow("repos/get", seconds=1.5, times=99)
    assert "no answer from 127.0.0.1" in refused(fake)


def test_a_netrc_does_not_replace_the_token(
    fake: GitHubFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login us password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert len(read()) == MANY
    assert {call.actor for call in fake.calls} == {BOT}
