# SPDX-License-Identifier: BSD-3-Clause
"""Documents as typed classes: here they are read, checked, written and described.

The class of a document says what it may contain; `read` and `decode` make an instance of it from
bytes that nobody has reviewed, and `schema` describes it for others. The loaders in front of the
class refuse what two readers could take for two things: a key twice, NaN, too much of anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from torch_backend_ci import untrusted
from torch_backend_ci.errors import CiError
from torch_backend_ci.output import printable
from torch_conformance.spec import plain_yaml, strict, typed
from torch_conformance.spec.typed import Steps

T = TypeVar("T")
_LONGEST = 300  # characters of what is wrong
_SHOWN = 80  # characters of a value or a key
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document, or an object in one. A key that the class does not know is an error."""


Sha = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$", max_length=40)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Time = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
        max_length=20,
        description="In UTC.",
    ),
]
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
#: True, or left out; the class must call `only_true`.
Flag = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})] | msgspec.UnsetType
#: For an array in which nothing stands twice; the class must call `once`.
UNIQUE = msgspec.Meta(extra_json_schema={"uniqueItems": True})


def stamp(moment: datetime) -> str:
    """A time in UTC as a `Time`, in whole seconds."""
    return moment.strftime(TIME_FORMAT)


def one_of(*words: str) -> msgspec.Meta:
    """For text that is one of these words, such as the keys of counts."""
    return msgspec.Meta(pattern=rf"^({'|'.join(words)})(?!\n)$")


class DocumentError(CiError):
    """A file that is not the document it should be: which, where in it, what is wrong."""

    def __init__(self, where: str, problem: str, path: Steps = (), line: int | None = None) -> None:
        self.where, self.problem, self.path, self.line = where, problem, path, line
        place = where if line is None else f"{where}:{line}"
        super().__init__(": ".join(filter(None, (place, spelled(path), problem))))


def read(path: Path, kind: type[T], limit: int = strict.MAX_BYTES) -> T:
    """The document in a file: YAML if its name ends so, else JSON; unpacked if it ends in .gz."""
    try:
        data = untrusted.read(path, limit)
    except strict.Malformed as error:
        raise DocumentError(str(path), str(error)) from None
    if path.suffix in {".yaml", ".yml"}:
        return decode_yaml(data, kind, str(path), limit)
    return decode(data, kind, str(path), limit)


def decode(data: bytes, kind: type[T], where: str, limit: int = strict.MAX_BYTES) -> T:
    """The document that these bytes are as JSON; `where` is for messages."""
    _check_size(data, where, limit)
    try:
        value = strict.loads(data)
    except strict.Malformed as error:
        raise DocumentError(where, str(error)) from None
    return convert(value, kind, where)


def decode_yaml(data: bytes, kind: type[T], where: str, limit: int = strict.MAX_BYTES) -> T:
    """The document that these bytes are as YAML; messages name the line."""
    _check_size(data, where, limit)
    try:
        found = plain_yaml.loads(data)
    except strict.Malformed as error:
        raise DocumentError(where, str(error)) from None
    return convert(found.value, kind, where, found.line)


def convert(value: Any, kind: type[T], where: str, line: Callable[[Steps], int] | None = None) -> T:
    """The document that plain values are."""
    try:
        return _converted(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        path, problem = _explained(value, kind, error)
        raise DocumentError(where, problem, path, line(path) if line else None) from None


def plain(document: Any) -> Any:
    """The document as plain values: what `json.dumps` takes."""
    return msgspec.to_builtins(document)


def dumps(document: Any, indent: int | None = 1) -> str:
    """The document as JSON, with a line break at its end."""
    return json.dumps(plain(document), indent=indent) + "\n"


def once(name: str, items: Iterable[Hashable]) -> None:
    """ValueError if something stands twice in a list; for `__post_init__`."""
    seen = set()
    for item in items:
        if item in seen:
            raise ValueError(f"{name}: {item!r} stands there twice")
        seen.add(item)


def only_true(part: msgspec.Struct) -> None:
    """ValueError if a flag is false, where it must be left out; for `__post_init__`."""
    for name in part.__struct_fields__:
        if getattr(part, name) is False:
            raise ValueError(f"{name}: true, or left out")


def schema(kind: Any, name: str, version: int) -> dict[str, Any]:
    """The JSON Schema of a document.

    A class may have parts that it validates itself (`also`) and say how they belong to the others
    (`describe`).
    """
    (root, *_), parts = msgspec.json.schema_components([kind, *getattr(kind, "also", ())])
    if describe := getattr(kind, "describe", None):
        describe(parts)
    if "$ref" in root:
        root = parts.pop(root.pop("$ref").rpartition("/")[2]) | root
    head = {"$schema": _DRAFT, "$id": f"urn:torch-conformance:{name}:{version}"}
    return {**head, **root, **({"$defs": dict(sorted(parts.items()))} if parts else {})}


def spelled(path: Steps) -> str:
    """A path for a message: `lanes[0].name`."""
    shown = tuple(step if isinstance(step, int) else step[:_SHOWN] for step in path)
    return printable(typed.spelled(shown))


def _check_size(data: bytes, where: str, limit: int) -> None:
    if len(data) > limit:
        size = f"{limit >> 20} MiB" if limit >> 20 else f"{limit >> 10} KiB"
        raise DocumentError(where, f"larger than {size}")


def _converted(value: Any, kind: type[T]) -> T:
    made = msgspec.convert(value, kind)
    # msgspec asks for the tag, which is the version of a document, only where it has to choose.
    config = getattr(kind, "__struct_config__", None)
    if config and config.tag_field and config.tag_field not in value:
        raise msgspec.ValidationError(f"Object missing required field `{config.tag_field}`")
    return made


_CHOICE = re.compile(r"(?s)Invalid (?:enum )?value .*")


def _explained(value: Any, kind: Any, error: Exception) -> tuple[Steps, str]:
    """Where in the document it is, and what is wrong with what is allowed."""
    found = _located(value, kind, error)
    path = found.path
    wrong = path[-1] if found.is_key else typed.at(value, path)
    words = _worded(found.what, wrong, lambda: typed.described(kind, path, found.is_key))
    return path, _cut(printable(words))


def _located(value: Any, kind: Any, error: Exception) -> typed.Located:
    if isinstance(error, RecursionError):
        return typed.Located("nested too deeply", (), False)
    if isinstance(error, UnicodeEncodeError):
        return typed.Located("half a character in a key", (), False)
    assert isinstance(error, msgspec.ValidationError)
    return typed.located(value, error, lambda part: _converted(part, kind))


def _worded(what: str, found: Any, described: Callable[[], dict[str, Any]]) -> str:
    if missing := typed.MISSING.fullmatch(what):
        return f"the required key {missing[1]!r} is missing"
    if unknown := typed.UNKNOWN.fullmatch(what):
        known = ", ".join(described().get("properties", ()))
        return f"unknown key {unknown[1][:_SHOWN]!r}; known are: {known}"
    shown = _shown(found)
    if _CHOICE.fullmatch(what):
        return f"{shown} is not one of: {', '.join(map(_shown, _choices(described())))}"
    if what.startswith("Expected") and ", got" not in what:
        return f"{what[0].lower()}{what[1:]}, not {shown}"
    return what[0].lower() + what[1:]


def _choices(described: dict[str, Any]) -> list[Any]:
    if "enum" in described:
        return list(described["enum"])
    return [choice for one in described.get("anyOf", ()) for choice in _choices(one)]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return f"one of length {len(value)}"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
