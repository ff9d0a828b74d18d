# SPDX-License-Identifier: BSD-3-Clause
"""What a backend may be called, and the names that follow from it."""

from __future__ import annotations

import importlib
import json
import keyword
import os
import re
from collections.abc import Iterable
from pathlib import Path

#: What all names in this project are made from.
OURS = "puone"
LONGEST = 32

#: Words that are no names, by the reason: devices (c10/core/DeviceType.h), keywords, namespaces,
#: and what `torch`, its tensors, storages and modules have in PyTorch 2.11 to 2.15.
RESERVED: dict[str, list[str]] = json.loads(Path(__file__).with_name("reserved.json").read_text())


class BadName(ValueError):
    """A name that cannot be used, with the reason."""


def check_name(name: str, identifiers: Iterable[str]) -> None:
    """Raise BadName unless `name` can be the device, the namespace and the prefix of a backend.

    `identifiers`: those that the sources have already.
    """
    reason = _reason_against(name) or _clash(name, identifiers) or _in_torch(name)
    if reason:
        raise BadName(f"{name!r} cannot be the name of a backend: {reason}")


def _reason_against(name: str) -> str | None:
    if not name.strip():
        return "it has no letters"
    if re.search(r"\s", name):
        return "it has white space"
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
            return reason.replace("NAME", name)
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a keyword of Python"
    if OURS in name:
        return f"{OURS} is the backend that yours is made from"
    return None


def _clash(name: str, identifiers: Iterable[str]) -> str | None:
    """An identifier of the sources that one made from `name` might be taken for."""
    prefixes = (f"{name}_", f"{name.upper()}_")
    for identifier in sorted(identifiers):
        if identifier == name:
            return f"the sources that yours are made from use {name} for something else"
        if identifier.startswith(prefixes):
            return (
                f"names that begin with it would be taken for {identifier}, which is in the "
                "sources that yours are made from"
            )
    return None


def _in_torch(name: str) -> str | None:
    """What the installed PyTorch has of this name; one that is newer may have more than we know."""
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # a backend would add its own
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError):  # the tool runs without it
        return None
    return f"PyTorch {torch.__version__} has torch.{name}" if hasattr(torch, name) else None


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
