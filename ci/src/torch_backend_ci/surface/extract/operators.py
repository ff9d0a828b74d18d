# SPDX-License-Identifier: BSD-3-Clause
"""The operators: native_functions.yaml and tags.yaml, read without running torchgen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.schema_text import SchemaError, parse
from torch_backend_ci.surface.model import Declaration, Domain
from torch_backend_ci.torch_tree.tree import TorchTree

FOLDER = "torchgen/packaged/ATen/native"
SURFACE = "operators"

# The C loader takes 0.1 s where the pure one takes 5 s; they read the same.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENTRY = re.compile(r"^- (?:func|tag): *(?P<value>.*?) *$", re.MULTILINE)


def extract(tree: TorchTree, catalogue: Catalogue) -> list[Declaration]:
    """Every operator, and every tag that an operator can carry."""
    tags = list(_tags(tree))
    known = {tag.name.removeprefix("at::Tag::") for tag in tags}
    return [*_operators(tree, known), *tags]


def _operators(tree: TorchTree, known_tags: set[str]) -> Iterator[Declaration]:
    for entry, line, file in _entries(tree, "native_functions.yaml", "func"):
        schema = entry["func"]
        try:
            parsed = parse(schema)
        except SchemaError as error:
            raise CiError(f"{tree.root / file}:{line}: {error}") from error
        facts: dict[str, Any] = {
            "arguments": parsed.arguments,
            "returns": parsed.returns,
            "dispatch": _dispatch_kind(entry),
            "keys": _keys(entry),
            "device_check": entry.get("device_check"),
            "tags": _words(entry.get("tags")),
            "variants": _words(entry.get("variants", "function")),
            "generated": _generated(entry),
            "namespace": entry.get("python_module"),
        }
        if unknown := set(facts["tags"]) - known_tags:
            raise CiError(f"{tree.root / file}:{line}: no such tag: {', '.join(sorted(unknown))}")
        yield _declaration("operator", parsed.name, schema, file, line, facts)


def _tags(tree: TorchTree) -> Iterator[Declaration]:
    for entry, line, file in _entries(tree, "tags.yaml", "tag"):
        yield _declaration("tag", f"at::Tag::{entry['tag']}", entry["tag"], file, line, {})


def _declaration(
    kind: str, name: str, text: str, file: str, line: int, facts: Mapping[str, Any]
) -> Declaration:
    there = {fact: value for fact, value in facts.items() if value}
    return Declaration(Domain.OPERATOR, kind, name, SURFACE, text, file, line, there)


def _entries(tree: TorchTree, name: str, key: str) -> Iterator[tuple[dict[str, Any], int, str]]:
    """The entries of one file, each with its line."""
    file = f"{FOLDER}/{name}"
    path = tree.root / file
    text = _read(path)
    try:
        entries = yaml.load(text, _LOADER)  # a subclass of the safe loader either way
    except yaml.YAMLError as error:
        raise CiError(f"{path}: {error}") from error
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get(key), str) for entry in entries
    ):
        raise CiError(f"{path}: a list of entries with `{key}` is expected")
    lines = _lines(text)
    for entry in entries:
        yield entry, lines.get(entry[key], 0), file


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CiError(f"{path}: {error}") from error


def _lines(text: str) -> dict[str, int]:
    """Value of an entry -> its line. (Marks of the loader would cost more than the loading.)"""
    lines: dict[str, int] = {}
    line, position = 1, 0
    for match in _ENTRY.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        lines[match["value"]] = line
    return lines


def _words(value: object) -> list[str]:
    """`"a, b"` or `["a", "b"]`, sorted."""
    items = value if isinstance(value, list) else str(value or "").split(",")
    return sorted(item.strip() for item in items if item.strip())


def _keys(entry: Mapping[str, Any]) -> list[str]:
    """The dispatch keys with a kernel of their own."""
    return sorted({key for keys in entry.get("dispatch") or {} for key in _words(keys)})


# The key of a kernel that serves every device, and what an operator with it is called.
_COMPOSITE = (
    ("CompositeImplicitAutograd", "composite_implicit"),
    ("CompositeExplicitAutograd", "composite_explicit"),
    ("CompositeExplicitAutogradNonFunctional", "composite_explicit_non_functional"),
)


def _dispatch_kind(entry: Mapping[str, Any]) -> str:
    """How an operator finds its kernel; "structured" and "explicit" ask the backend for one."""
    keys = _keys(entry)
    for key, kind in _COMPOSITE:
        if key in keys:
            return kind
    if entry.get("structured"):
        return "structured"
    if "structured_delegate" in entry:
        return "structured_delegate"
    # `dispatch: {}` says that there is none; nothing said, that it is made of other operators.
    return "explicit" if "dispatch" in entry else "composite_implicit"


def _generated(entry: Mapping[str, Any]) -> list[str]:
    """The overloads that torchgen derives from this one: operators too, without an entry."""
    return [f"aten::{name}" for name in _words(entry.get("autogen"))]
