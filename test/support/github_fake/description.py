# SPDX-License-Identifier: BSD-3-Clause
"""GitHub's own description of its API: which operation a request is, and what is wrong with it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import pytest
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from referencing import Registry, Specification

Json = Any
FILE = (
    Path(__file__).parents[2]
    / "ci"
    / "node/node_modules/@octokit/openapi/generated/api.github.com.json"
)
_METHODS = ("get", "post", "put", "patch", "delete")
_ROOT = "urn:github"

# operationId to the schema of a body that the description forbids and its own prose, or GitHub,
# allows.
_AMENDED_BODIES: dict[str, Json] = {
    # "You can also pass an array of labels directly"
    "issues/add-labels": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "issues/set-labels": {"type": "array", "items": {"type": "string"}},
}

# Labels' names may have slashes, encoded or not: robots call DELETE .../labels/do-not-merge/hold.
_SEVERAL_STEPS = {
    "issues/get-label": {"name"},
    "issues/update-label": {"name"},
    "issues/delete-label": {"name"},
    "issues/remove-label": {"name"},
}


def _unless_null(keyword: str) -> Any:
    """GitHub writes `nullable` beside alternatives that do not list null, and means it."""
    check = OAS30Validator.VALIDATORS[keyword]

    def checked(validator: Any, value: Json, instance: Json, schema: Json) -> Any:
        if not isinstance(instance, dict):  # it cannot have the property to discriminate by
            schema = {k: v for k, v in schema.items() if k != "discriminator"}
        if not (instance is None and schema.get("nullable")):
            yield from check(validator, value, instance, schema) or ()

    return checked


_Validator = extend(OAS30Validator, {k: _unless_null(k) for k in ("enum", "oneOf", "anyOf")})


@dataclass(frozen=True)
class Operation:
    """One verb on one path."""

    id: str
    method: str
    path: str
    raw: Json
    parameters: tuple[Json, ...]

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the path's parameters in a path that is still percent-encoded."""
        several = {p["name"] for p in self.parameters if p.get("x-multi-segment")}
        several |= _SEVERAL_STEPS.get(self.id, set())
        parts = re.split(r"\{(\w+)\}", self.path)
        for i in range(1, len(parts), 2):
            parts[i] = f"(?P<{parts[i]}>{'.+' if parts[i] in several else '[^/]+'})"
        parts[::2] = map(re.escape, parts[::2])
        return re.compile("".join(parts))

    @property
    def wildness(self) -> tuple[int, int]:
        """Least for the most literal path."""
        return self.path.count("{"), -len(re.sub(r"\{\w+\}", "", self.path))


class Description:
    """The whole document. Load it once: it has 800 paths."""

    def __init__(self, document: Json) -> None:
        self.document = document
        _amend(document["components"]["schemas"])
        resource = Specification.OPAQUE.create_resource(document)  # only pointers, no ids
        self._registry: Registry[Json] = Registry().with_resource(_ROOT, resource)
        self._right: set[tuple[str, int]] = set()
        self._validators: dict[str, Any] = {}
        self._groups: dict[tuple[str, str, str], list[Operation]] = {}
        self.operations: dict[str, Operation] = {}
        for path, item in document["paths"].items():
            for method in _METHODS:
                if method in item:
                    self._add(path, method, item[method])
        for group in self._groups.values():
            group.sort(key=lambda operation: operation.wildness)

    def _add(self, path: str, method: str, raw: Json) -> None:
        parameters = tuple(self.resolve(p) for p in raw.get("parameters", ()))
        operation = Operation(raw["operationId"], method.upper(), path, raw, parameters)
        self.operations[operation.id] = operation
        self._groups.setdefault(_group(operation.method, path), []).append(operation)

    def resolve(self, schema: Json) -> Json:
        """What a chain of references ends at."""
        while "$ref" in schema:
            found = self.document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                found = found[step.replace("~1", "/").replace("~0", "~")]
            schema = found
        return schema

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """The operation and its parameters; None if GitHub describes no such."""
        for operation in self._groups.get(_group(method, path), ()):
            found = operation.pattern.fullmatch(path)
            if found:
                return operation, {k: unquote(v) for k, v in found.groupdict().items()}
        return None

    def wrong_request(
        self, operation: Operation, path: Mapping[str, str], query: str, body: Json
    ) -> Iterator[str]:
        """What the description does not allow; a body of None is none."""
        yield from self._wrong_parameters(operation, path, query)
        described = operation.raw.get("requestBody")
        if described is None:
            if body is not None:
                yield "has a body, and none is described"
        elif body is None:
            if described.get("required"):
                yield "has no body"
        elif operation.id in _AMENDED_BODIES and isinstance(body, list):
            schema = _AMENDED_BODIES[operation.id]
            yield from _say(
                _Validator(schema, format_checker=oas30_format_checker).iter_errors(body)
            )
        else:
            yield from self._wrong_body(operation, described, body)

    def _wrong_body(self, operation: Operation, described: Json, body: Json) -> Iterator[str]:
        schema = described["content"]["application/json"]["schema"]
        at = _pointer("paths", operation.path, operation.method.lower(), "requestBody")
        at += _pointer("content", "application/json", "schema")
        yield from _say(self._validator(at).iter_errors(body))
        known = self.resolve(schema).get("properties")
        if known is not None and isinstance(body, dict):
            for name in sorted(body.keys() - known.keys()):
                yield f"body: {name!r} is not described"  # the schema is open, GitHub ignores it

    def _wrong_parameters(
        self, operation: Operation, path: Mapping[str, str], query: str
    ) -> Iterator[str]:
        given: dict[tuple[str, str], str] = {("path", k): v for k, v in path.items()}
        given |= {("query", k): v for k, v in parse_qsl(query, keep_blank_values=True)}
        described = {(p["in"], p["name"]): p for p in operation.parameters}
        for where, name in sorted(given.keys() - described.keys()):
            yield f"{where}: {name!r} is not described"
        for key, parameter in described.items():
            if key in given:
                schema = self.resolve(parameter["schema"])
                value = _typed(given[key], schema, self)
                for line in _say(self._inline(schema).iter_errors(value)):
                    yield f"{key[0]} {key[1]}: {line}"
            elif parameter.get("required"):
                yield f"{key[0]}: {key[1]!r} is missing"

    def wrong_response(self, operation: Operation, status: int, body: Json) -> Iterator[str]:
        """What a fake must not answer; a status that is not described is left alone."""
        responses = operation.raw["responses"]
        if str(status) not in responses:
            if status < 400:
                yield f"answers {status}, described are {', '.join(responses)}"
            return
        content = self.resolve(responses[str(status)]).get("content", {})
        if "application/json" not in content:
            if body is not None and status < 300:
                yield "answers with a body, and none is described"
            return
        at = _pointer("paths", operation.path, operation.method.lower(), "responses", str(status))
        reference = responses[str(status)].get("$ref")
        at = reference.removeprefix("#") if reference else at
        at += _pointer("content", "application/json", "schema")
        seen = (at, hash(json.dumps(body)))  # most answers come again and again
        if seen not in self._right:
            wrong = list(_say(self._validator(at).iter_errors(body)))
            yield from wrong
            if not wrong:
                self._right.add(seen)

    def wrong_shape(self, name: str, value: Json) -> list[str]:
        """Against one schema of the components."""
        return list(
            _say(self._validator(_pointer("components", "schemas", name)).iter_errors(value))
        )

    def _validator(self, pointer: str) -> Any:
        if pointer not in self._validators:
            self._validators[pointer] = _Validator(
                {"$ref": f"{_ROOT}#{quote(pointer)}"},
                registry=self._registry,
                format_checker=oas30_format_checker,
            )
        return self._validators[pointer]

    def _inline(self, schema: Json) -> Any:
        return _Validator(schema, registry=self._registry, format_checker=oas30_format_checker)


def _amend(schemas: Json) -> None:
    """What GitHub's own webhooks describe: a fork that was deleted is null, as may be a text."""
    for name in ("pull-request", "pull-request-simple"):
        labels = schemas[name]["properties"]["labels"]["items"]["properties"]
        labels["description"]["nullable"] = True
        head = schemas[name]["properties"]["head"]["properties"]
        head["repo"] = {"nullable": True, "oneOf": [head["repo"]]}
    run = schemas["workflow-run"]["properties"]
    run["head_repository"] = {"nullable": True, "oneOf": [run["head_repository"]]}


@functools.cache
def load() -> Description:
    """Once per process."""
    if not FILE.is_file():
        pytest.fail(f"{FILE} is missing: `make test` installs it")
    return Description(json.loads(FILE.read_bytes()))


def _group(method: str, path: str) -> tuple[str, str, str]:
    """So that a request is compared with dozens of paths, not hundreds."""
    steps = path.split("/")
    return method, steps[1], steps[4] if steps[1] == "repos" and len(steps) > 4 else ""


def _pointer(*steps: str) -> str:
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)


def _typed(text: str, schema: Json, description: Description) -> Json:
    """A parameter as the JSON it stands for; unchanged if it does not stand for any."""
    kinds = [
        schema,
        *map(description.resolve, [*schema.get("oneOf", ()), *schema.get("anyOf", ())]),
    ]
    for kind in (k.get("type") for k in kinds):
        if kind in ("integer", "number") and re.fullmatch(r"-?\d+", text):
            return int(text)
        if kind == "boolean" and text in ("true", "false"):
            return text == "true"
        if kind == "array":
            return text.split(",")
    return text


def _say(errors: Iterator[ValidationError]) -> Iterator[str]:
    for error in errors:
        error = best_match([error]) or error  # the nearest of several alternatives
        where = "/".join(map(str, error.absolute_path)) or "body"
        yield f"{where}: {_shortened(error.message)}"


def _shortened(text: str) -> str:
    """The value comes first, and what is wrong with it last."""
    return text if len(text) < 400 else f"{text[:150]} ... {text[-200:]}"
