# SPDX-License-Identifier: BSD-3-Clause
"""Answers with everything that GitHub's description requires of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from github_fake.description import Description, Json

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "uri": "https://unused.invalid/",
    "email": "nobody@unused.invalid",
}


class Shapes:
    """Makes values of the description's schemas."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._least: dict[str, dict[str, Any]] = {}

    def shape(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """`given`, and the least value of whatever else schema `name` requires."""
        return self._complete(self._description.document["components"]["schemas"][name], given)

    def _complete(self, schema: Json, given: Any) -> Any:
        schema = self._chosen(schema, given)
        if isinstance(given, list):
            items = schema.get("items", {})
            return [self._complete(items, value) for value in given]
        if not isinstance(given, Mapping):
            return given
        properties, required = self._members(schema)
        whole = {name: self._complete(properties.get(name, {}), v) for name, v in given.items()}
        for name in required:
            if name not in whole:
                whole[name] = self._value(properties[name])
        return whole

    def _chosen(self, schema: Json, given: Any) -> Json:
        """The alternative that a value of this kind is meant for."""
        schema = self._description.resolve(schema)
        kind = "object" if isinstance(given, Mapping) else "array"
        for alternative in [*schema.get("oneOf", ()), *schema.get("anyOf", ())]:
            alternative = self._description.resolve(alternative)
            if alternative.get("type") == kind:
                return alternative
        return schema

    def _members(self, schema: Json) -> tuple[dict[str, Json], list[str]]:
        properties, required = dict(schema.get("properties", {})), list(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            more, needed = self._members(self._description.resolve(part))
            properties |= more
            required += needed
        return properties, required

    def _value(self, schema: Json) -> Any:
        schema = self._description.resolve(schema)
        if schema.get("nullable") or not schema:
            return None
        if "enum" in schema:
            return schema["enum"][0]
        for alternatives in ("oneOf", "anyOf"):
            if alternatives in schema:
                return self._value(schema[alternatives][0])
        kind = schema.get("type", "object")
        if kind == "object":
            return self._complete(schema, {})
        if kind == "string":
            return _FORMATS.get(schema.get("format", ""), "x" * schema.get("minLength", 0))
        return {"integer": schema.get("minimum", 0), "number": 0, "boolean": False, "array": []}[
            kind
        ]
