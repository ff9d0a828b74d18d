# SPDX-License-Identifier: BSD-3-Clause
"""The feed: its newest entries in feed.json and feed.atom, and each entry in a file of its own.

Which entries there are and in which order depends on nothing but the entries: whatever ran first,
or twice, the files come out the same.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jsonschema

from ci.errors import CiError
from ci.feed import atom
from ci.feed.entry import Entry
from torch_conformance.spec import strict

SCHEMA = Path(__file__).parent / "schema" / "feed.schema.json"
SCHEMA_VERSION = 1
JSON, ATOM, ENTRIES = "feed.json", "feed.atom", "entries"
NEWEST = 200  # entries in the feed; the files of the entries have all


def added(current: bytes | None, entries: Iterable[Entry], home: str) -> dict[str, bytes]:
    """The files of the feed with these entries in it; `current` is its feed.json so far.

    `home` is the address of the repository.
    """
    known = {entry["id"]: entry for entry in (read(current) if current else ())}
    new = {entry["id"]: entry for entry in entries}
    newest = sorted([*(known | new).values()], key=_age, reverse=True)[:NEWEST]
    return {
        JSON: render(newest, home),
        ATOM: atom.render(newest, home),
        **{f"{ENTRIES}/{id}.json": _encoded(entry) for id, entry in new.items()},
    }


def render(entries: Sequence[Entry], home: str) -> bytes:
    """feed.json."""
    return _encoded(
        {
            "schema_version": SCHEMA_VERSION,
            "title": atom.TITLE,
            "home": home,
            "updated": entries[0]["merged_at"] if entries else None,
            "entries": list(entries),
        }
    )


def read(data: bytes) -> list[Entry]:
    """The entries of a feed.json; CiError if it is none."""
    try:
        document = strict.loads(data)
    except strict.Malformed as error:
        raise CiError(f"{JSON}: {error}") from None
    if wrong := next(_validator().iter_errors(document), None):
        place = "/".join(map(str, wrong.absolute_path)) or "the document"
        raise CiError(
            f"{JSON} is not a feed of version {SCHEMA_VERSION}: {place}: {wrong.message[:200]}"
        )
    found: list[Entry] = document["entries"]
    return found


def _age(entry: Entry) -> tuple[str, str]:
    return entry["merged_at"], entry["id"]


def _encoded(value: Any) -> bytes:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"  # half characters: no reader would take them


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
