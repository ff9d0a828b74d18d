# SPDX-License-Identifier: BSD-3-Clause
"""The parameters of a Python function, compared as its callers and overriders see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

Parameter = Mapping[str, Any]

_VARIADIC = ("var_positional", "var_keyword")
_BY_POSITION = (None, "positional_only")
_BY_KEYWORD = (None, "keyword_only")


def findings(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Every difference that a call or an override can notice; one finding per rule and call."""
    old, new = _parameters(was), _parameters(now)
    renamed = dict(_renamed(old, new))
    together: dict[str, list[str]] = defaultdict(list)
    for rule, name in [*_gone(old, new, renamed), *_new(now, old, new, renamed)]:
        together[rule].append(name)
    for rule, names in together.items():
        yield finding(rule, was, now, parameters=", ".join(names))
    for name, parameter in old.items():
        if twin := new.get(renamed.get(name, name)):
            yield from _same(was, now, parameter, twin, kept=name in new)
    yield from _order(was, now, old, new, renamed)


def _parameters(function: Declaration) -> dict[str, Parameter]:
    """By name; `*args` and `**kwargs` by their stars, since their names do not matter."""
    stars = {"var_positional": "*", "var_keyword": "**"}
    parameters: Sequence[Parameter] = function.facts.get("parameters", ())
    return {stars.get(p.get("kind", ""), str(p["name"])): p for p in parameters}


def _renamed(
    old: Mapping[str, Parameter], new: Mapping[str, Parameter]
) -> Iterator[tuple[str, str]]:
    """Parameters that have another name at the same place, given by position; the old name may
    be left for those who give it by keyword."""
    if len(_positional(old)) != len(_positional(new)):
        return
    for name, now_name in zip(_positional(old), _positional(new), strict=True):
        if name not in _positional(new) and now_name not in old:
            yield name, now_name


def _positional(parameters: Mapping[str, Parameter]) -> list[str]:
    return [name for name, p in parameters.items() if p.get("kind") in _BY_POSITION]


def _gone(
    old: Mapping[str, Parameter], new: Mapping[str, Parameter], renamed: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Rule and name of every parameter that is not there any more."""
    for name, parameter in old.items():
        if name in new or name in renamed:
            continue
        by_keyword = parameter.get("kind") == "keyword_only" or "*" in new
        absorbed = "**" in new and by_keyword and parameter.get("kind") not in _VARIADIC
        yield "parameter_absorbed" if absorbed else "parameter_removed", name


def _new(
    function: Declaration,
    old: Mapping[str, Parameter],
    new: Mapping[str, Parameter],
    renamed: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Rule and name of every parameter that was not there."""
    kept = {*old, *renamed.values()}
    positional = _positional(new)
    for name, parameter in new.items():
        if name in kept:
            continue
        following = positional[positional.index(name) :] if name in positional else []
        if parameter.get("kind") not in _VARIADIC and "default" not in parameter:
            yield "required_parameter_added", name
        elif kept.intersection(following):
            yield "parameter_inserted", name
        else:
            yield _rule_of_optional(function, name), name


def _rule_of_optional(function: Declaration, parameter: str) -> str:
    """An override must take what PyTorch may pass; constructors are not called for a backend."""
    owner, _, name = function.name.rpartition(".")
    of_class = owner.rpartition(".")[2].lstrip("_")[:1].isupper()  # as classes are named
    if of_class and not _is_special(name) and not parameter.startswith("_"):
        return "optional_parameter_added_to_method"
    return "optional_parameter_added"


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _same(
    was: Declaration, now: Declaration, old: Parameter, new: Parameter, *, kept: bool
) -> Iterator[Finding]:
    """What differs of one parameter; `kept`: its old name can still be given by keyword."""
    name, kind, now_kind = old["name"], old.get("kind"), new.get("kind")
    if kind in _VARIADIC:
        return
    if not kept and name != new["name"] and kind in _BY_KEYWORD and _takes_keywords(was):
        yield finding("parameter_renamed", was, now, parameter=name, now_parameter=new["name"])
    if kind in _BY_POSITION and now_kind not in _BY_POSITION:
        yield finding("parameter_made_keyword_only", was, now, parameter=name)
    if kind in _BY_KEYWORD and now_kind not in _BY_KEYWORD:
        yield finding("parameter_made_positional_only", was, now, parameter=name)
    default, now_default = old.get("default"), new.get("default")
    if rule := _default_rule(default, now_default):
        defaults = {"was_default": str(default), "now_default": str(now_default)}
        yield finding(rule, was, now, parameter=name, **defaults)


def _takes_keywords(function: Declaration) -> bool:
    """Python itself calls special methods by position."""
    name = function.name.rpartition(".")[2]
    return not _is_special(name) or name in ("__init__", "__new__", "__call__")


def _default_rule(old: str | None, new: str | None) -> str | None:
    if old == new:
        return None
    if old is None:
        return "parameter_made_optional"
    return "parameter_made_required" if new is None else "parameter_default_changed"


def _order(
    was: Declaration,
    now: Declaration,
    old: Mapping[str, Parameter],
    new: Mapping[str, Parameter],
    renamed: Mapping[str, str],
) -> Iterator[Finding]:
    order = [renamed.get(name, name) for name in _positional(old)]
    now_order = [name for name in _positional(new) if name in order]
    order = [name for name in order if name in now_order]
    if order != now_order:
        yield finding(
            "parameters_reordered",
            was,
            now,
            was_order=", ".join(order),
            now_order=", ".join(now_order),
        )
