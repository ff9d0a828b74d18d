# SPDX-License-Identifier: BSD-3-Clause
"""Vendor words inside generic C and C++ (RFC-0039, "intra-file level")."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from torch_backend_ci.surface.coupling.cpp_lexer import tokens
from torch_backend_ci.surface.coupling.rules import Hit, Rules, Vendor

_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"})
_TEXTS = frozenset({"error", "warning", "pragma"})  # words for people and compilers


def hits(file: str, text: str, rules: Rules) -> Iterator[Hit]:
    """The hits of one file; the same word twice on a line is one."""
    seen = set()
    rule_of = functools.cache(functools.partial(_rule, rules.vendor))  # names come again and again
    for token in tokens(text):
        if rule := rule_of(token.kind, token.text, token.directive):
            hit = Hit(rule, file, token.line, token.text)
            if hit not in seen:
                seen.add(hit)
                yield hit


def _rule(vendor: Vendor, kind: str, text: str, directive: str) -> str | None:
    if directive in _TEXTS:
        return None
    if kind == "string":
        return "cpp.literal" if vendor.device.fullmatch(text) else None
    if kind == "include":
        return "cpp.include" if vendor.names(text) else None
    if kind != "name" or not vendor.names(text):
        return None
    if directive in _CONDITIONS:
        return "cpp.condition"
    return _rule_of_name(text, vendor)


def _rule_of_name(name: str, vendor: Vendor) -> str:
    *scopes, last = name.split("::")
    if last == vendor.is_device:
        return "cpp.is_device"
    if any(vendor.namespace.fullmatch(scope) for scope in (*scopes, last)):
        return "cpp.namespace"
    if vendor.enumerator.fullmatch(last):
        return "cpp.device"
    if not scopes and last.isupper() and "_" in last.strip("_"):
        return "cpp.macro"
    return "cpp.name"
