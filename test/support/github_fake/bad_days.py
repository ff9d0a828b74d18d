# SPDX-License-Identifier: BSD-3-Clause
"""A program that meets any failure at any of its calls, and is run again, comes to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from github_fake.server import GitHubFake
from torch_backend_ci.errors import CiError

FOR_GOOD = 10**6

Strike = Callable[[GitHubFake, int], None]


def _answers_are_lost(fake: GitHubFake, after: int) -> None:
    fake.close_connection(times=6, after=after)  # as often as it is tried


def _answers_are_cut_off(fake: GitHubFake, after: int) -> None:
    fake.close_connection(body_bytes=20, times=FOR_GOOD, after=after)


def _github_is_down(fake: GitHubFake, after: int) -> None:
    fake.fail_next(status=503, times=FOR_GOOD, after=after)


def _a_proxy_wants_a_password(fake: GitHubFake, after: int) -> None:
    page = b"<html>Who are you?</html>"
    fake.fail_next(status=200, body=page, times=FOR_GOOD, after=after)


def _the_token_expires(fake: GitHubFake, after: int) -> None:
    fake.fail_next(status=401, body={"message": "Bad credentials"}, times=FOR_GOOD, after=after)


STRIKES: tuple[Strike, ...] = (
    _answers_are_lost,
    _answers_are_cut_off,
    _github_is_down,
    _a_proxy_wants_a_password,
    _the_token_expires,
)


def withstands(fake: GitHubFake, run: Callable[[], object], strikes: int = len(STRIKES)) -> None:
    """Strikes at each call of `run` in turn; it may end in a CiError and in nothing else.

    Then all is well again, and another `run` has to come where an undisturbed one does. Each call
    meets so many of the strikes; what makes many calls is struck in another way at each.
    """
    start = fake.checkpoint()
    run()
    calls, expected = list(fake.calls), fake.state()
    assert any(call.writes for call in calls), "the run changes nothing: there is nothing to test"
    for number, call in enumerate(calls):
        for strike in (STRIKES * 2)[number % len(STRIKES) :][:strikes]:
            fake.restore(start)
            strike(fake, number)
            with contextlib.suppress(CiError):
                run()
            fake.faults.waiting.clear()
            run()
            when = f"{strike.__name__.strip('_')} from call {number + 1} ({call.operation}) on"
            assert fake.state() == expected, f"{when}: another run comes to another end"
