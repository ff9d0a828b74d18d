# SPDX-License-Identifier: BSD-3-Clause
"""Rules for the symbols that torch's shared libraries export."""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import CALLERS, Rule, table
from torch_backend_ci.surface.model import Severity

RULES = table(
    Rule(
        "symbol_removed",
        Severity.REBUILD,
        (CALLERS,),
        "{library} does not export {name} any more: a backend that was linked with it fails to "
        "load.",
        "Build the backend against the new torch; if it still does not link, the function has "
        "become internal.",
    ),
    Rule(
        "symbol_moved",
        Severity.COSMETIC,
        (CALLERS,),
        "{name} is exported by {library} now; it was by {was_library}.",
    ),
    Rule("symbol_added", Severity.COSMETIC, (CALLERS,), "{library} exports {name} now."),
)
