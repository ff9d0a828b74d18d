# SPDX-License-Identifier: BSD-3-Clause
"""Torch trees that a test writes, and the installed one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from torch_backend_ci.torch_tree.tree import TorchTree


def write_tree(root: Path, files: Mapping[str, str], version: str = "2.13.0") -> TorchTree:
    """A tree of these files: path below the root -> text."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return TorchTree(root, version, None, (root / "torch" / "include",), None)


def installed_tree() -> TorchTree:
    """The torch that is installed, found without importing it."""
    distribution = importlib.metadata.distribution("torch")
    root = Path(str(distribution.locate_file("")))
    version = distribution.version.partition("+")[0]
    include = root / "torch" / "include"
    folders = (include, include / "torch" / "csrc" / "api" / "include")
    return TorchTree(root, version, None, folders, root / "torch" / "lib")
