# SPDX-License-Identifier: BSD-3-Clause
"""What is written to GitHub: each change says what it does before it does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import github

from torch_backend_ci.github.access import failures
from torch_backend_ci.output import printable, say, show


@dataclass(frozen=True)
class Change:
    """One write. It can be sent again: a run that was killed after it is simply redone."""

    says: str  # as an order: "add the label x to #5"
    send: Callable[[], object]


def perform(changes: Iterable[Change], dry_run: bool) -> int:
    """Do each, or with `dry_run` only print it; how many there were.

    The changes are taken one by one, so that the next may be found by what the last has done.
    """
    done = 0
    for change in changes:
        line = printable(change.says)
        if dry_run:
            show(f"would {line}\n", None)
        else:
            with failures(line):
                change.send()
            say(f"did {line}")
        done += 1
    return done


def unless_gone(send: Callable[[], object]) -> Callable[[], None]:
    """For taking something away: another run may have been faster."""

    def tolerant() -> None:
        try:
            send()
        except github.GithubException as error:
            if error.status not in (404, 410):
                raise

    return tolerant
