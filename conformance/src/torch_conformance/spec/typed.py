# SPDX-License-Identifier: BSD-3-Clause
"""Documents as typed classes: what is wrong with one, in words; and the schema of a class."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

Steps = tuple[str | int, ...]

# msgspec says "WHAT - at `$.lanes[...].outcome`", or "WHAT - at `key` in `$.lanes`".
_SAID = re.compile(r"(?s)(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_ENTRY = "..."  # some entry of a map

#: What msgspec says of an object: the name of the key that it lacks, or has beside those it may.
MISSING = re.compile(r"Object missing required field `(.*)`")
UNKNOWN = re.compile(r"(?s)Object contains unknown field `(.*)`")


class Located(NamedTuple):
    """What is wrong with a document, as msgspec words it, and the whole path to it."""

    what: str
    path: Steps
    is_key: bool
    """Whether the last step of the path is itself what is wrong."""


def located(
    content: Any, error: msgspec.ValidationError, check: Callable[[Any], object]
) -> Located:
    """Where in `content` the error is: msgspec leaves out the keys of maps; this finds them.

    `check` is what raised the error. It is called again with parts of the content, which itself is
    not changed: about log2(n) times for a map of n entries.
    """
    what, steps, is_key = _said(error)
    path: Steps = ()
    for step in (*steps, *([_ENTRY] if is_key else [])):
        entries = at(content, path)
        if step == _ENTRY and isinstance(entries, dict):
            step = _culprit(content, path, what, check)
        path = (*path, step)
    return Located(what, path, is_key)


def problem(content: Any, kind: Any, error: msgspec.ValidationError) -> str:
    """What a document lacks, with its place first: ``run.seed: Expected `int`, got `str` ``."""
    found = located(content, error, lambda part: msgspec.convert(part, kind))
    return ": ".join(filter(None, (spelled(found.path), found.what)))


def spelled(path: Steps) -> str:
    """A path for a message: `lanes[0].name`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def at(content: Any, path: Steps) -> Any:
    """The part of a document at a path; None where there is none."""
    for step in path:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def described(kind: Any, path: Steps, is_key: bool) -> dict[str, Any]:
    """What the schema of a class says of the part at `path`, which may be a key of a map: of all
    that it may be, the alternatives."""
    root, parts = _components(kind)
    found = [root]
    for place, step in enumerate(path):
        last_key = is_key and place == len(path) - 1
        found = [
            below
            for one in found
            for alternative in _alternatives(one, parts)
            for below in _below(alternative, step, last_key)
        ]
    flat = [one for below in found for one in _alternatives(below, parts)]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


@functools.cache
def _components(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    (root,), parts = msgspec.json.schema_components([kind])
    return root, parts


def _alternatives(part: dict[str, Any], parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in part:
        yield from _alternatives(parts[part["$ref"].rpartition("/")[2]], parts)
    elif "anyOf" in part:
        for one in part["anyOf"]:
            yield from _alternatives(one, parts)
    else:
        yield part


def _below(part: dict[str, Any], step: str | int, is_key: bool) -> Iterator[dict[str, Any]]:
    if is_key:
        yield part.get("propertyNames", {})
    elif isinstance(step, int):
        if part.get("type") == "array":
            first = part.get("prefixItems", ())
            yield first[step] if step < len(first) else part.get("items") or {}
    elif step in part.get("properties", {}):
        yield part["properties"][step]
    elif isinstance(rest := part.get("additionalProperties"), dict):
        yield rest


def _said(error: msgspec.ValidationError) -> tuple[str, Steps, bool]:
    found = _SAID.fullmatch(str(error))
    assert found
    steps = tuple(
        name or (int(index) if index else _ENTRY)
        for name, index, _ in _STEP.findall(found["path"] or "")
    )
    return found["what"], steps, bool(found["key"])


def _culprit(content: Any, path: Steps, what: str, check: Callable[[Any], object]) -> str:
    """The entry of the map at `path` that is wrong: found by leaving out half of the rest."""
    entries = at(content, path)
    keys = list(entries)
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        less = _with(content, path, {key: entries[key] for key in half})
        keys = half if _wrong(less, check) == what else keys[len(half) :]
    return str(keys[0]) if keys else _ENTRY


def _wrong(content: Any, check: Callable[[Any], object]) -> str:
    try:
        check(content)
    except msgspec.ValidationError as error:
        return _said(error)[0]
    return ""


def _with(content: Any, path: Steps, new: Any) -> Any:
    """A copy of `content` in which `new` is at `path`."""
    if not path:
        return new
    copy = content.copy()
    copy[path[0]] = _with(content[path[0]], path[1:], new)
    return copy


def schema(kind: type[msgspec.Struct], id: str) -> str:
    """The JSON Schema of a class, as it is committed; with the documentation of its fields."""
    made: dict[str, Any] = msgspec.json.schema(kind)
    for struct in _structs(msgspec.inspect.type_info(kind), set()):
        properties = made["$defs"][struct.__name__]["properties"]
        for name, meaning in meanings(struct).items():
            properties[name] = {"description": meaning, **properties[name]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id}
    return json.dumps({**head, **made}, indent=2) + "\n"


def _structs(info: Any, seen: set[type]) -> Iterator[type[msgspec.Struct]]:
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


@functools.cache
def meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The strings that follow the fields of a class, by the keys of the document."""
    written = {
        name: text
        for part in reversed(struct.__mro__)
        if issubclass(part, msgspec.Struct) and part is not msgspec.Struct
        for name, text in _written(part)
    }
    return {
        field.encode_name: written[field.name]
        for field in msgspec.structs.fields(struct)
        if field.name in written
    }


def _written(struct: type) -> Iterator[tuple[str, str]]:
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
