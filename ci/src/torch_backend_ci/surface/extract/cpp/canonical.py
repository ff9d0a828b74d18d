# SPDX-License-Identifier: BSD-3-Clause
"""How types and names are written: the same text for the same thing, wherever it is declared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from torch_backend_ci.surface.extract.cpp.libclang import Type

# Where PyTorch moves what does not need its library; c10 and at expose it under the old name.
NEW_HOME = "torch::headeronly"

_UNNAMED = re.compile(r"\((?:anonymous|unnamed)(?: (class|struct|union|enum))? at [^()]*\)")
# clang writes `decltype(*x)` with a space after the operator where it has seen an overload of it.
_OPERATOR_BEFORE = re.compile(r"(?<=\()([*&!~+-]) (?=[\w:(])")
_INLINE = re.compile(r"\b(std)::(?:__cxx11|_V2|__1)::")


class Types:
    """Canonical spelling of types; `moved` says under which name a moved thing is known."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = dict(moved)
        names = sorted(map(re.escape, moved), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w:])(?:{'|'.join(names)})(?!\w)") if names else None
        self._known: dict[str, str] = {}
        self._parameters: list[tuple[str, ...]] = []  # of the templates around, outermost first

    @contextmanager
    def within(self, parameters: Sequence[str]) -> Iterator[None]:
        """Inside of a template: clang names its parameters in some dependent types."""
        if not parameters:
            yield
            return
        self._parameters.append(tuple(parameters))
        self._known.clear()
        try:
            yield
        finally:
            self._parameters.pop()
            self._known.clear()

    def spelling(self, type_: Type) -> str:
        """Aliases resolved, no inline namespaces, no places of files, no names of parameters."""
        text = type_.get_canonical().spelling
        if text not in self._known:
            self._known[text] = self._written(text)
        return self._known[text]

    def _written(self, text: str) -> str:
        text = _UNNAMED.sub(lambda match: f"(unnamed {match[1] or 'type'})", text)
        text = _INLINE.sub(r"\1::", text).replace("(anonymous namespace)::", "")
        text = _OPERATOR_BEFORE.sub(r"\1", text)
        if self._pattern:
            text = self._pattern.sub(lambda m: self._moved[m[0]], text)
        for depth, names in enumerate(self._parameters):
            for index, name in enumerate(names):
                if name and name in text:
                    text = re.sub(rf"(?<!::)\b{name}\b", f"type-parameter-{depth}-{index}", text)
        return text
