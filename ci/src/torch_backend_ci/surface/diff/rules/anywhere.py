# SPDX-License-Identifier: BSD-3-Clause
"""Rules that hold in every domain."""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import (
    CALLERS,
    OVERRIDERS,
    REGISTRARS,
    USERS,
    Rule,
    table,
)
from torch_backend_ci.surface.model import Severity

RULES = table(
    Rule(
        "file_unreadable",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} cannot be read any more: {error}.",
        "Nothing else of its kind was compared; mend the file and check again.",
    ),
    Rule(
        "probe_disagreement",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS, REGISTRARS),
        "The probe does not compile with torch {version}, and no difference of the declarations "
        "says why: {error}.",
    ),
)
