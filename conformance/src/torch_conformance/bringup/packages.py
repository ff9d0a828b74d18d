# SPDX-License-Identifier: BSD-3-Clause
"""Which installed packages may make a device available, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distribution, entry_points, packages_distributions
from typing import NamedTuple

BACKENDS = "torch.backends"


class Candidate(NamedTuple):
    """What to load to see whether a device is there."""

    modules: tuple[str, ...]
    entry: str | None = None
    """What torch calls when it loads backends by itself: `pkg.mod:function`."""


def announced(name: str) -> Iterator[Candidate]:
    """Packages that announce a backend to torch, which loads them all; the likeliest first."""
    entries = entry_points(group=BACKENDS)
    for entry in sorted(entries, key=lambda entry: _distance(name, entry)):
        yield Candidate((entry.module,), entry.value)


def likely(name: str) -> Iterator[Candidate]:
    """Packages for torch that name the device, in their own name or that of a module."""
    for module, packages in sorted(packages_distributions().items()):
        for package in packages:
            named = has_word(name, module) or has_word(name, package)
            # One that is built against the torch that is there may not say that it needs it.
            if named and (_needs_torch(package) or "torch" in f"{package} {module}".lower()):
                yield Candidate((module,))
                break


def has_word(name: str, text: str) -> bool:
    """Whether a text has the name as a word, alone or joined to `torch`, as in `torchmychip`.

    `-`, `_` and `.` separate words.
    """
    words = {*re.split(r"[^a-z0-9]+", text.lower()), *re.split(r"[^a-z0-9_]+", text.lower())}
    called = name.lower()
    return not words.isdisjoint((called, f"torch{called}", f"{called}torch"))


def _distance(name: str, entry: EntryPoint) -> tuple[bool, bool, str]:
    """Entries of this name first, then those with the name in theirs."""
    return entry.name != name, not has_word(name, f"{entry.name} {entry.value}"), entry.name


def _needs_torch(package: str) -> bool:
    return any(re.match(r"torch\b(?!-)", need) for need in distribution(package).requires or ())
