# SPDX-License-Identifier: BSD-3-Clause
"""YAML files that people write: typed classes, and messages with file, line and key.

The class of a document says what it may contain. What types cannot say, such as whether a text is a
regular expression, the class says in `problems`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from torch_conformance.spec import plain_yaml, strict, typed
from torch_conformance.spec.plain_yaml import Yaml
from torch_conformance.spec.typed import Steps

#: A message lists this many problems of a file.
MAX_PROBLEMS = 20
#: A file that people write is far below this; above it reading takes minutes.
MAX_BYTES = 4 << 20

Text = Annotated[str, Meta(min_length=1)]
"""A string that says something. Optional: `Text | UnsetType = UNSET`, so that null is refused."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document, or a map in one. A key that the class does not know is an error."""

    def problems(self) -> Iterator[tuple[Steps, str]]:
        """What is wrong beyond the types: the path, and what to say of the key there."""
        return iter(())


P = TypeVar("P", bound=Part)


class Problem(NamedTuple):
    """What is wrong with a document."""

    path: Steps
    text: str


class UserFile(NamedTuple):
    """A file as plain values; and where they are."""

    file: Path
    yaml: Yaml

    def where(self, path: Steps = ()) -> str:
        """File and line of a part."""
        return f"{self.file}:{self.yaml.line(path)}"


def read(file: Path, error: type[Exception]) -> UserFile:
    """The content of a file; raises `error` with file, line and problem."""
    try:
        return UserFile(file, plain_yaml.loads(strict.read(file, MAX_BYTES)))
    except plain_yaml.NotPlainYamlError as problem:
        raise error(f"{file}:{problem.line or 1}: {problem.problem}") from None
    except strict.Malformed as problem:
        raise error(f"{file}: {problem}") from None


def convert(value: Any, kind: type[P]) -> tuple[P | None, list[Problem]]:
    """The document that plain values are, or what is wrong with them, all but very many."""
    try:
        made = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = list(islice(_problems(value, kind), MAX_PROBLEMS + 1))
        return None, found or [_explained(value, kind, error)]
    others = islice(made.problems(), MAX_PROBLEMS + 1)
    found = [Problem(path, f"key {_spelled(path)} {text}") for path, text in others]
    return (None if found else made), found


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that was probably meant, or all."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known are: {', '.join(names)}"


def listed(problems: list[str]) -> str:
    """Problems for a message, one in a line; of very many the first."""
    more = ["... and more"] if len(problems) > MAX_PROBLEMS else []
    return "\n".join([*problems[:MAX_PROBLEMS], *more])


_LONGEST = 60  # characters of a value or a key
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = _LONGEST
_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a map",
    "string": "a string",
}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "of at least", "maximum": "at most"}


def _spelled(path: Steps) -> str:
    """A path in quotes, for a message of one line."""
    return repr(typed.spelled(tuple(s[:_LONGEST] if isinstance(s, str) else s for s in path)))


def _problems(value: Any, kind: type[Part]) -> Iterator[Problem]:
    """msgspec stops at the first problem: each key is looked at alone, then what is missing."""
    if not isinstance(value, dict):
        return
    for key in value:
        alone = {key: value[key]}
        try:
            msgspec.convert(alone, kind)
        except msgspec.ValidationError as found:
            problem = _explained(alone, kind, found)
            if problem.path[:1] == (key,):  # and not another one, which is missing
                yield problem
    for field in msgspec.structs.fields(kind):
        if field.required and field.encode_name not in value:
            yield Problem((field.encode_name,), f"key '{field.encode_name}' is missing")


def _explained(value: Any, kind: type[Part], error: msgspec.ValidationError) -> Problem:
    what, path, is_key = typed.located(value, error, lambda part: msgspec.convert(part, kind))
    described = typed.described(kind, path, is_key)
    if missing := typed.MISSING.fullmatch(what):
        path = (*path, missing[1])
        return Problem(path, f"key {_spelled(path)} is missing")
    if unknown := typed.UNKNOWN.fullmatch(what):
        path = (*path, unknown[1])
        known = nearest(unknown[1], described.get("properties", ()))
        return Problem(path, f"unknown key {_spelled(path)}{known}")
    return Problem(path, _unfit(value, path, is_key, _expected(described)))


def _unfit(value: Any, path: Steps, is_key: bool, expected: str) -> str:
    if is_key:
        name = str(path[-1])[:_LONGEST]
        return f"{name!r} in {_spelled(path[:-1])} must be {expected}"
    found = typed.at(value, path)
    if not path:
        return f"expected {expected}, not {_shown(found)}"
    subject = f"key {_spelled(path)}"
    if found is None:
        return f"{subject} has no value; it must be {expected}"
    if found == "":
        return f"{subject} must not be empty; it must be {expected}"
    return f"{subject} must be {expected}, not {_shown(found)}"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else _SHOWN.repr(value)


def _expected(described: dict[str, Any]) -> str:
    """In words what a JSON Schema allows."""
    if described.get("additionalProperties") is False:
        return f"a map with the keys {', '.join(described['properties'])}"
    if "title" in described:
        return str(described["title"])
    if "anyOf" in described:
        return " or ".join(map(_expected, described["anyOf"]))
    if "enum" in described:
        return f"one of {', '.join(described['enum'])}"
    if described.get("format") == "date":
        return "a date like 2027-01-31"
    words = _WORDS.get(described.get("type", ""), "something else")
    inner = described.get("items") or described.get("additionalProperties") or {}
    if inner.get("type") == "string":
        words += " of strings"
    bounds = (f"{word} {described[key]:.15g}" for key, word in _BOUNDS.items() if key in described)
    return " ".join(filter(None, (words, " and ".join(bounds))))
