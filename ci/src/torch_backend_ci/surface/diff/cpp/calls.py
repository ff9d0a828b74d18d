# SPDX-License-Identifier: BSD-3-Clause
"""Which calls a function takes, and how two signatures differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torch_backend_ci.surface.diff.cpp.hierarchy import types
from torch_backend_ci.surface.diff.cpp.types import arguments, passes, unconditional
from torch_backend_ci.surface.model import Declaration


class Call(NamedTuple):
    """One way to call a function: on a const object or not, with arguments of these types."""

    const: bool
    arguments: tuple[str, ...]


def calls(function: Declaration) -> Iterator[Call]:
    """Every way to call a function: with each of its trailing defaults, or without."""
    parameters = types(function)
    for count in range(required(function), len(parameters) + 1):
        yield Call(bool(function.facts.get("const")), parameters[:count])


def required(function: Declaration) -> int:
    """How many arguments a call must give."""
    given = [not p.get("default") for p in function.facts.get("parameters", ())]
    return max((i + 1 for i, needed in enumerate(given) if needed), default=0)


def takes(functions: Iterable[Declaration], call: Call) -> bool:
    """Whether one of the functions can be called like this."""
    return any(_takes(f, call) for f in functions if not f.facts.get("deleted"))


def still_called(was: Declaration, now: Iterable[Declaration]) -> bool:
    """Whether every call that a function took compiles with what there is now, and means it."""
    template = template_of(was)
    overloads = [f for f in now if template_of(f) == template or (not template and _deduces(f))]
    return all(takes(overloads, call) for call in calls(was))


def _deduces(function: Declaration) -> bool:
    """Whether all template parameters follow from the arguments."""
    names = set(re.findall(r"type-parameter-\d+-\d+", " ".join(types(function))))
    return len(names) == len(arguments(template_of(function)))


def template_of(function: Declaration) -> str:
    """The template parameters that a call must give or that are deduced from it."""
    return unconditional(str(function.facts.get("template", "")))


def difference(was: Declaration, now: Declaration) -> str:
    """How two signatures differ, in words."""
    return "; ".join(_differences(was, now)) or "nothing that is seen"


def _takes(function: Declaration, call: Call) -> bool:
    parameters = types(function)
    if call.const and not (function.facts.get("const") or function.facts.get("static")):
        return False
    enough = required(function) <= len(call.arguments) <= len(parameters)
    return enough and all(map(passes, call.arguments, parameters))


def _differences(was: Declaration, now: Declaration) -> Iterator[str]:
    yield from _parameters(types(was), types(now))
    yield from _return(was.facts.get("returns"), now.facts.get("returns"))
    for fact in ("const", "noexcept", "variadic"):
        if bool(was.facts.get(fact)) != bool(now.facts.get(fact)):
            yield f"{fact} {'added' if now.facts.get(fact) else 'dropped'}"
    if was.facts.get("ref") != now.facts.get("ref"):
        yield f"qualified {now.facts.get('ref', 'by nothing')}, not {was.facts.get('ref', 'by it')}"
    if was.facts.get("template") != now.facts.get("template"):
        yield f"template {_quoted(was, 'template')} became {_quoted(now, 'template')}"


def _parameters(was: tuple[str, ...], now: tuple[str, ...]) -> Iterator[str]:
    if len(was) != len(now):
        yield f"parameters `({', '.join(was)})` became `({', '.join(now)})`"
        return
    for i, (old, new) in enumerate(zip(was, now, strict=True), start=1):
        if old != new:
            yield f"parameter {i} `{old}` became `{new}`"


def _return(was: str | None, now: str | None) -> Iterator[str]:
    if was != now:
        yield f"returns `{now or 'nothing'}`, not `{was or 'nothing'}`"


def _quoted(declaration: Declaration, fact: str) -> str:
    value = declaration.facts.get(fact)
    return f"`{value}`" if value else "none"
