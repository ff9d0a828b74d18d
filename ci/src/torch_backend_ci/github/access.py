# SPDX-License-Identifier: BSD-3-Clause
"""The way to a repository on GitHub, and what its refusals mean.

The token comes from the environment, never from an argument (everybody on the machine sees those),
and never leaves in a message. Waiting and trying again is PyGithub's business; here is only how
long it may.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

import github
import requests
from github.Repository import Repository as Repository  # for annotations elsewhere

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import answers

ACTOR = "github-actions[bot]"  # who writes with the token of a workflow

_HERE = "torch_backend_ci"
_API = "https://api.github.com"
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}\Z)[A-Za-z0-9._-]+")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

# How PyGithub refuses an answer: it leads to another host, or is of another type.
_NOT_BELIEVED = (AssertionError, RuntimeError, github.BadAttributeException)

_TIMEOUT = 30  # seconds for one answer
_TRIES_MORE = 5
_BACKOFF = 1.0  # seconds, doubled with each try
_LONGEST_WAIT = 300  # seconds for a rate limit; a job that sleeps longer costs more than one redone
_BETWEEN_WRITES = 1.0  # seconds, as GitHub asks; not on this machine
_SAID = 500  # characters of what GitHub answered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every verb that talks to GitHub takes."""
    parser.add_argument(
        "--repo",
        metavar="OWNER/NAME",
        help="the repository on GitHub; default: $GITHUB_REPOSITORY. The token is $GITHUB_TOKEN, "
        "the API $GITHUB_API_URL",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be sent, and send nothing"
    )


def add_author_argument(parser: argparse.ArgumentParser) -> None:
    """For verbs that must tell what they wrote themselves from what others wrote."""
    parser.add_argument(
        "--author",
        default=ACTOR,
        metavar="LOGIN",
        help="account of the token, if it is not that of a workflow; default: %(default)s",
    )


def repository(args: argparse.Namespace) -> Repository:
    """The repository of the arguments of `add_arguments`."""
    name = args.repo or os.environ.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(name):
        raise CiError(f"--repo must be OWNER/NAME (or set GITHUB_REPOSITORY), not {name!r}")
    return opened(name)


def opened(name: str) -> Repository:
    """The repository OWNER/NAME."""
    if not _REPOSITORY.fullmatch(name):
        raise CiError(f"{name!r} is not the name of a repository: OWNER/NAME")
    api = api_url()
    client = github.Github(
        auth=github.Auth.Token(_token()),
        base_url=api,
        timeout=_TIMEOUT,
        user_agent="puone-ci",
        per_page=100,
        retry=_retry(),
        seconds_between_requests=0,
        seconds_between_writes=0 if _is_loopback(api) else _BETWEEN_WRITES,
    )
    answers.guard(client)
    with failures(f"open {name}"):
        return client.get_repo(name)


def api_url() -> str:
    """The root of the API, without a slash at its end; a token is not sent over plain http."""
    url = os.environ.get("GITHUB_API_URL") or _API
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(url)):
        raise CiError(f"GITHUB_API_URL must be an https address, not {url!r}")
    return url.rstrip("/")


def is_repository_name(name: str) -> bool:
    """Whether the text is OWNER/NAME."""
    return _REPOSITORY.fullmatch(name) is not None


@contextmanager
def failures(what: str = "talk to GitHub") -> Iterator[None]:
    """What GitHub or the network refuses inside becomes a CiError: "cannot <what>: ..., <cure>"."""
    try:
        yield
    except github.GithubException as error:
        raise _failure(what, _refusal(error)) from None
    except requests.RequestException as error:
        raise _failure(what, _no_answer(error)) from None
    except json.JSONDecodeError:
        raise _failure(what, "GitHub's answer is not JSON; was it cut off? Try again") from None
    except _NOT_BELIEVED as error:
        raise _failure(what, f"GitHub's answer cannot be believed: {error}"[:_SAID]) from None
    except Exception as error:
        if not _in_pygithub(error):
            raise
        why = f"GitHub's answer cannot be believed: {type(error).__name__}: {error}"
        raise _failure(what, why[:_SAID]) from None


def _in_pygithub(error: Exception) -> bool:
    """Whether PyGithub stumbled over an answer, and not this program over itself."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    packages = [frame.f_globals.get("__name__", "").partition(".")[0] for frame in frames]
    return next((p for p in reversed(packages) if p in (_HERE, "github")), _HERE) == "github"


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in _LOOPBACK


def _token() -> str:
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise CiError("set GITHUB_TOKEN: in a workflow `env: GITHUB_TOKEN: ${{ github.token }}`")
    if not re.fullmatch(r"[!-~]+", token):  # http libraries quote a header that they refuse
        raise CiError("GITHUB_TOKEN has blanks or odd characters; was it pasted with a line end?")
    return token


def _retry() -> github.GithubRetry:
    return github.GithubRetry(
        total=_TRIES_MORE,
        backoff_factor=_BACKOFF,
        retry_after_max=_LONGEST_WAIT,
        max_rate_limit_wait=_LONGEST_WAIT,
        status_forcelist=[429, *range(500, 600)],  # and 403, if it is for a rate limit
        # What we PATCH and POST can be sent twice: what is written is found again, and merged.
        allowed_methods={"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"},
    )


def _failure(what: str, why: str) -> CiError:
    """The token is taken out wherever it may have come from."""
    token = os.environ.get("GITHUB_TOKEN")
    text = f"cannot {what}: {why}"
    return CiError(text.replace(token, "***") if token else text)


def _refusal(error: github.GithubException) -> str:
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status == 429 or isinstance(error, github.RateLimitExceededException):
        return f"the rate limit of this token is used up{_until(headers)}; run it again then"
    return f"GitHub says {error.status} {_message(error.data)}{_cure(error.status, headers)}"


def _cure(status: int, headers: Mapping[str, str]) -> str:
    if status == 401:
        return "; the token is wrong or has expired: take a new one"
    if status == 403:
        wanted = headers.get("x-accepted-github-permissions")
        return f"; the token needs the permission {wanted or 'for it (`permissions:` of the job)'}"
    if status == 404:
        return "; it does not exist, or this token must not see it"
    return ""


def _until(headers: Mapping[str, str]) -> str:
    reset = headers.get("x-ratelimit-reset", "")
    if not re.fullmatch(r"\d{1,11}", reset):
        return ""
    return f" until {datetime.fromtimestamp(int(reset), timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _message(data: Any) -> str:
    """What GitHub says of its refusal, with the fields it minds."""
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    minded = [json.dumps(e) for e in errors] if isinstance(errors, list) else []
    text = " ".join([str(data.get("message", "")), *minded])
    return text if len(text) <= _SAID else text[:_SAID] + "..."


def _no_answer(error: requests.RequestException) -> str:
    text = str(error)
    if many := re.search(r"too many (\d{3}) error responses", text):
        limited = many[1] in {"403", "429"}
        why = "a rate limit" if limited else "an outage, see https://www.githubstatus.com"
        return f"GitHub answered {many[1]} {_TRIES_MORE + 1} times ({why}); run it again later"
    return (
        f"no answer from {urlsplit(api_url()).hostname}: {type(error).__name__}; is it reachable?"
    )
