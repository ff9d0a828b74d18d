# SPDX-License-Identifier: BSD-3-Clause
"""Checked lists of known outcomes: ``unsupported``, ``xfail`` and ``flaky``.

`unsupported` is permanent, `xfail` is a defect that will be mended (hence a status and an expiry),
`flaky` may go either way. An entry that names no check is an error, an unexpected pass is red and
names the line to delete, so that the file can only shrink or be changed knowingly.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from conformance import catalogue
from conformance.check import matches, pattern_error
from conformance.outcome import Outcome

LISTS = ("unsupported", "xfail", "flaky")
STATUSES = ("fail", "error", "crash", "timeout")
REQUIRED = {
    "unsupported": ("id", "reason", "link"),
    "xfail": ("id", "reason", "link", "status", "expires"),
    "flaky": ("id", "reason", "link"),
}
OPTIONAL = {"unsupported": (), "xfail": (), "flaky": ("expires",)}
BROKEN = frozenset({Outcome.FAIL, Outcome.ERROR, Outcome.CRASH, Outcome.TIMEOUT})


class ExpectationsError(Exception):
    """An expectations file that cannot be used; the text names file and line."""


@dataclass(frozen=True)
class Expectation:
    """One entry of the file."""

    kind: str
    id: str
    reason: str
    link: str
    where: str
    status: str | None = None
    expires: datetime.date | None = None

    def judge(self, outcome: Outcome, message: str, today: datetime.date) -> tuple[Outcome, str]:
        """What an outcome becomes under this entry, and the message that goes with it."""
        if outcome not in BROKEN and outcome is not Outcome.PASS:
            return outcome, message
        if self.kind == "flaky":
            return self._judge_flaky(outcome, message, today)
        if outcome is Outcome.PASS:
            return (
                Outcome.XPASS,
                f"passes, but is listed under {self.kind}: delete or narrow {self.where}",
            )
        if self.kind == "unsupported":
            return Outcome.UNSUPPORTED, f"{self.reason} ({self.link})"
        return self._judge_xfail(outcome, message, today)

    def _judge_flaky(
        self, outcome: Outcome, message: str, today: datetime.date
    ) -> tuple[Outcome, str]:
        if self.expires and today > self.expires and outcome is not Outcome.PASS:
            return outcome, f"{message}\n{self._expired()}"
        how = "passed this time" if outcome is Outcome.PASS else f"{outcome} this time: {message}"
        return Outcome.FLAKY, f"{self.reason} ({self.link}); {how}"

    def _judge_xfail(
        self, outcome: Outcome, message: str, today: datetime.date
    ) -> tuple[Outcome, str]:
        if outcome.value != self.status:
            return outcome, f"{message}\n{self.where} expects status {self.status!r}"
        if self.expires and today > self.expires:
            return outcome, f"{message}\n{self._expired()}"
        return Outcome.XFAIL, f"{self.reason} ({self.link})"

    def _expired(self) -> str:
        return f"the entry at {self.where} expired on {self.expires}"


class Expectations:
    """The entries of one file; the first that matches a check decides."""

    def __init__(self, entries: Iterable[Expectation] = ()) -> None:
        self.entries = list(entries)

    @classmethod
    def load(cls, file: Path) -> Expectations:
        """Read and verify a file."""
        return cls(_read(file))

    def find(self, check_id: str) -> Expectation | None:
        """The entry for a check."""
        return next((entry for entry in self.entries if matches(entry.id, check_id)), None)

    def verify(self, known_ids: Iterable[str], surfaces: Collection[str]) -> None:
        """Raise ExpectationsError for an entry that names no check there is.

        An entry of a surface that was not collected cannot be judged, and is left alone.
        """
        ids = list(known_ids)
        for entry in self.entries:
            surface, slash, _ = entry.id.partition("/")
            if slash and surface in catalogue.SURFACES and surface not in surfaces:
                continue
            if not any(matches(entry.id, check_id) for check_id in ids):
                raise ExpectationsError(
                    f"{entry.where}: {entry.kind} entry {entry.id!r} matches no check"
                )


def _read(file: Path) -> list[Expectation]:
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ExpectationsError(f"{file}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ExpectationsError(f"{file}: {error}") from None
    if node is None:
        return []
    if not isinstance(node, yaml.MappingNode):
        raise ExpectationsError(f"{file}:1: expected the lists {', '.join(LISTS)}")
    entries = []
    for key_node, list_node in node.value:
        if key_node.value not in LISTS or not isinstance(list_node, yaml.SequenceNode):
            raise ExpectationsError(
                f"{file}:{key_node.start_mark.line + 1}: {key_node.value!r} is not one of the "
                f"lists {', '.join(LISTS)}"
            )
        entries += [_entry(file, key_node.value, item) for item in list_node.value]
    return entries


def _entry(file: Path, kind: str, node: yaml.Node) -> Expectation:
    where = f"{file}:{node.start_mark.line + 1}"
    values = yaml.SafeLoader("").construct_document(node)
    if not isinstance(values, dict):
        raise ExpectationsError(f"{where}: expected a map with {', '.join(REQUIRED[kind])}")
    for key in REQUIRED[kind]:
        if not values.get(key):
            raise ExpectationsError(f"{where}: key {key!r} is missing")
    for key in values:
        if key not in REQUIRED[kind] + OPTIONAL[kind]:
            raise ExpectationsError(f"{where}: unknown key {key!r} in {kind}")
    problem = pattern_error(values["id"])
    if problem:
        raise ExpectationsError(f"{where}: {problem}")
    if values.get("status", "fail") not in STATUSES:
        raise ExpectationsError(f"{where}: status is one of {', '.join(STATUSES)}")
    if not isinstance(values.get("expires", datetime.date.max), datetime.date):
        raise ExpectationsError(f"{where}: expires is a date like 2027-01-31")
    return Expectation(kind=kind, where=where, **values)
