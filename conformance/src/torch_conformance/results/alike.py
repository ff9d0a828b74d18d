# SPDX-License-Identifier: BSD-3-Clause
"""What a JSON Schema can tell of a value, so that of many values alike only one is validated.

A report has thousands of records, and they differ in texts and numbers of which the schema says
next to nothing. Two values of the same *kind* are both valid or both not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

Kind = Callable[[Any], Hashable]
Schema = Mapping[str, Any]

_SCALAR = {"type", "description", "minimum", "pattern"}
_ARRAY = {"type", "description", "minItems", "items"}
_OBJECT = {"type", "description", "properties", "required", "additionalProperties", "allOf"}
_INNER = ("if", "then", "else", "not", "allOf", "anyOf", "oneOf")
_CONDITION = {"description", "properties", "required", *_INNER}


def kind_of(schema: Schema) -> Kind:
    """A function that tells the kind of a value; `schema` is one without references."""
    if "properties" in schema and schema.keys() <= _OBJECT:
        return _of_object(schema)
    if "items" in schema and schema.keys() <= _ARRAY:
        return _of_array(kind_of(schema["items"]), schema.get("minItems", 0))
    if schema.keys() <= _SCALAR:
        return _of_scalar(schema.get("minimum"), schema.get("pattern"))
    return _exactly


def _exactly(value: Any) -> Hashable:
    """All there is to tell. 1, 1.0 and true are equal in Python, and not to a schema."""
    return type(value), value if isinstance(value, str) else repr(value)


def _of_scalar(minimum: float | None, pattern: str | None) -> Kind:
    matches = re.compile(pattern or "").search

    def kind(value: Any) -> Hashable:
        if isinstance(value, str):
            return str, pattern is None or matches(value) is not None
        if isinstance(value, int | float):
            return type(value), minimum is None or value >= minimum
        return (type(value),)

    return kind


def _of_array(of_item: Kind, least: int) -> Kind:
    def kind(value: Any) -> Hashable:
        if not isinstance(value, list):
            return (type(value),)
        return list, len(value) >= least, frozenset(map(of_item, value))

    return kind


def _of_object(schema: Schema) -> Kind:
    conditions = schema.get("allOf", [])
    if not all(map(_is_readable, conditions)):
        return _exactly
    kinds = {name: kind_of(inner) for name, inner in schema["properties"].items()}
    kinds |= dict.fromkeys((name for one in conditions for name in _looked_at(one)), _exactly)

    def kind(value: Any) -> Hashable:
        if not isinstance(value, dict):
            return (type(value),)
        return frozenset(
            [(name, kinds.get(name, _exactly)(inner)) for name, inner in value.items()]
        )

    return kind


def _is_readable(condition: Schema) -> bool:
    """Whether a condition looks at nothing but names and values of properties."""
    return condition.keys() <= _CONDITION and all(map(_is_readable, _inner(condition)))


def _looked_at(condition: Schema) -> Iterator[str]:
    yield from condition.get("properties", ())
    for inner in _inner(condition):
        yield from _looked_at(inner)


def _inner(condition: Schema) -> Iterator[Schema]:
    for keyword in _INNER:
        inner = condition.get(keyword, [])
        yield from inner if isinstance(inner, list) else [inner]
