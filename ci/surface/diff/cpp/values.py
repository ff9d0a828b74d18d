# SPDX-License-Identifier: BSD-3-Clause
"""Data members, constants, aliases, macros: one declaration against another."""

from __future__ import annotations

from collections.abc import Iterator

from ci.surface.diff.rules import finding
from ci.surface.model import Declaration, Finding


def field(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A data member."""
    old, new = was.facts.get("type"), now.facts.get("type")
    if old != new:
        yield finding("field_type_changed", was, now, was_type=old, now_type=new)
    if bool(was.facts.get("static")) != bool(now.facts.get("static")):
        yield finding("made_static" if now.facts.get("static") else "no_longer_static", was, now)
    if was.facts.get("access") != now.facts.get("access"):
        old, new = (d.facts.get("access", "public") for d in (was, now))
        rule = "access_widened" if new == "public" else "access_narrowed"
        yield finding(rule, was, now, was_access=old, now_access=new)


def constant(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A constant or variable of a namespace or a class."""
    old, new = was.facts.get("type"), now.facts.get("type")
    if old != new:
        yield finding("constant_type_changed", was, now, was_type=old, now_type=new)
    if was.facts.get("constexpr") and not now.facts.get("constexpr"):
        yield finding("no_longer_constexpr", was, now)
    elif was.facts.get("value") != now.facts.get("value"):
        old, new = (d.facts.get("value", "not known") for d in (was, now))
        yield finding("constant_changed", was, now, was_value=old, now_value=new)


def alias(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Another name of a type."""
    old, new = was.facts.get("target"), now.facts.get("target")
    if old != new:
        yield finding("alias_changed", was, now, was_type=old, now_type=new)
    old, new = (d.facts.get("template", "none") for d in (was, now))
    if old != new:
        yield finding("template_changed", was, now, was_template=old, now_template=new)


def macro(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A macro."""
    old, new = was.facts.get("parameters"), now.facts.get("parameters")
    if _shape(old) != _shape(new):
        words = {"was_parameters": _parameters(old), "now_parameters": _parameters(new)}
        yield finding("macro_parameters_changed", was, now, **words)
    elif _body(was) != _body(now):
        yield finding("macro_body_changed", was, now)


def _shape(parameters: list[str] | None) -> tuple[int, bool] | None:
    """How many arguments a macro takes; what they are called is nobody's concern."""
    if parameters is None:
        return None
    return len(parameters), bool(parameters) and parameters[-1].endswith("...")


def _parameters(parameters: list[str] | None) -> str:
    return "no argument list" if parameters is None else f"({', '.join(parameters)})"


def _body(macro: Declaration) -> list[str]:
    """The tokens, with the parameters numbered."""
    names = {n.removesuffix("..."): i for i, n in enumerate(macro.facts.get("parameters") or ())}
    tokens = str(macro.facts.get("body", "")).split()
    return [f"<{names[t]}>" if t in names else t for t in tokens]
