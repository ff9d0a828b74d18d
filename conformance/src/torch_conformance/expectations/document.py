# SPDX-License-Identifier: BSD-3-Clause
"""The expectations file as a document: its lists, and the keys of an entry in each."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Annotated, Final, Literal, get_args, get_type_hints

from msgspec import UNSET, Meta, UnsetType

from torch_conformance.spec.ids import pattern_error
from torch_conformance.spec.typed import Steps
from torch_conformance.spec.user_file import Part, Text

SCHEMA: Final = "urn:torch-conformance:expectations:1"

Status = Literal["fail", "error", "crash", "timeout"]


Pattern = Annotated[Text, Meta(extra_json_schema={"pattern": r"^[^*]*\*?$"})]


class Entry(Part, frozen=True, kw_only=True):
    """What an entry has in every list."""

    id: Pattern | Annotated[tuple[Pattern, ...], Meta(min_length=1)]
    """id of a check, or a list of ids; a `*` at the end of an id stands for any rest"""
    reason: Text
    """why the outcome is known and accepted"""
    link: Text
    """the issue or page that explains it"""

    def problems(self) -> Iterator[tuple[Steps, str]]:
        """What is wrong beyond the types."""
        for step, pattern in self.patterns():
            if problem := pattern_error(pattern):
                yield ("id", *step), f"is {problem}"

    def patterns(self) -> Iterator[tuple[Steps, str]]:
        """Each id with its place in the list of ids."""
        if isinstance(self.id, str):
            yield (), self.id
        else:
            yield from (((i,), pattern) for i, pattern in enumerate(self.id))


class Unsupported(Entry, frozen=True, kw_only=True):
    """Checks of what the device will never do."""


class Xfail(Entry, frozen=True, kw_only=True):
    """Checks that fail because of a defect that will be mended."""

    status: Status
    """the outcome that is excused; any other is red"""
    expires: datetime.date
    """the last day on which the failure is excused"""


class Flaky(Entry, frozen=True, kw_only=True):
    """Checks that may pass or fail."""

    expires: datetime.date | UnsetType = UNSET
    """the last day on which a failure is excused"""


class Document(Part, frozen=True, kw_only=True):
    """Outcomes of checks that are known and accepted."""

    unsupported: tuple[Unsupported, ...] = ()
    """permanent: what the device will never do"""
    xfail: tuple[Xfail, ...] = ()
    """defects that will be mended"""
    flaky: tuple[Flaky, ...] = ()
    """what may pass or fail"""


#: The class of an entry by the name of its list.
ENTRIES: dict[str, type[Entry]] = {
    name: get_args(kind)[0] for name, kind in get_type_hints(Document).items()
}
