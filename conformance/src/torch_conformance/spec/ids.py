# SPDX-License-Identifier: BSD-3-Clause
"""Ids of checks and requirements, patterns of ids, and how wide a run is."""

from __future__ import annotations

import re

ID = re.compile(r"[a-z][a-z0-9_]*/[a-z0-9_]+(:[a-z0-9_]+){0,2}")
# A subject, for operators also their family, and a number: STREAM-004, OPINFO-LINALG-003.
REQUIREMENT_ID = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)?-[0-9]{3}")

# How wide a run has to be to contain a check: `pr` is the quickest selection, `standard` what is
# run unless something else is asked for, `full` everything.
BREADTHS = PR, STANDARD, FULL = ("pr", "standard", "full")


def matches(pattern: str, id: str) -> bool:
    """Whether `id` is named by `pattern`: equal to it, or starting with it before a final ``*``."""
    if pattern.endswith("*"):
        return id.startswith(pattern[:-1])
    return id == pattern


def pattern_error(pattern: str) -> str | None:
    """What is wrong with an id pattern, or None."""
    if "*" in pattern[:-1]:
        return f"{pattern!r}: '*' is only allowed at the end of a check id pattern"
    return None
