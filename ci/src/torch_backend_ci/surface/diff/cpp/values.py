# SPDX-License-Identifier: BSD-3-Clause
"""Data members, constants, aliases, macros: one declaration against another."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.surface.diff.cpp.functions import template_changed
from torch_backend_ci.surface.diff.cpp.types import same_but_for_sizes, unqualified, without_const
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding


def field(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A data member."""
    old, new = _stored(was), _stored(now)
    if new not in (old, without_const(old)):
        yield finding("field_type_changed", was, now, was_type=old, now_type=new)
    if bool(was.facts.get("static")) != bool(now.facts.get("static")):
        yield finding("made_static" if now.facts.get("static") else "no_longer_static", was, now)
    yield from _value_changed(was, now)


def constant(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A constant or variable of a namespace."""
    old, new = was.facts.get("type"), now.facts.get("type")
    if same_but_for_sizes(str(old), str(new)):
        yield finding("size_in_type_changed", was, now, was_type=old, now_type=new)
    elif old != new:
        yield finding("constant_type_changed", was, now, was_type=old, now_type=new)
    yield from _value_changed(was, now)


def alias(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Another name of a type."""
    old, new = was.facts.get("target"), now.facts.get("target")
    if old != new:
        yield finding("alias_changed", was, now, was_type=old, now_type=new)
    if was.facts.get("template") != now.facts.get("template"):
        yield template_changed(was, now)


def macro(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """A macro; its parameters are numbered, whatever they are called."""
    old, new = was.facts.get("parameters"), now.facts.get("parameters")
    if old != new:
        words = {"was_parameters": _parameters(old), "now_parameters": _parameters(new)}
        yield finding("macro_parameters_changed", was, now, **words)
    elif was.facts.get("body") != now.facts.get("body"):
        yield finding("macro_body_changed", was, now)


def _value_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    if was.facts.get("constexpr") and not now.facts.get("constexpr"):
        yield finding("no_longer_constexpr", was, now)
    elif unqualified(was.facts.get("value")) != unqualified(now.facts.get("value")):
        old, new = (d.facts.get("value", "not known") for d in (was, now))
        yield finding("constant_changed", was, now, was_value=old, now_value=new)


def _stored(member: Declaration) -> str:
    bits = member.facts.get("bits")
    return f"{member.facts.get('type')}" + (f" : {bits}" if bits else "")


def _parameters(parameters: list[str] | None) -> str:
    if parameters is None:
        return "no argument list"
    variadic = "..." in parameters
    count = len(parameters) - variadic
    return f"{count} argument{'s' * (count != 1)}" + (" and more" if variadic else "")
