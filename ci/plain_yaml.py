# SPDX-License-Identifier: BSD-3-Clause
"""YAML without the liberties that PyYAML's reader takes, from a source that is not trusted.

No tag, no alias (with which a small file becomes a huge value), no key twice in one mapping and no
key that is not text.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import yaml

from torch_conformance.spec.strict import MAX_DEPTH, Malformed

Path = tuple[str | int, ...]


class Yaml(NamedTuple):
    """A document and the lines of its parts."""

    value: Any
    node: yaml.Node | None

    def line(self, path: Path) -> int:
        """The line, from 1, of the part that `path` leads to; of the last part that is there."""
        node, line = self.node, 1
        for step in path:
            if node is None:
                break
            line = node.start_mark.line + 1
            node = _child(node, step)
        return node.start_mark.line + 1 if node else line


def loads(data: bytes) -> Yaml:
    """The document in these bytes; Malformed says what is wrong, and in which line."""
    try:
        loader = _Loader(data.decode())
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise Malformed(f"{line}not plain YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise Malformed(f"not plain YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Malformed(f"nested deeper than {MAX_DEPTH}") from None
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


def _problem(text: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step] if step < len(node.value) else None
    return None
