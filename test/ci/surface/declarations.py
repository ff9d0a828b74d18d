# SPDX-License-Identifier: BSD-3-Clause
"""Declarations and snapshots made by hand, in a few words each.

    method("c10::Allocator::allocate", "size_t", returns="c10::DataPtr", virtual=True)

A type that ends in ` =` is that of a parameter with a default.
"""

from __future__ import annotations

import itertools
from typing import Any

from torch_backend_ci.surface.model import Declaration, Domain, Snapshot, Torch

LINES = itertools.count(1)
BRACES = str.maketrans("{}", "()")


def declaration(domain: Domain, kind: str, name: str, **facts: Any) -> Declaration:
    """A declaration of the surface "allocator", at a line that nothing else has."""
    kept = {fact: value for fact, value in facts.items() if value or value == 0}
    words = ", ".join(f"{fact}={value}" for fact, value in kept.items()).translate(BRACES)
    text = f"{kind} {name} ({words})"
    return Declaration(
        domain, kind, name, "allocator", text, "torch/include/c10/x.h", next(LINES), kept
    )


def cpp(kind: str, name: str, **facts: Any) -> Declaration:
    """A C++ declaration."""
    return declaration(Domain.CPP, kind, name, **facts)


def class_(name: str, *bases: str, **facts: Any) -> Declaration:
    """A class with public bases."""
    return cpp("class", name, bases=[f"public {base}" for base in bases], **facts)


def function(name: str, *types: str, returns: str = "void", **facts: Any) -> Declaration:
    """A free function."""
    return cpp("function", name, parameters=_parameters(types), returns=returns, **facts)


def method(name: str, *types: str, returns: str = "void", **facts: Any) -> Declaration:
    """A member function."""
    return cpp("method", name, parameters=_parameters(types), returns=returns, **facts)


def virtual(name: str, *types: str, **facts: Any) -> Declaration:
    """A virtual member function."""
    return method(name, *types, virtual=True, **facts)


def constructor(name: str, *types: str, **facts: Any) -> Declaration:
    """A constructor; `name` is the class's."""
    own = f"{name}::{name.rpartition('::')[2]}"
    return cpp("constructor", own, parameters=_parameters(types), **facts)


def destructor(name: str, **facts: Any) -> Declaration:
    """A destructor; `name` is the class's."""
    own = f"{name}::~{name.rpartition('::')[2]}"
    return cpp("destructor", own, noexcept=True, **facts)


def enum(name: str, *values: str, **facts: Any) -> list[Declaration]:
    """A scoped enum over int8, its values counted from 0."""
    whole = cpp("enum", name, **{"underlying": "signed char", "scoped": True, **facts})
    return [whole, *(cpp("enumerator", f"{name}::{v}", value=i) for i, v in enumerate(values))]


def header(name: str, **facts: Any) -> Declaration:
    """A header, or "C++ standard"."""
    kind = "language" if "minimum" in facts else "header"
    return declaration(Domain.HEADER, kind, name, **facts)


def symbol(name: str, library: str = "c10") -> Declaration:
    """An exported symbol."""
    return declaration(Domain.SYMBOL, "symbol", name, library=library)


def snapshot(*declarations: Declaration, domains: tuple[Domain, ...] = tuple(Domain)) -> Snapshot:
    """A snapshot of these declarations."""
    return Snapshot(Torch("2.13.0", None), frozenset(domains), declarations)


def _parameters(types: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"type": t.removesuffix(" ="), **({"default": True} if t.endswith(" =") else {})}
        for t in types
    ]
