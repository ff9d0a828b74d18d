# SPDX-License-Identifier: BSD-3-Clause
"""YAML without the liberties that PyYAML's reader takes: from users, or from an untrusted source.

No tag, no alias (with which a small file becomes a huge value), no key twice in one mapping, no key
that is not text, no number that JSON lacks, bounded depth. A date is text, as it is for editors and
for the JSON Schemas: the class of the document makes a date of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import yaml

from torch_conformance.spec.strict import MAX_DEPTH, Malformed
from torch_conformance.spec.typed import Steps

#: For the suite's own files. It needs libyaml, which not every build of PyYAML has, and is ten
#: times as fast. All other files are read by `loads`: its messages are better, and it bears any
#: depth.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotPlainYamlError(Malformed):
    """Text that is not plain YAML: what is wrong, and in which line, from 1, if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem, self.line = problem, line
        super().__init__(f"{f'line {line}: ' if line else ''}not plain YAML: {problem}")


class Yaml(NamedTuple):
    """A document and the lines of its parts."""

    value: Any
    node: yaml.Node | None

    def line(self, path: Steps) -> int:
        """The line, from 1, where the part at `path` begins, with its key; of what is missing, the
        line of the part in which it should be."""
        node, line = self.node, self.node.start_mark.line + 1 if self.node else 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line + 1
        return line


def loads(data: bytes) -> Yaml:
    """The document in these bytes; NotPlainYamlError says what is wrong, and in which line."""
    try:
        loader = _Loader(data.decode())
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotPlainYamlError(f"not UTF-8 at byte {error.start}", line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise NotPlainYamlError(problem, mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # A character that YAML does not have, an escape beyond the last character there is.
        raise NotPlainYamlError(" ".join(str(error).split())) from None
    except RecursionError:
        raise NotPlainYamlError(f"nested deeper than {MAX_DEPTH}") from None
    return Yaml(value, node)


class _Loader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _problem("anchors and aliases are not allowed", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _problem("tags are not allowed", event.start_mark)
        if self.depth == MAX_DEPTH:
            raise _problem(f"nested deeper than {MAX_DEPTH}", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ValueError, OverflowError):  # such as 0x_, or a number of 5000 digits
            text = f"{node.value[:40]!r} is not a number that can be read (quote it if it is text)"
            raise _problem(text, node.start_mark) from None
        if problem := _scalar_problem(value):
            raise _problem(problem, node.start_mark)
        return value

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise _problem("a key is not text (quote it)", key.start_mark)
            if name in seen:
                raise _problem(f"key {name[:80]!r} stands twice in one mapping", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


# What a word without quotes may be but text: no date, no merge key.
_KINDS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in resolvers if tag in _KINDS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _scalar_problem(value: Any) -> str | None:
    """Why JSON could not hold a value, or a reader of 64 bits not take it."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"half a character in {value[:40]!r}"
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a number of JSON"
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        return "a whole number must fit into 64 bits"
    return None


def _problem(text: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)


def _child(node: yaml.Node | None, step: str | int) -> tuple[Any, yaml.Node] | None:
    """A part of a mapping or sequence, and where it begins."""
    if isinstance(node, yaml.MappingNode):
        found = ((key.start_mark, value) for key, value in node.value if key.value == step)
        return next(found, None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None
