# SPDX-License-Identifier: BSD-3-Clause
"""Python files of a torch tree, read one by one with griffe and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import griffe

from torch_backend_ci.errors import CiError

Member = griffe.Function | griffe.Class | griffe.Attribute | griffe.TypeAlias

_WARNINGS = {"FutureWarning", "DeprecationWarning", "PendingDeprecationWarning"}
_FILES = ("{}.py", "{}/__init__.py", "{}.pyi", "{}/__init__.pyi")


@dataclass
class Modules:
    """Modules by name, each parsed at most once."""

    root: Path
    _known: dict[str, griffe.Module | None] = field(default_factory=dict)

    def get(self, name: str) -> griffe.Module | None:
        """The module, or None if this torch does not have it."""
        if name not in self._known:
            self._known[name] = self._parse(name)
        return self._known[name]

    def file(self, thing: griffe.Object) -> str:
        """Where a thing is written down, relative to the tree."""
        path = thing.filepath
        assert isinstance(path, Path)
        return path.relative_to(self.root).as_posix()

    def find(self, module: griffe.Module, name: str) -> Member | None:
        """The definition that `module.name` leads to, through imports; None if it leads nowhere."""
        return self._find(module, name, frozenset())

    def exported(self, module: griffe.Module) -> Iterator[str]:
        """The public names that a module defines or passes on, sorted.

        Passed on is what `__all__` names, and what an `__init__` imports from its own package.
        """
        listed = {str(name) for name in module.exports or ()}
        own = module.path if module.is_init_module else "\0"
        for name, member in sorted(module.members.items()):
            if is_private(name) or name.startswith("__"):
                continue
            passed_on = isinstance(member, griffe.Alias) and (
                name in listed or member.target_path.startswith(own + ".")
            )
            if passed_on or not isinstance(member, griffe.Alias):
                yield name

    def passed_on(self, module: griffe.Module) -> list[str]:
        """The public names that can be imported from a module and lead elsewhere in torch."""
        aliases = {n: a for n, a in module.members.items() if isinstance(a, griffe.Alias)}
        names = {name for name, alias in aliases.items() if not alias.wildcard}
        for alias in aliases.values():
            if alias.wildcard and (other := self.get(alias.target_path)) is not None:
                names |= {str(name) for name in other.exports or ()} or other.members.keys()
        wanted = (n for n in names if not is_private(n) and not n.startswith("__"))
        return sorted(name for name in wanted if self.find(module, name) is not None)

    def _parse(self, name: str) -> griffe.Module | None:
        stem = self.root.joinpath(*name.split("."))
        for pattern in _FILES:
            path = Path(pattern.format(stem))
            if path.is_file():
                return _visit(name, path)
        return None

    def _find(self, module: griffe.Module, name: str, seen: frozenset[str]) -> Member | None:
        step = f"{module.path}:{name}"
        if step in seen:
            return None
        member = module.members.get(name)
        if isinstance(member, griffe.Alias):
            return self._follow(member.target_path, seen | {step})
        if isinstance(member, Member):
            return member
        for alias in module.members.values():
            if isinstance(alias, griffe.Alias) and alias.wildcard and not is_private(name):
                found = self._follow(f"{alias.target_path}.{name}", seen | {step})
                if found:
                    return found
        return None

    def _follow(self, path: str, seen: frozenset[str]) -> Member | None:
        """What a dotted path leads to; only names directly in a module are looked for."""
        owner, _, name = path.rpartition(".")
        if owner.partition(".")[0] not in ("torch", "torchgen"):
            return None
        module = self.get(owner)
        return self._find(module, name, seen) if module else None


def is_private(name: str) -> bool:
    """Has a leading underscore and is not a special method."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def notes(thing: griffe.Object) -> dict[str, Any]:
    """What was noted about a definition while its source was at hand."""
    return thing.extra["surface"]


def _visit(name: str, path: Path) -> griffe.Module:
    package, _, last = name.rpartition(".")
    notes = griffe.Extensions(_Notes())
    try:
        source = path.read_text(encoding="utf-8")
        return griffe.visit(last, path, source, parent=_package(package), extensions=notes)
    except (OSError, UnicodeDecodeError) as error:
        raise CiError(f"{path}: {error}") from error
    except SyntaxError as error:
        raise CiError(f"{path}:{error.lineno}: {error.msg}") from error


def _package(name: str) -> griffe.Module | None:
    """The packages around a module, empty: what relative imports are resolved against."""
    package = None
    for part in name.split(".") if name else ():
        package = griffe.Module(part, parent=package)
    return package


class _Notes(griffe.Extension):
    """Notes what griffe does not keep: deprecation, conditions, bodies that only raise.

    Of two definitions in the branches of an `if` or `try`, the first one stays: the other is what
    there is for want of it. (griffe would keep the last.)
    """

    def __init__(self) -> None:
        self._first: dict[ast.AST, griffe.Object | griffe.Alias] = {}

    def on_function_node(self, *, node: Any, agent: Any, **_: Any) -> None:
        self._remember(node, agent)

    def on_class_node(self, *, node: Any, agent: Any, **_: Any) -> None:
        self._remember(node, agent)

    def on_function_instance(
        self, *, node: Any, func: griffe.Function, agent: Any, **_: Any
    ) -> None:
        notes(func).update(_notes_of(node))
        self._restore(node, agent)

    def on_attribute_instance(self, *, node: Any, attr: griffe.Attribute, **_: Any) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):  # a property
            notes(attr).update(_notes_of(node))
            return
        if not _is_of_self(node):
            notes(attr)["in_body"] = isinstance(node.parent, ast.ClassDef)
            notes(attr).update(_renaming(node.value))

    def on_class_instance(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        notes(cls).update(_notes_of(node))

    def on_class_members(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        first = self._first.pop(node, None)
        if first is not None and cls.parent is not None:
            cls.parent.set_member(node.name, first)

    def _remember(self, node: Any, agent: Any) -> None:
        if node.name in agent.current.members and _is_alternative(node):
            self._first[node] = agent.current.members[node.name]

    def _restore(self, node: Any, agent: Any) -> None:
        if first := self._first.pop(node, None):
            agent.current.set_member(node.name, first)


def _is_alternative(node: Any) -> bool:
    """Stands in the `else` of an `if`, or in an `except`."""
    parent = node.parent
    return isinstance(parent, ast.ExceptHandler) or (
        isinstance(parent, ast.If) and node in parent.orelse
    )


def _notes_of(node: Any) -> dict[str, Any]:
    found = {
        "conditional": isinstance(node.parent, (ast.If, ast.Try, ast.ExceptHandler)),
        "deprecated": any(map(_is_deprecation, node.decorator_list)),
    }
    if not isinstance(node, ast.ClassDef):
        found["deprecated"] |= any(map(_is_warning, node.body))
        found["raises"] = _only_raises(node.body)
    return {note: value for note, value in found.items() if value}


def _is_deprecation(decorator: ast.expr | None) -> bool:
    """@deprecated("...") of typing_extensions or warnings, however it was imported."""
    return isinstance(decorator, ast.Call) and _last_name(decorator.func) == "deprecated"


def _is_warning(statement: ast.stmt) -> bool:
    """warnings.warn(..., FutureWarning) on every call: one below an `if` is about an argument."""
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return False
    call = statement.value
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return _last_name(call.func) == "warn" and any(_last_name(v) in _WARNINGS for v in values)


def _only_raises(body: list[ast.stmt]) -> bool:
    """Nothing but `raise NotImplementedError`: an override is asked for."""
    statements = [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]
    if len(statements) != 1 or not isinstance(statements[0], ast.Raise):
        return False
    error = statements[0].exc
    name = _last_name(error.func if isinstance(error, ast.Call) else error)
    return name == "NotImplementedError"


def _is_of_self(node: ast.Assign | ast.AnnAssign) -> bool:
    """`self.name = value`, in a constructor."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Attribute) for target in targets)


def _renaming(value: ast.expr | None) -> dict[str, Any]:
    """`name = other`, and `name = deprecated("...")(other)`."""
    deprecated = isinstance(value, ast.Call) and _is_deprecation(value.func)
    if deprecated and isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, ast.Name):
        return {}
    return {"other_name_of": value.id, "deprecated": deprecated}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _last_name(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
