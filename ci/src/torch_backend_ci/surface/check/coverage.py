# SPDX-License-Identifier: BSD-3-Clause
"""Which changed files the surfaces cover: of another one, finding nothing says nothing.

A header is covered if a surface lists it or one that includes it: all that it declares is compared.
Of a Python file that a surface lists, the definitions are compared whose names the surface has; a
change to the shape (not to the body) of another one is not covered.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.device_module import LAZY_INIT_HEADER
from torch_backend_ci.torch_tree import TorchTree, layout

_OPERATORS = {
    "torchgen/packaged/ATen/native/native_functions.yaml",
    "torchgen/packaged/ATen/native/tags.yaml",
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_UNLISTED = "no surface lists it"


def missed(
    tree: TorchTree,
    changed: Mapping[str, bytes | None],
    catalogue: Catalogue,
    reached: Collection[str],
) -> dict[str, str]:
    """Changed files, by their path in the repository, that no surface covers wholly, and why.
    `reached` are the files that the listed headers include, and they."""
    modules = _modules(catalogue)
    headers = {path for path in reached if catalogue.surface_of_file(path)}
    reasons = {path: _why(tree, path, after, headers, modules) for path, after in changed.items()}
    return {layout.to_repository(path) or path: why for path, why in reasons.items() if why}


def not_covered(unjudged: Mapping[str, str], missed: Collection[str]) -> list[str]:
    """All files of which no absence of findings is claimed; what no installed PyTorch has is not
    among them."""
    aside = (path for path in unjudged if not layout.is_beside(path))
    return sorted({*aside, *missed})


def _modules(catalogue: Catalogue) -> dict[str, set[str]]:
    """Listed modules -> their listed names; "*" for one that is listed as a whole."""
    modules: dict[str, set[str]] = {}
    for surface in catalogue.surfaces:
        for entry in surface.python:
            module, _, name = entry.partition(":")
            modules.setdefault(module, set()).add(name.partition(".")[0] or "*")
    return modules


def _why(
    tree: TorchTree,
    path: str,
    after: bytes | None,
    headers: Collection[str],
    modules: Mapping[str, set[str]],
) -> str | None:
    if path in _OPERATORS or path == LAZY_INIT_HEADER:
        return None
    if path.endswith(layout.HEADERS):
        return None if after is None or path in headers else _UNLISTED
    if not path.endswith(layout.PYTHON):
        return _UNLISTED
    listed = modules.get(_module(path))
    if listed is None:
        return _UNLISTED
    names = sorted(name for name in _reshaped(tree, path, after) if not _is_listed(name, listed))
    return f"no surface lists {', '.join(names)}" if names else None


def _module(path: str) -> str:
    return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")


def _is_listed(name: str, listed: Collection[str]) -> bool:
    return name in listed or ("*" in listed and not name.startswith("_"))


def _reshaped(tree: TorchTree, path: str, after: bytes | None) -> Iterator[str]:
    """The names of a module that are defined otherwise now, bodies of functions aside."""
    place = tree.root / path
    before = _shapes(place.read_bytes() if place.is_file() else b"")
    now = _shapes(after or b"")
    return (name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _shapes(source: bytes) -> dict[str, list[str]]:
    """The names that a module defines, and how; none if it cannot be read, which is a finding."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    shapes: dict[str, list[str]] = {}
    for statement in body:
        for name in _defined(statement):
            shapes.setdefault(name, []).append(ast.dump(_Bodiless().visit(statement)))
    return shapes


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to the module, in the branches of an `if` or `try` too."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for t in targets for node in ast.walk(t) if isinstance(node, ast.Name))
    elif isinstance(statement, (ast.If, ast.Try, ast.With)):
        for child in ast.iter_child_nodes(statement):
            inner = child.body if isinstance(child, ast.ExceptHandler) else [child]
            for node in inner:
                if isinstance(node, ast.stmt):
                    yield from _defined(node)


class _Bodiless(ast.NodeTransformer):
    """Takes the bodies of functions and all documentation away."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = []
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        node.body = []
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.generic_visit(node)
        node.body = [child for child in node.body if not _is_text(child)]
        return node


def _is_text(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)
