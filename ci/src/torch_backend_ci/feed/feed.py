# SPDX-License-Identifier: BSD-3-Clause
"""The feed: its newest entries in feed.json and feed.atom, and each entry in a file of its own.

Which entries there are and in which order depends on nothing but the entries: whatever ran first,
or twice, the files come out the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from torch_backend_ci import document
from torch_backend_ci.document import Part, Time
from torch_backend_ci.feed import atom
from torch_backend_ci.feed.entry import Entry

JSON, ATOM, ENTRIES = "feed.json", "feed.atom", "entries"
NEWEST = 200  # entries in the feed; the files of the entries have all


class Feed(Part, tag_field="schema_version", tag=1, frozen=True):
    """feed.json of `torch-backend-ci feed`; a file entries/ID.json is one of its entries."""

    title: str
    home: Annotated[str, Meta(description="The address of the repository.")]
    updated: Annotated[
        Time | None, Meta(description="When the newest entry was merged; null if there is none.")
    ]
    entries: Annotated[
        tuple[Entry, ...],
        Meta(
            max_length=NEWEST,
            description="The newest, newest first; entries/ID.json has each there ever was.",
        ),
    ]


def added(current: bytes | None, entries: Iterable[Entry], home: str) -> dict[str, bytes]:
    """The files of the feed with these entries in it; `current` is its feed.json so far.

    `home` is the address of the repository.
    """
    known = {entry.id: entry for entry in (read(current) if current else ())}
    new = {entry.id: entry for entry in entries}
    newest = sorted([*(known | new).values()], key=_age, reverse=True)[:NEWEST]
    return {
        JSON: render(newest, home),
        ATOM: atom.render(newest, home),
        **{f"{ENTRIES}/{id}.json": _encoded(entry) for id, entry in new.items()},
    }


def render(entries: Sequence[Entry], home: str) -> bytes:
    """feed.json."""
    updated = entries[0].merged_at if entries else None
    return _encoded(Feed(atom.TITLE, home, updated, tuple(entries)))


def read(data: bytes) -> Sequence[Entry]:
    """The entries of a feed.json; DocumentError if it is none."""
    return document.decode(data, Feed, JSON).entries


def _age(entry: Entry) -> tuple[str, str]:
    return entry.merged_at, entry.id


def _encoded(value: Feed | Entry) -> bytes:
    text = json.dumps(document.plain(value), indent=1, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"  # half characters: no reader would take them
