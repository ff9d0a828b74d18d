# SPDX-License-Identifier: BSD-3-Clause
"""Two programs at once come to the same end as one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from github_fake.server import GitHubFake


def bears_company(
    fake: GitHubFake, run: Callable[[], object], other: Callable[[], object] | None = None
) -> None:
    """The whole of `other` (by default `run` too) happens just before each call of `run` in turn.

    Then `run` goes on with what it knew before. After one more `run`, which puts right what a race
    may leave, all must be as after `other` and `run` one after the other.
    """
    other = other or run
    start = fake.checkpoint()
    run()
    calls = list(fake.calls)
    fake.restore(start)
    other()
    run()
    expected = fake.state()
    assert any(call.writes for call in calls), "the run changes nothing: there is nothing to test"
    for number, call in enumerate(calls, 1):
        fake.restore(start)
        problems: list[BaseException] = []
        fake.meanwhile(number, partial(_noting, other, problems))
        run()
        run()
        when = f"another run before call {number} ({call.operation})"
        assert not problems, f"{when} fails: {problems}"
        assert fake.state() == expected, f"{when} leads elsewhere"


def _noting(action: Callable[[], object], problems: list[BaseException]) -> None:
    """What happens in the server's thread would be lost."""
    try:
        action()
    except BaseException as problem:
        problems.append(problem)
