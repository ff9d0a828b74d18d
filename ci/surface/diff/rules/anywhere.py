# SPDX-License-Identifier: BSD-3-Clause
"""Rules that hold in every domain."""

from __future__ import annotations

from ci.surface.diff.rules.rule import USERS, Rule, table
from ci.surface.model import Severity

RULES = table(
    Rule(
        "file_unreadable",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} cannot be read any more: {error}.",
        "Nothing else of its kind was compared; mend the file and check again.",
    ),
)
