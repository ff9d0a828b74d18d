# SPDX-License-Identifier: BSD-3-Clause
"""The way to GitHub: what is refused before a request is made, and what a refusal is called."""

from __future__ import annotations

import argparse

import github
import pytest
import requests
from requests.exceptions import JSONDecodeError, RetryError

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access

TOKEN = "ghs_ThisIsASecret"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", "https://api.github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/repo")


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    access.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "name", ["repo", "a/b/c", "../x", "a/..", "a/.", "a b/c", "a/b?x=1", "a/b\n", "-a/b", "a/"]
)
def test_what_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(CiError, match="OWNER/NAME"):
        access.repository(arguments(f"--repo={name}"))


def test_without_a_repository_the_cure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY")
    with pytest.raises(CiError, match="GITHUB_REPOSITORY"):
        access.repository(arguments())


@pytest.mark.parametrize("token", [f"{TOKEN}\n", f" {TOKEN}", f"{TOKEN}é", f"{TOKEN}\r\nX: y"])
def test_a_token_that_no_header_takes_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    with pytest.raises(CiError, match="odd characters") as refused:
        access.repository(arguments())
    assert TOKEN not in str(refused.value)


def test_a_missing_token_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    with pytest.raises(CiError, match="set GITHUB_TOKEN"):
        access.repository(arguments())


@pytest.mark.parametrize(
    "url", ["http://api.github.com", "ftp://x", "api.github.com", "http://127.0.0.1.evil.example"]
)
def test_the_token_goes_over_no_open_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("GITHUB_API_URL", url)
    with pytest.raises(CiError, match="https"):
        access.repository(arguments())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (github.BadCredentialsException(401, {"message": "Bad credentials"}), "has expired"),
        (
            github.GithubException(
                403,
                {"message": "Resource not accessible by integration"},
                {"X-Accepted-GitHub-Permissions": "checks=write"},
            ),
            "permission checks=write",
        ),
        (github.GithubException(403, {"message": "no"}, {}), "permissions:"),
        (github.UnknownObjectException(404, {"message": "Not Found"}), "must not see it"),
        (
            github.GithubException(422, {"message": "Validation Failed", "errors": [{"a": "b"}]}),
            r"Validation Failed \{\"a\": \"b\"\}",
        ),
        (
            github.RateLimitExceededException(
                403, {"message": "API rate limit exceeded"}, {"X-RateLimit-Reset": "1750000000"}
            ),
            "until 2025-06-15 15:06:40 UTC",
        ),
        (github.GithubException(429, "x" * 9999, None), "rate limit .* is used up; run"),
        (github.GithubException(403, b"\xff", {"x-ratelimit-reset": "9" * 99}), "GitHub says 403"),
        (github.GithubException(500, {"message": "m" * 9999}), r"m\.\.\.$"),
        (requests.ConnectionError("refused"), "no answer from api.github.com: ConnectionError"),
        (RetryError("too many 502 error responses"), "502 6 times .an outage"),
        (
            RetryError("too many 403 error responses"),
            "403 6 times .a rate limit",
        ),
        (requests.ReadTimeout("slow"), "ReadTimeout"),
        (JSONDecodeError("x", "{", 0), "no answer|not JSON"),
    ],
)
def test_a_refusal_says_what_to_do(error: Exception, says: str) -> None:
    with pytest.raises(CiError, match=f"^cannot label #5: .*{says}"), access.failures("label #5"):
        raise error


def test_a_token_in_an_answer_is_taken_out() -> None:
    error = github.GithubException(422, {"message": f"what is {TOKEN}?"})
    with pytest.raises(CiError) as refused, access.failures(f"send {TOKEN}"):
        raise error
    assert TOKEN not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__
