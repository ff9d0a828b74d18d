# SPDX-License-Identifier: BSD-3-Clause
"""The words of a pull request that moves a pin."""

from __future__ import annotations

import hashlib
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.github.markdown import code, link, text
from torch_backend_ci.pin.compare import compare
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.pin.update import Decision
from torch_backend_ci.surface.report import shown
from torch_backend_ci.surface.report.markdown import render

UPSTREAM = "https://github.com/pytorch/pytorch"
_DIFF_LIMIT = 40_000  # characters
_HOUSE_RULES = (
    "Close this pull request to decline the version: only another one will be proposed. A commit "
    "of yours on the branch makes it yours: it will not be touched again."
)


def key(pin: Pin) -> str:
    """The same torch, the same key: its version, and a digest of all that a pin says of it."""
    digest = hashlib.sha256(repr(pin.torch).encode()).hexdigest()[:12]
    return f"{pin.name} {pin.torch.version if pin.torch else 'nothing'} {digest}"


def title(before: Pin, after: Pin) -> str:
    """One line."""
    old, new = before.torch, after.torch
    if not new or (old and old.version == new.version):
        return f"Pin {after.name}: files of torch {new.version if new else 'nothing'}"
    return f"Pin {after.name}: torch {old.version if old else 'nothing'} -> {new.version}"


def body(before: Pin, decision: Decision, compared: str) -> str:
    """Markdown. `compared` is markdown already."""
    after = decision.pin
    parts = [
        text(decision.says),
        *_commits(before, after),
        *_unhashed(after),
        _HOUSE_RULES,
        compared,
    ]
    return "\n\n".join(part for part in parts if part)


def withdrawn(decision: Decision) -> str:
    """Why a pull request is closed."""
    return f"No longer proposed: {text(decision.says)}."


def compared(before: Pin, after: Pin, cache: Path) -> str:
    """What changed between the two torches for backends; a torch that cannot be read does not
    prevent the pull request; its text says so."""
    if not before.torch or not after.torch or before.torch.version == after.torch.version:
        return ""
    try:
        return render(shown(compare(before, after, cache)), _DIFF_LIMIT)
    except CiError as error:
        return f"The surfaces could not be compared: {text(str(error))}"


def _commits(before: Pin, after: Pin) -> list[str]:
    old = before.torch.git_version if before.torch else None
    new = after.torch.git_version if after.torch else None
    if not new or old == new:
        return []
    built = f"Built from {link(code(new[:10]), f'{UPSTREAM}/commit/{new}')}"
    if old is None:
        return [f"{built}."]
    return [f"{built}; {link('all commits between', f'{UPSTREAM}/compare/{old}...{new}')}."]


def _unhashed(pin: Pin) -> list[str]:
    names = [
        code(wheel.file) for wheel in (pin.torch.wheels if pin.torch else ()) if not wheel.sha256
    ]
    return [f"The index publishes no hash of {', '.join(names)}."] if names else []
