# SPDX-License-Identifier: BSD-3-Clause
"""Exported symbols, compared.

A function that goes from the headers goes from the libraries as well, which is reported once, for
its declaration. What is left is what the headers still promise and the libraries no longer have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

ARGUMENTS = re.compile(r"<[^<>]*>")  # innermost first

Named = Mapping[str, list[Declaration]]


def findings(before: Named, after: Named, told: Collection[str]) -> Iterator[Finding]:
    """Every difference, but for symbols of a C++ name in `told`, which is reported already."""
    for name in before.keys() | after.keys():
        was, now = before.get(name, []), after.get(name, [])
        old, new = (", ".join(sorted(str(d.facts.get("library")) for d in x)) for x in (was, now))
        if not was:
            yield finding("symbol_added", None, now[0], library=new)
        elif now and old != new:
            yield finding("symbol_moved", was[0], now[0], library=new, was_library=old)
        elif not now and not any(scope in told for scope in _scopes(name)):
            yield finding("symbol_removed", was[0], None, library=old)


def _scopes(symbol: str) -> Iterator[str]:
    """The function's name without template arguments and parameters, and each scope around it."""
    name = symbol.removeprefix("vtable for ").removeprefix("typeinfo for ")
    while (shorter := ARGUMENTS.sub("", name)) != name:
        name = shorter
    name = name.partition("(")[0]
    while name:
        yield name
        name = name.rpartition("::")[0]
