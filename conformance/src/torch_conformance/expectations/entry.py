# SPDX-License-Identifier: BSD-3-Clause
"""One entry of an expectations file, and what an outcome becomes under it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final, get_args

from torch_conformance.expectations.document import Status
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import Excused, List

UNSUPPORTED: Final = "unsupported"
XFAIL: Final = "xfail"
FLAKY: Final = "flaky"
LISTS: tuple[List, ...] = get_args(List)
BROKEN = frozenset(Outcome(status) for status in get_args(Status))


class ExpectationsError(Exception):
    """An expectations file that cannot be used; the text names file and line."""


@dataclass(frozen=True)
class Expectation:
    """One entry of the file."""

    kind: List
    id: str
    reason: str
    link: str
    where: str
    status: str | None = None
    expires: datetime.date | None = None
    lines: tuple[int, int] = (0, 0)
    """Its first line and the one after its last, counted from 0."""

    def expired(self, today: datetime.date) -> bool:
        """Whether its time is over."""
        return self.expires is not None and today > self.expires

    def judge(
        self, outcome: Outcome, message: str, today: datetime.date
    ) -> tuple[Outcome, str, Excused | None]:
        """What an outcome becomes under this entry: the outcome, what is wrong, the excuse."""
        if outcome not in BROKEN and outcome is not Outcome.PASS:
            return outcome, message, None
        if self.kind == FLAKY:
            return self._judge_flaky(outcome, message, today)
        if outcome is Outcome.PASS:
            wrong = f"passes, but is listed under {self.kind}: delete or narrow {self.where}"
            return Outcome.XPASS, wrong, None
        if self.kind == UNSUPPORTED:
            return Outcome.UNSUPPORTED, "", self._excuse(outcome, message)
        return self._judge_xfail(outcome, message, today)

    def _judge_flaky(
        self, outcome: Outcome, message: str, today: datetime.date
    ) -> tuple[Outcome, str, Excused | None]:
        if self.expired(today) and outcome is not Outcome.PASS:
            return outcome, f"{message}\n{self._expired()}", None
        return Outcome.FLAKY, "", self._excuse(outcome, message)

    def _judge_xfail(
        self, outcome: Outcome, message: str, today: datetime.date
    ) -> tuple[Outcome, str, Excused | None]:
        if outcome.value != self.status:
            return outcome, f"{message}\n{self.where} expects status {self.status!r}", None
        if self.expired(today):
            return outcome, f"{message}\n{self._expired()}", None
        return Outcome.XFAIL, "", self._excuse(outcome, message)

    def _excuse(self, outcome: Outcome, message: str) -> Excused:
        return Excused(
            list=self.kind,
            entry=self.id,
            text=self.reason,
            link=self.link,
            observed=outcome,
            message=message,
        )

    def _expired(self) -> str:
        return f"the entry at {self.where} expired on {self.expires}"
