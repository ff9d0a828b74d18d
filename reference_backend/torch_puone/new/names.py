# SPDX-License-Identifier: BSD-3-Clause
"""What a backend may be called, and the names that follow from it."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable
from pathlib import Path

#: What all names in this project are made from.
OURS = "puone"
LONGEST = 32

#: Words that are no names, by the reason: devices (c10/core/DeviceType.h), keywords, namespaces.
RESERVED: dict[str, list[str]] = json.loads(Path(__file__).with_name("reserved.json").read_text())


class BadName(ValueError):
    """A name that cannot be used, with the reason."""


def check_name(name: str, identifiers: Iterable[str]) -> None:
    """Raise BadName unless `name` can be the device, the namespace and the prefix of a backend.

    `identifiers`: those that the sources have already.
    """
    reason = _reason_against(name) or _clash(name, identifiers)
    if reason:
        raise BadName(f"{name!r} cannot be the name of a backend: {reason}")


def _reason_against(name: str) -> str | None:
    if re.search(r"[0-9]", name):
        return "PyTorch reads no digits in the name of a device; spell them"
    if re.fullmatch(r"[a-z]+(_[a-z]+)*", name) is None:
        return (
            "it is also an identifier and part of file names; use lower-case letters, and single "
            "underscores between them"
        )
    if not 2 <= len(name) <= LONGEST:
        return f"it must have 2 to {LONGEST} letters"
    for reason, words in RESERVED.items():
        if name in words:
            return reason
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a keyword of Python"
    if OURS in name:
        return f"{OURS} is the backend that yours is made from"
    return None


def _clash(name: str, identifiers: Iterable[str]) -> str | None:
    """An identifier of the sources that one made from `name` might be taken for."""
    prefixes = (f"{name}_", f"{name.upper()}_")
    for identifier in identifiers:
        if identifier == name or identifier.startswith(prefixes):
            return f"the sources use {identifier} for something else"
    return None


def renamed(text: str, name: str) -> str:
    """`text` with the names of this project replaced by those of the backend `name`."""
    for ours, theirs in _replacements(name):
        text = text.replace(ours, theirs)
    return text


def _replacements(name: str) -> Iterable[tuple[str, str]]:
    camel = "".join(part.capitalize() for part in name.split("_"))
    # The process group. Not by a letter: such names are other vendors'.
    yield "PCCL", "CCL"
    yield "pccl", f"{name}_ccl"
    yield "reference_backend", "python"
    yield OURS.upper(), name.upper()
    yield OURS.capitalize(), camel
    yield OURS, name
