# SPDX-License-Identifier: BSD-3-Clause
"""The symbols that the libraries of a version export, without keeping the libraries (0.5 GB)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from torch_backend_ci.surface.extract.elf import exported
from torch_backend_ci.torch_tree import cache as caches
from torch_backend_ci.torch_tree import index, remote, wheel
from torch_backend_ci.torch_tree.tree import TorchTree

Progress = Callable[[str], None]


def with_libraries(
    tree: TorchTree, cache: Path, progress: Progress, index_url: str | None = None
) -> TorchTree:
    """The tree of a version with lists of what its libraries export; 150 MB are fetched, once."""
    if tree.libraries is not None:
        return tree

    def fill(into: Path) -> None:
        with index.opened(index_url) as pip:
            found = pip.wheel(tree.version)
            progress(f"torch {tree.version}: reading the libraries of {found.shown}")
            if found.path is None:
                remote.fetch(found, pip.session, into, progress, wheel.libraries)
            else:
                with open(found.path, "rb") as file:
                    archive = wheel.open_wheel(file, found.name)
                    wheel.unpack(archive, wheel.libraries(archive, found.name), into, found.name)
        for member in wheel.LIBRARIES:
            library = into / member
            (into / library.with_suffix(".exports").name).write_text("\n".join(exported(library)))
            library.unlink()

    folder = caches.tree(cache, f"{Version(tree.version)}-libraries", fill)
    return replace(tree, libraries=folder)
