# SPDX-License-Identifier: BSD-3-Clause
"""The text of an operator schema, `add.Tensor(Tensor self, *, Scalar alpha=1) -> Tensor`, read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# name(arguments) -> returns
_SCHEMA = re.compile(r"(?P<name>[\w:]+(?:\.\w+)?)\((?P<arguments>.*)\) *-> *(?P<returns>\S.*)")
_ALIAS = re.compile(r"\((?P<alias>[^()]*)\)")
# type and, for an argument always, name and default
_ITEM = re.compile(r"(?P<type>[^\s=]+)(?: +(?P<name>\w+)(?:=(?P<default>.+))?)?")
# a whole quoted text, or one mark that means something
_PUNCTUATION = re.compile(r"""\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[()\[\],"']""")


class SchemaError(ValueError):
    """The text is not a schema."""


@dataclass(frozen=True)
class Schema:
    """A schema; arguments and returns as surface/facts.py has them."""

    name: str  # "aten::add.Tensor"
    arguments: list[dict[str, Any]]
    returns: list[dict[str, Any]]


def parse(text: str) -> Schema:
    """The parts of a schema; aten is the namespace where none is written."""
    match = _SCHEMA.fullmatch(text.strip())
    if not match:
        raise SchemaError(f"not an operator schema: {text}")
    name, returns = match["name"], match["returns"]
    if returns.startswith("(") and returns.endswith(")"):
        returns = returns[1:-1]
    return Schema(
        name if "::" in name else f"aten::{name}",
        list(_arguments(match["arguments"])),
        [_item(item, "return") for item in _split(returns)],
    )


def _arguments(text: str) -> Iterator[dict[str, Any]]:
    kwarg_only = False
    for part in _split(text):
        if part == "*":
            kwarg_only = True
            continue
        argument = _item(part, "argument")
        if "name" not in argument:
            raise SchemaError(f"an argument without a name: {part}")
        yield argument | ({"kwarg_only": True} if kwarg_only else {})


def _item(text: str, what: str) -> dict[str, Any]:
    """One argument or return: type, alias set, name, default."""
    alias = _ALIAS.search(text.partition("=")[0])
    plain = text if alias is None else text[: alias.start()] + text[alias.end() :]
    match = _ITEM.fullmatch(plain)
    if not match:
        raise SchemaError(f"not an {what} of a schema: {text}")
    item = {key: value for key, value in match.groupdict().items() if value is not None}
    if alias is not None:
        item["alias"] = alias["alias"].replace(" ", "")
    return item


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand outside brackets and quotes."""
    depth, start = 0, 0
    for token in _PUNCTUATION.finditer(text):
        mark = token[0]
        if mark in "\"'":
            raise SchemaError(f"a quote that does not end: {text}")
        depth += (mark in "([") - (mark in ")]")
        if mark == "," and depth == 0:
            yield text[start : token.start()].strip()
            start = token.end()
    if depth:
        raise SchemaError(f"unbalanced brackets: {text}")
    if rest := text[start:].strip():
        yield rest
