# SPDX-License-Identifier: BSD-3-Clause
"""Documents as typed classes: what is wrong with one, in words; and the schema of a class."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_WHERE = re.compile(r"(.*) - at `(key)?(?:` in `)?\$\.?(.*)`", re.DOTALL)
_STEP = re.compile(r"\[(\.\.\.|\d+)\]|([^.\[\]]+)")


def problem(content: Any, kind: type[T], error: msgspec.ValidationError) -> str:
    """What a document lacks, with its place first: ``run.seed: Expected `int`, got `str` ``."""
    found = _WHERE.fullmatch(str(error))
    if found is None:
        return str(error)
    text, is_key, path = found.groups()
    if is_key or "[...]" in path:
        path = _with_key(content, kind, error, f"{path}[...]" if is_key else path)
    return f"{path}: {text}"


def _with_key(content: Any, kind: type[T], error: msgspec.ValidationError, path: str) -> str:
    """The path with the key of a map that msgspec leaves out: the one that alone fails alike."""
    holder, *rest = path.split("[...]", 1)
    entries: Any = content
    for index, name in _STEP.findall(holder):
        entries = entries[int(index)] if index else entries[name]
    every = dict(entries)
    for key, value in every.items():
        entries.clear()
        entries[key] = value
        try:
            msgspec.convert(content, kind)
        except msgspec.ValidationError as other:
            if str(other) == str(error):
                break
    entries.clear()
    entries.update(every)
    return f"{holder}.{key}{rest[0]}".lstrip(".")


def schema(kind: type[msgspec.Struct], id: str) -> str:
    """The JSON Schema of a class, as it is committed; with the documentation of its fields."""
    made: dict[str, Any] = msgspec.json.schema(kind)
    for struct in _structs(msgspec.inspect.type_info(kind), set()):
        properties = made["$defs"][struct.__name__]["properties"]
        for name, meaning in _meanings(struct):
            if name in properties:
                properties[name] = {"description": meaning, **properties[name]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id}
    return json.dumps({**head, **made}, indent=2) + "\n"


def _structs(info: Any, seen: set[type]) -> Iterator[type]:
    """The classes of which a type consists."""
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls in seen:
            return
        seen.add(info.cls)
        yield info.cls
    if isinstance(info, tuple):
        for item in info:
            yield from _structs(item, seen)
    elif isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in info.__struct_fields__:
            yield from _structs(getattr(info, name), seen)


def _meanings(struct: type) -> Iterator[tuple[str, str]]:
    """The fields of a class and the strings that follow them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield field.target.id, " ".join(after.value.value.split())
