# SPDX-License-Identifier: BSD-3-Clause
"""The files behind the cursors: their text, and their names relative to the torch tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch_backend_ci.surface.extract.cpp.tokens import function_body
from torch_backend_ci.torch_tree import TorchTree

INCLUDE = "torch/include"
_LONGEST = 4000  # bytes of a function that are looked at


class Sources:
    """Files by the name that libclang gives them."""

    def __init__(self, tree: TorchTree, overlay: Mapping[str, str]) -> None:
        self._overlay = {self.path_in(tree, name): text for name, text in overlay.items()}
        # The deepest directory first: torch/csrc/api/include lies within another include directory.
        folders = sorted(map(str, tree.include), key=len, reverse=True)
        root = str(tree.root)
        self._roots = [(root + "/", "")] + [(folder + "/", INCLUDE + "/") for folder in folders]
        self._names: dict[str, str | None] = {}
        self._texts: dict[str, bytes] = {}

    @staticmethod
    def path_in(tree: TorchTree, name: str) -> str:
        """Where an overlaid file stands for libclang: in the first directory that it can be in."""
        relative = name.removeprefix(INCLUDE + "/")
        places = [folder / relative for folder in tree.include]
        return str(next((place for place in places if place.exists()), places[0]))

    @property
    def unsaved(self) -> list[tuple[str, str]]:
        return list(self._overlay.items())

    def name(self, path: str) -> str | None:
        """Relative to the tree; None for files of others."""
        if path not in self._names:
            self._names[path] = self._find_name(path)
        return self._names[path]

    def _find_name(self, path: str) -> str | None:
        for root, prefix in self._roots:
            if path.startswith(root):
                return prefix + path[len(root) :]
        return None

    def text(self, path: str, start: int, end: int) -> str:
        """What stands between two offsets, which count bytes."""
        return self._bytes(path)[start:end].decode(errors="replace")

    def body(self, path: str, start: int) -> str:
        """The body of the function that is declared at an offset; "" if it has none there. (clang,
        which skips bodies, does not say where they end.)"""
        return function_body(self._bytes(path)[start : start + _LONGEST].decode(errors="replace"))

    def lines(self, path: str) -> list[str]:
        return self._bytes(path).decode(errors="replace").splitlines()

    def _bytes(self, path: str) -> bytes:
        if path not in self._texts:
            text = self._overlay.get(path)
            self._texts[path] = Path(path).read_bytes() if text is None else text.encode()
        return self._texts[path]
