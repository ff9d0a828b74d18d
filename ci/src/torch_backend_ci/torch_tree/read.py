# SPDX-License-Identifier: BSD-3-Clause
"""A directory laid out as site-packages is -> TorchTree."""

from __future__ import annotations

import ast
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree.tree import TorchTree

_INCLUDE = ("torch/include", "torch/include/torch/csrc/api/include")


def tree_at(root: Path) -> TorchTree:
    """The torch in `root`; CiError says what it lacks."""
    constants = _constants_of(root / "torch" / "version.py")
    version = constants.get("__version__")
    if version is None:
        raise CiError(f"{root}/torch/version.py does not say __version__")
    if not (root / "torch/include/c10/core/Device.h").is_file():
        raise CiError(f"the torch in {root} has no headers (torch/include/c10)")
    if not (root / "torchgen/packaged/ATen/native/native_functions.yaml").is_file():
        raise CiError(f"the torch in {root} has no torchgen beside it")
    libraries = root / "torch" / "lib"
    return TorchTree(
        root=root,
        version=_public(version, root),
        git_version=constants.get("git_version"),
        include=tuple(root / folder for folder in _INCLUDE if (root / folder).is_dir()),
        libraries=libraries if any(libraries.glob("libc10.*")) else None,
    )


def _constants_of(path: Path) -> dict[str, str]:
    try:
        return constants(path.read_bytes(), str(path))
    except FileNotFoundError as error:
        raise CiError(f"there is no torch in {path.parents[1]}: no torch/version.py") from error
    except OSError as error:
        raise CiError(f"cannot read {path}: {error}") from error


def constants(module: bytes, name: str) -> dict[str, str]:
    """The texts that a module assigns, without running it; `name` is for messages."""
    try:
        tree = ast.parse(module)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CiError(f"cannot read {name}: {error}") from error
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _public(version: str, root: Path) -> str:
    try:
        return Version(version).public
    except InvalidVersion as error:
        raise CiError(f"{root}/torch/version.py: {version!r} is not a version") from error
