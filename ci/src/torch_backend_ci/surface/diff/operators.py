# SPDX-License-Identifier: BSD-3-Clause
"""Operators, compared: what changes for code that registers kernels and for callers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

Argument = Mapping[str, Any]

# Without a kernel of its own a backend has none.
_NEEDS_KERNEL = {"explicit", "structured"}

# Tags that tell compilers what they must not assume; the others describe.
_BEHAVIOUR_TAGS = {
    "cudagraph_unsafe",
    "data_dependent_output",
    "dynamic_output_shape",
    "inplace_view",
    "maybe_aliasing_or_mutating",
    "nondeterministic_bitwise",
    "nondeterministic_seeded",
}

_SIZED_INTEGERS = re.compile(r"\b(SymInt|int)\[\d+\]")


def findings(
    before: Mapping[str, list[Declaration]], after: Mapping[str, list[Declaration]]
) -> Iterator[Finding]:
    """Every difference between the operators of two snapshots, by name."""
    derived_before, derived_after = _derived(before), _derived(after)
    for name in before.keys() | after.keys():
        was, now = _only(before.get(name)), _only(after.get(name))
        if was is not None and now is not None:
            if was.kind == "operator":
                yield from _schema(was, now)
                yield from _properties(was, now)
        elif now is not None:
            if name not in derived_before:
                yield _added(now)
        elif was is not None and name not in derived_after:
            yield _removed(was)
    for name in sorted(derived_before.keys() - derived_after.keys() - after.keys()):
        yield finding("generated_operator_removed", derived_before[name], None, generated=name)
    for name in sorted(derived_after.keys() - derived_before.keys() - before.keys()):
        yield finding("generated_operator_added", None, derived_after[name], generated=name)


def _only(declarations: list[Declaration] | None) -> Declaration | None:
    return declarations[0] if declarations else None


def _derived(declarations: Mapping[str, list[Declaration]]) -> dict[str, Declaration]:
    """The operators that torchgen derives, each with the entry that it is derived from."""
    everything = (d for found in declarations.values() for d in found)
    return {name: d for d in everything for name in d.facts.get("generated", ())}


def _added(now: Declaration) -> Finding:
    if now.kind == "tag":
        return finding("tag_added", None, now)
    needs_kernel = now.facts["dispatch"] in _NEEDS_KERNEL
    return finding("operator_added" if needs_kernel else "operator_added_composite", None, now)


def _removed(was: Declaration) -> Finding:
    if was.kind == "tag":
        return finding("tag_removed", was, None)
    named = any("Dimname" in argument["type"] for argument in was.facts.get("arguments", ()))
    note = "It was part of named tensors." if named else ""
    return finding("operator_removed", was, None, note=note)


def _schema(was: Declaration, now: Declaration) -> Iterator[Finding]:
    old: Sequence[Argument] = was.facts.get("arguments", ())
    new: Sequence[Argument] = now.facts.get("arguments", ())
    pairs = list(_pairs(old, new))
    paired_old, paired_new = [a["name"] for a, _ in pairs], [b["name"] for _, b in pairs]
    for argument in old:
        if argument["name"] not in paired_old:
            yield finding("argument_removed", was, now, argument=_written(argument))
    for argument in new:
        if argument["name"] not in paired_new:
            yield finding("argument_added", was, now, argument=_written(argument))
    for one, other in pairs:
        yield from _argument(was, now, one, other)
    order = [a["name"] for a in new if a["name"] in paired_new]
    if order != paired_new:
        yield finding(
            "arguments_reordered",
            was,
            now,
            was_order=", ".join(paired_new),
            now_order=", ".join(order),
        )
    yield from _returns(was, now)


def _written(argument: Argument) -> str:
    default = f"={argument['default']}" if "default" in argument else ""
    return f"{argument['type']} {argument['name']}{default}"


def _pairs(old: Sequence[Argument], new: Sequence[Argument]) -> Iterator[tuple[Argument, Argument]]:
    """Arguments of the same name; and those that have another name at the same place."""
    by_name = {argument["name"]: argument for argument in new}
    old_names = {argument["name"] for argument in old}
    for place, argument in enumerate(old):
        if same := by_name.get(argument["name"]):
            yield argument, same
        elif len(old) == len(new) and new[place]["name"] not in old_names:
            yield argument, new[place]


def _argument(
    was: Declaration, now: Declaration, old: Argument, new: Argument
) -> Iterator[Finding]:
    words = {"argument": old["name"], "was_type": old["type"], "now_type": new["type"]}
    if old["type"] != new["type"]:
        yield finding(_type_rule(old["type"], new["type"]), was, now, **words)
    if old["name"] != new["name"]:
        yield finding("argument_renamed", was, now, now_name=new["name"], **words)
    if rule := _default_rule(old.get("default"), new.get("default")):
        defaults = {"was_default": str(old.get("default")), "now_default": str(new.get("default"))}
        yield finding(rule, was, now, **words, **defaults)
    if new.get("kwarg_only") and not old.get("kwarg_only"):
        yield finding("argument_made_keyword_only", was, now, **words)
    yield from _alias(was, now, old["name"], old, new)


def _type_rule(old: str, new: str) -> str:
    """int and int[2] are the same C++ type as int[]; SymInt accepts kernels for int."""
    unsized_old, unsized_new = (_SIZED_INTEGERS.sub(r"\1[]", t) for t in (old, new))
    if unsized_old == unsized_new:
        return "argument_size_changed"
    if re.sub(r"\bint\b", "SymInt", unsized_old) == unsized_new:
        return "argument_made_symbolic"
    return "argument_type_changed"


def _default_rule(old: str | None, new: str | None) -> str | None:
    if old == new:
        return None
    if old is None:
        return "argument_made_optional"
    return "argument_made_required" if new is None else "argument_default_changed"


def _alias(
    was: Declaration, now: Declaration, what: str, old: Argument, new: Argument
) -> Iterator[Finding]:
    one, other = old.get("alias", ""), new.get("alias", "")
    if one == other:
        return
    rule = "mutability_changed" if ("!" in one) != ("!" in other) else "alias_changed"
    aliases = {"was_alias": _alias_text(one), "now_alias": _alias_text(other)}
    yield finding(rule, was, now, argument=what, **aliases)


def _alias_text(alias: str) -> str:
    return f"({alias})" if alias else "of its own"


def _returns(was: Declaration, now: Declaration) -> Iterator[Finding]:
    old: Sequence[Argument] = was.facts.get("returns", ())
    new: Sequence[Argument] = now.facts.get("returns", ())
    types = {"was_type": _listed(old, "type"), "now_type": _listed(new, "type")}
    if types["was_type"] != types["now_type"]:
        yield finding("return_changed", was, now, **types)
        return
    names = {"was_names": _listed(old, "name"), "now_names": _listed(new, "name")}
    if names["was_names"] != names["now_names"]:
        yield finding("return_renamed", was, now, **names)
    for one, other in zip(old, new, strict=True):
        yield from _alias(was, now, "what it returns", one, other)


def _listed(items: Sequence[Argument], key: str) -> str:
    return ", ".join(item.get(key, "nothing") for item in items) or "nothing"


def _properties(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """What an entry says beside the schema."""
    old, new = was.facts["dispatch"], now.facts["dispatch"]
    if old != new:
        yield finding(_dispatch_rule(old, new), was, now, was_dispatch=old, now_dispatch=new)
    elif change := _Change.of("keys", was, now):
        yield finding("dispatch_keys_changed", was, now, change=change)
    if change := _Change.of("tags", was, now):
        behaviour = _BEHAVIOUR_TAGS & {*change.gained, *change.lost}
        yield finding(
            "behaviour_tags_changed" if behaviour else "tags_changed", was, now, change=change
        )
    if change := _Change.of("variants", was, now):
        for variant in change.lost:
            yield finding("variant_removed", was, now, variant=variant)
        for variant in change.gained:
            yield finding("variant_added", was, now, variant=variant)
    checks = {"was_check": _check(was), "now_check": _check(now)}
    if checks["was_check"] != checks["now_check"]:
        yield finding("device_check_changed", was, now, **checks)
    was_namespace, now_namespace = (d.facts.get("namespace", "torch") for d in (was, now))
    if was_namespace != now_namespace:
        yield finding(
            "python_namespace_changed",
            was,
            now,
            was_namespace=was_namespace,
            now_namespace=now_namespace,
        )


def _check(operator: Declaration) -> str:
    return "not checked" if operator.facts.get("device_check") == "NoCheck" else "checked"


def _dispatch_rule(old: str, new: str) -> str:
    if (old in _NEEDS_KERNEL) == (new in _NEEDS_KERNEL):
        return "dispatch_changed"
    return "composite_lost" if new in _NEEDS_KERNEL else "composite_gained"


@dataclass(frozen=True)
class _Change:
    """What a fact that is a list gained and lost."""

    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @classmethod
    def of(cls, fact: str, was: Declaration, now: Declaration) -> _Change | None:
        old, new = set(was.facts.get(fact, ())), set(now.facts.get(fact, ()))
        return cls(tuple(sorted(new - old)), tuple(sorted(old - new))) if old != new else None

    def __str__(self) -> str:
        return ", ".join([f"+{name}" for name in self.gained] + [f"-{name}" for name in self.lost])
