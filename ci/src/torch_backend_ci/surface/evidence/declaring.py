# SPDX-License-Identifier: BSD-3-Clause
"""Which headers of a torch declare a name, by their text.

Exact enough for choosing headers to watch: one too many costs a second of parsing.
"""

from __future__ import annotations

import re
from collections import defaultdict

from torch_backend_ci.torch_tree import TorchTree, layout

_CLASS = re.compile(
    r"\b(?:class|struct|enum(?: class)?)\s+(?:\w+_API\s+)?(\w+)\s*(?:final\s*)?[:{]"
)
_FUNCTION = re.compile(r"\b\w+_API\s[^;{}()=]*?\b(\w+)\s*\(")
_NAMESPACE = re.compile(r"\bnamespace\s+([\w:]+)\s*\{")
_AT_MOST = 2  # headers that declare one name; more say that the name is a common word


class Declaring:
    """The headers of a torch that are written by hand, by what they declare."""

    def __init__(self, tree: TorchTree) -> None:
        self._classes: defaultdict[str, set[str]] = defaultdict(set)
        self._functions: defaultdict[str, set[str]] = defaultdict(set)
        self._namespaces: dict[str, set[str]] = {}
        for header, text in _headers(tree):
            self._namespaces[header] = {
                word for name in _NAMESPACE.findall(text) for word in name.split("::")
            }
            for name in _CLASS.findall(text):
                self._classes[name].add(header)
            for name in _FUNCTION.findall(text):
                self._functions[name].add(header)

    def headers(self, name: str) -> set[str]:
        """The headers of a qualified name: of its class, or else of the function."""
        *scope, last = name.split("::")
        owners = [part for part in scope if part[:1].isupper()]
        namespaces = {part for part in scope if not part[:1].isupper()}
        declared = (
            self._classes[owners[-1]] if owners else self._classes[last] | self._functions[last]
        )
        fitting = {header for header in declared if namespaces <= self._namespaces[header]}
        return fitting if len(fitting) <= _AT_MOST else set()


def _headers(tree: TorchTree) -> list[tuple[str, str]]:
    root = tree.root / "torch/include"
    found = []
    for top in ("c10", "ATen", "torch/csrc"):
        for path in sorted((root / top).rglob("*.h*")):
            place = path.relative_to(tree.root).as_posix()
            if not layout.is_generated(place) and "/api/include/" not in place:
                text = path.read_text(encoding="utf-8", errors="replace")
                found.append((path.relative_to(root).as_posix(), text))
    return found
