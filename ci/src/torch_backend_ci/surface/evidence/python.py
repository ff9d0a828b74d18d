# SPDX-License-Identifier: BSD-3-Clause
"""Which modules and names of torch Python files import or read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torch_backend_ci.surface.extract.python_modules import Modules, is_private

_PACKAGES = ("torch", "torchgen")


def names(folder: Path, modules: Modules) -> set[str]:
    """`module:name` for every name that the torch of `modules` defines, of the files below."""
    found: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        found.update(entry for dotted in paths(tree) if (entry := _entry(dotted, modules)))
    return found


def paths(tree: ast.Module) -> set[str]:
    """The dotted paths below torch that a file imports or reads."""
    known: dict[str, str] = {}  # name in the file -> what it stands for
    found: set[str] = set()
    for node in ast.walk(tree):
        for name, imported in _imported(node):
            known[name] = imported
            found.add(imported)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (path := _dotted(node, known)):
            found.add(path)
    return {path for path in found if path.partition(".")[0] in _PACKAGES}


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _dotted(node.value, known)):
        return f"{owner}.{node.attr}"
    return None


def _entry(dotted: str, modules: Modules) -> str | None:
    """The path as an entry of `python:` in surfaces.yaml; None if torch has no such name."""
    parts = dotted.split(".")
    for end in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:end])
        module = modules.get(name)
        if module is None:
            continue
        first, *rest = parts[end:]
        if first.startswith("__") or modules.find(module, first) is None:
            return None
        private = first[:1].isupper() and rest and is_private(rest[0])
        return f"{name}:{first}.{rest[0]}" if private else f"{name}:{first}"
    return None
