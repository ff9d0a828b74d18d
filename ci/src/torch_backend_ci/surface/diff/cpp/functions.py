# SPDX-License-Identifier: BSD-3-Clause
"""Functions, methods, constructors, destructors: how each changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_backend_ci.surface.diff.cpp import literals
from torch_backend_ci.surface.diff.cpp.calls import difference, required, still_called, template_of
from torch_backend_ci.surface.diff.cpp.hierarchy import (
    Hierarchy,
    is_virtual,
    own_name,
    signature,
    types,
)
from torch_backend_ci.surface.diff.cpp.types import (
    extends,
    gives,
    passes,
    same_but_for_sizes,
    unqualified,
    without_defaults,
)
from torch_backend_ci.surface.diff.pairing import scope, simple
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

# A comparison, and those from which C++20 makes it.
_REWRITTEN = {
    "operator!=": ("operator==",),
    "operator==": ("operator==",),
    **dict.fromkeys(("operator<", "operator>", "operator<=", "operator>="), ("operator<=>",)),
}

KINDS = {"function", "method", "constructor", "destructor"}


class Sides(NamedTuple):
    """The classes of both snapshots."""

    before: Hierarchy
    after: Hierarchy

    def overrides(self, method: Declaration) -> bool:
        """Whether the method implements a virtual of a base, before or after."""
        return self.before.overrides(method) or self.after.overrides(method)


def likeness(was: Declaration, now: Declaration) -> float:
    """How likely one overload has become the other: most of all by its parameters."""
    if was.kind != now.kind:
        return 0
    old, new = types(was), types(now)
    shared = sum(a == b for a, b in zip(old, new, strict=False))
    score = 1 + 4 * (shared + (old == new)) / (1 + max(len(old), len(new)))
    facts = ("const", "returns", "virtual", "static", "template", "requires", "access")
    return score + sum(was.facts.get(f) == now.facts.get(f) for f in facts) / len(facts)


def added(now: Declaration, sides: Sides) -> Iterator[Finding]:
    """A function that was not there, in a class or namespace that was."""
    if now.facts.get("deleted"):
        if not sides.before.above(now) and not _was_deleted(now, sides.before):
            yield finding("made_deleted", None, now)
    elif now.kind == "destructor":
        if now.facts.get("access"):
            words = {"was_access": "public", "now_access": now.facts["access"]}
            yield finding("access_narrowed", None, now, **words)
    elif is_virtual(now) and not _sealed(now, sides):
        yield from _virtual_added(now, sides)
    else:
        note = ""
        if len(sides.before.named.get(now.name, ())) == 1:
            note = f"There are several of the name now: `&{now.name}` alone is ambiguous."
        yield finding(f"{now.kind}_added", None, now, note=note)


def removed(was: Declaration, sides: Sides) -> Iterator[Finding]:
    """A function that is not there any more, in a class or namespace that is."""
    overloads = sides.after.named.get(was.name, [])
    if was.facts.get("deleted"):
        return
    if was.kind == "destructor":
        if is_virtual(was) and not sides.after.above(was):
            yield finding("no_longer_virtual", was, None)
    elif is_virtual(was):
        yield from _virtual_removed(was, sides)
    elif above := sides.after.above(was):
        yield finding("method_moved_to_base", was, above, base=scope(above.name))
    elif _implicit(was, overloads):
        return
    elif equal := _opposite(was, sides.after):
        text = f"C++20 makes it from {simple(equal.name)}"
        yield finding("signature_compatible", was, equal, difference=text)
    elif still_called(was, overloads):
        yield finding("signature_compatible", was, None, difference="an overload is gone")
    elif simple(was.name) == "operator!=" and not _opposite(was, sides.before):
        return  # made from an operator== that is a friend, and those are not read
    else:
        yield finding(f"{was.kind}_removed", was, None)


def changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    """A function whose facts differ."""
    if was.facts.get("deleted"):
        return  # nobody could use it
    if now.facts.get("deleted"):
        yield finding("made_deleted", was, now)
        return
    if is_virtual(was) and is_virtual(now):
        yield from _virtual_changed(was, now)
    elif is_virtual(was):
        yield finding("no_longer_virtual", was, now)
        yield from _signature_changed(was, now, sides)
    else:
        if is_virtual(now) and not sides.after.overrides(now):
            yield finding("made_pure" if now.facts.get("pure") else "made_virtual", was, now)
        yield from _signature_changed(was, now, sides)
    if _lost("noexcept", was, now) and was.kind != "destructor":
        yield finding("noexcept_dropped", was, now)
    if _gained("final", was, now):
        yield finding("made_final", was, now, what="overriding it")
    yield from _defaults_changed(was, now, sides)
    yield from _values_changed(was, now)
    if _gained("explicit", was, now):
        yield finding("made_explicit", was, now)


def renamed(was: Declaration, now: Declaration) -> Finding:
    """A function that has another name and is the same otherwise."""
    kind = "virtual" if is_virtual(was) else was.kind
    return finding(f"{kind}_renamed", was, now, new_name=now.name)


def template_changed(was: Declaration, now: Declaration) -> Finding:
    """A class, function or alias with other template parameters."""
    old, new = (str(d.facts.get("template", "")) for d in (was, now))
    words = {"was_template": old or "none", "now_template": new or "none"}
    if old and extends(old, new):
        return finding("template_extended", was, now, **words)
    if was.kind in KINDS and without_defaults(old) == without_defaults(new) != "":
        # Nobody passes what only switches it on or off.
        text = f"template `{old}` became `{new}`"
        return finding("template_compatible", was, now, difference=text)
    return finding("template_changed", was, now, **words)


def _sealed(now: Declaration, sides: Sides) -> bool:
    """Whether a new virtual is final from the start: nobody could override it, nobody can."""
    return bool(now.facts.get("final")) and not sides.before.above(now)


def _virtual_added(now: Declaration, sides: Sides) -> Iterator[Finding]:
    if not sides.overrides(now):
        pure = now.facts.get("pure")
        yield finding("pure_virtual_added" if pure else "virtual_added", None, now)
    elif not sides.before.above(now):
        return  # reported as new in the base
    elif now.facts.get("final"):
        yield finding("made_final", None, now, what="overriding it")
    elif now.facts.get("pure"):
        yield finding("made_pure", None, now)


def _virtual_removed(was: Declaration, sides: Sides) -> Iterator[Finding]:
    above = sides.after.above(was)
    if above and not is_virtual(above):
        yield finding("no_longer_virtual", was, above)
    elif above and above.facts.get("pure") and not was.facts.get("pure"):
        yield finding("made_pure", was, above)
    elif above:
        yield finding("virtual_moved_to_base", was, above, base=scope(above.name))
    elif not _renewed_above(was, sides.after):
        yield finding("virtual_removed", was, None)


def _renewed_above(was: Declaration, after: Hierarchy) -> bool:
    """Whether an override merely went where its base's function has another signature now.

    The change is reported once, for the base.
    """
    bases = after.ancestors(scope(was.name))
    return bool(was.facts.get("override")) and any(
        f"{base}::{own_name(was, base)}" in after.named for base in bases
    )


def _virtual_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    stricter = _gained("noexcept", was, now) and was.kind != "destructor"
    same_return = was.facts.get("returns") == now.facts.get("returns")
    if signature(was) != signature(now) or not same_return or stricter:
        text = difference(was, now)
        yield finding("virtual_signature_changed", was, now, difference=text)
    if _gained("pure", was, now):
        yield finding("made_pure", was, now)
    elif _lost("pure", was, now):
        yield finding("no_longer_pure", was, now)
    elif _facts_differ("body", was, now):
        yield finding("default_implementation_changed", was, now)


def _signature_changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    """The signature of what is called, not overridden."""
    if _gained("static", was, now):
        yield finding("made_static", was, now)
    elif _lost("static", was, now):
        yield finding("no_longer_static", was, now)
    old, new = (str(d.facts.get("returns", "")) for d in (was, now))
    text = difference(was, now)
    if template_of(was) and template_of(was) != template_of(now):
        yield template_changed(was, now)
    elif not _called_alike(was, now, sides):
        yield finding(f"{was.kind}_signature_changed", was, now, difference=text)
    elif same_but_for_sizes(old, new):
        yield finding("size_in_type_changed", was, now, was_type=old, now_type=new)
    elif not gives(old, new):
        yield finding("return_type_changed", was, now, was_type=old, now_type=new)
    elif len(types(now)) > len(types(was)):
        yield finding("parameter_added_with_default", was, now, difference=text)
    elif _form(was, now) != _form(now, was):
        template = was.facts.get("template") and now.facts.get("template")
        rule = "template_compatible" if template else "signature_compatible"
        yield finding(rule, was, now, difference=text)


def _called_alike(was: Declaration, now: Declaration, sides: Sides) -> bool:
    """Whether what called the function compiles still: it is the same, or takes the same."""
    if types(was) == types(now) and bool(was.facts.get("const")) <= bool(now.facts.get("const")):
        return not _ref_lost(was, now)
    overloads = sides.after.named.get(now.name, ())
    return still_called(was, overloads) and not _ref_lost(was, now)


def _form(function: Declaration, other: Declaration) -> tuple[object, ...]:
    """What is compared of the signature of what is called."""
    facts = function.facts
    static = facts.get("static") or other.facts.get("static")
    const = None if static else facts.get("const")  # without an object nothing is const
    return (types(function), const, *map(facts.get, ("returns", "ref", "template", "variadic")))


def _ref_lost(was: Declaration, now: Declaration) -> bool:
    """`const &` takes every object; `&` and `&&` do not."""
    takes_all = now.facts.get("ref") == "&" and now.facts.get("const") and not was.facts.get("ref")
    differs = was.facts.get("ref") != now.facts.get("ref")
    return bool(now.facts.get("ref")) and differs and not takes_all


def _opposite(was: Declaration, after: Hierarchy) -> Declaration | None:
    """The comparison from which C++20 makes the one that is gone, also with its sides exchanged."""
    sources = _REWRITTEN.get(simple(was.name), ())
    names = (f"{scope(was.name)}::{source}".removeprefix("::") for source in sources)
    overloads = [f for name in names for f in after.named.get(name, ())]
    ways = (_anonymous(types(was)), _anonymous(types(was)[::-1]))
    return next((f for f in overloads if any(_takes(f, way) for way in ways)), None)


def _takes(function: Declaration, arguments: tuple[str, ...]) -> bool:
    parameters = _anonymous(types(function))
    return len(parameters) == len(arguments) and all(map(passes, arguments, parameters))


def _anonymous(types_: tuple[str, ...]) -> tuple[str, ...]:
    """Types in which the parameters of templates have no numbers."""
    return tuple(re.sub(r"type-parameter-\d+-\d+", "T", type_) for type_ in types_)


def _was_deleted(now: Declaration, before: Hierarchy) -> bool:
    """Whether there was no copying before either: a class that says how it is moved has none."""
    owner = scope(now.name)
    own = simple(owner)
    if types(now) != (f"const {owner} &",):
        return False
    moved = (f"{owner} &&",)
    members = (f"{owner}::{own}", f"{owner}::operator=")
    return any(types(f) == moved for name in members for f in before.named.get(name, ()))


def _implicit(was: Declaration, constructors: list[Declaration]) -> bool:
    """Whether a constructor that is no longer written is one that the compiler makes instead."""
    if was.kind != "constructor":
        return False
    copies = {f"const {scope(was.name)} &", f"{scope(was.name)} &&"}
    if len(types(was)) == 1 and types(was)[0] in copies:
        return True
    return not types(was) and not constructors


def _defaults_changed(was: Declaration, now: Declaration, sides: Sides) -> Iterator[Finding]:
    if types(was) != types(now) or required(was) == required(now):
        return
    if required(was) > required(now):
        yield finding("default_added", was, now)
    elif not still_called(was, sides.after.named.get(now.name, ())):
        parameters = now.facts["parameters"][required(was) : required(now)]
        text = ", ".join(f"`{p['type']}`" for p in parameters)
        yield finding("default_removed", was, now, difference=text)


def _values_changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    """Defaults that are others now."""
    if types(was) != types(now):
        return
    pairs = zip(was.facts.get("parameters", ()), now.facts.get("parameters", ()), strict=True)
    for place, (old, new) in enumerate(pairs, start=1):
        if old.get("value") and new.get("value") and not _same_value(old["value"], new["value"]):
            words = {"was_value": old["value"], "now_value": new["value"]}
            yield finding("default_changed", was, now, parameter=place, **words)


def _same_value(old: str, new: str) -> bool:
    """Whether two defaults are one value, written in two ways perhaps."""
    if old == new:
        return True
    amounts = literals.amount(old), literals.amount(new)
    if None not in amounts:
        return amounts[0] == amounts[1]
    return unqualified(old) == unqualified(new)


def _facts_differ(fact: str, was: Declaration, now: Declaration) -> bool:
    """Whether both say it, and not the same."""
    old, new = was.facts.get(fact), now.facts.get(fact)
    return bool(old and new and old != new)


def _gained(fact: str, was: Declaration, now: Declaration) -> bool:
    return bool(now.facts.get(fact)) and not was.facts.get(fact)


def _lost(fact: str, was: Declaration, now: Declaration) -> bool:
    return _gained(fact, now, was)
