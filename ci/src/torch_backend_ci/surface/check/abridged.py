# SPDX-License-Identifier: BSD-3-Clause
"""Headers that a build writes, as short as a reading of a part allows.

Such a header compiles as before if it mentions nothing that is at stake. Two thirds of the probe's
time go into functions of a line, one for each operator: they are left without their bodies. A
quarter of the rest goes into the headers of operators, four thousand, of which what is read uses a
few hundred: the others are left empty. An operator that is used nevertheless is an error of the
compiler, and reading.py then reads all headers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from torch_backend_ci.surface.extract.cpp.tokens import IDENTIFIER
from torch_backend_ci.torch_tree import TorchTree, layout

_OPERATORS = "torch/include/ATen/ops/"
_LISTS = "torch/include/ATen/"  # what a build writes there names every operator, and uses none
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.MULTILINE)
# Of the file's name, and of what a file declares beside the function that it is named after.
_KIND = re.compile(r"_(?:ops|native|meta|\w+_dispatch)$")
_VARIANT = re.compile(r"^structured_|(?:_symint)?_outf?$|_symint$")
_INLINE = re.compile(
    r"^(?!.*\b(?:auto|constexpr)\b)(?P<head>(?P<declared>[^\n(]*)\([^\n]*\)(?: const)?) *\{\n"
    r" *return [^\n]*;\n *\}",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Abridged:
    """Files of a tree that are read together: those that may be shorter, and the others."""

    written: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def overlay(self, tree: TorchTree, more: str = "") -> dict[str, str]:
        """The files that are shorter, by their paths in the tree; `more` is read with them."""
        used = _used([more, *(_text(tree, path) for path in self.others)])
        found = {}
        for path in self.written:
            if path.startswith(_OPERATORS) and not _names(path) & used:
                found[path] = ""
            elif _INLINE.search(text := _text(tree, path)):
                found[path] = _INLINE.sub(_bodiless, text)
        return found


def abridged(read: Collection[str], at_stake: Collection[str]) -> Abridged:
    """Of the files that are read, those that a build writes may be shorter if not at stake."""
    written = {path for path in read if layout.is_generated(path)} - set(at_stake)
    lists = {p for p in written if p.startswith(_LISTS)}
    return Abridged(tuple(sorted(written)), tuple(sorted(set(read) - lists)))


def _text(tree: TorchTree, path: str) -> str:
    """Of a file; a path may be one that an #include might have meant."""
    file = tree.root / path
    return file.read_text(errors="replace") if file.is_file() else ""


def _used(texts: Collection[str]) -> set[str]:
    """What the texts mention, but for the names of the files that they include."""
    words = {word for text in texts for word in IDENTIFIER.findall(_DIRECTIVE.sub("", text))}
    return words | {_VARIANT.sub("", word) for word in words}


def _names(path: str) -> set[str]:
    """The operator that a file is about, in the two ways to read the file's name."""
    stem = path.rpartition("/")[2].removesuffix(".h")
    return {stem, _KIND.sub("", stem)}


def _bodiless(match: re.Match[str]) -> str:
    """A declaration in as many lines; nothing for a member, which its class has declared."""
    lines = "\n" * match[0].count("\n")
    return lines if "::" in match["declared"].rpartition(" ")[2] else f"{match['head']};{lines}"
