# SPDX-License-Identifier: BSD-3-Clause
"""Sources as syntax trees, C++ and Python alike: by tree-sitter, which needs no headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import tree_sitter_cpp
import tree_sitter_python
from tree_sitter import Language, Node, Parser

_PARSERS = {
    ".py": Parser(Language(tree_sitter_python.language())),
    ".cpp": Parser(Language(tree_sitter_cpp.language())),
    ".h": Parser(Language(tree_sitter_cpp.language())),
}

# Macros that are attributes, which the grammar does not know; blanks in their place move nothing.
_ATTRIBUTES = re.compile(rb"\b(PUONE_(FN|DEVICE|API|EXPORT|HOST_DEVICE|INLINE|NOINLINE))\b")


class Source:
    """A file and its tree."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.is_python = name.endswith(".py")
        parsed = _ATTRIBUTES.sub(lambda found: b" " * len(found[0]), data)
        self.root = _PARSERS[Path(name).suffix].parse(parsed).root_node

    def text(self, node: Node) -> str:
        """What stands in the file."""
        return self.data[node.start_byte : node.end_byte].decode()

    def nodes(self) -> Iterator[Node]:
        """Every node that is inside a function and not in what only the compiler evaluates."""
        yield from _below(self.root, False)


# What is evaluated when the code is compiled, where no switch can be; or not evaluated at all.
_CONSTANT = {
    *("template_argument_list", "template_parameter_list", "static_assert_declaration"),
    *("enumerator_list", "preproc_include", "preproc_def", "preproc_function_def", "preproc_if"),
    *("preproc_ifdef", "preproc_call", "sizeof_expression", "decltype", "noexcept"),
    *("requires_clause", "concept_definition", "attribute_declaration", "alias_declaration"),
    *("array_declarator", "bitfield_clause", "type_descriptor", "lambda_capture_specifier"),
    *("string_literal", "string", "comment", "ERROR", "linkage_specification_string"),
    *("using_declaration", "import_statement", "import_from_statement", "type", "decorator"),
    *("function_declarator", "match_statement", "string_content", "alignas_qualifier"),
}
_FUNCTIONS = {"function_definition", "lambda_expression", "lambda"}


# Macros of which the arguments, but for the first, become the body of a function (functors.h).
_BODIES = {b"PUONE_UNARY", b"PUONE_BINARY"}
# What raises or warns, and the number of its arguments before the message. No requirement is about
# the words of a message.
_MESSAGES = {
    **dict.fromkeys((b"TORCH_WARN", b"TORCH_WARN_ONCE"), 0),
    **dict.fromkeys((b"TORCH_CHECK", b"TORCH_INTERNAL_ASSERT", b"TORCH_SYM_CHECK", b"fail"), 1),
    **{b"TORCH_CHECK_" + kind: 1 for kind in (b"INDEX", b"NOT_IMPLEMENTED", b"TYPE", b"VALUE")},
    **dict.fromkeys((b"std::invalid_argument", b"py::value_error", b"py::buffer_error"), 0),
    b"C10_THROW_ERROR": 1,
    b"TORCH_CHECK_WITH": 2,
}


def before_message(call: Node) -> int | None:
    """Of a call that raises or warns: how many of its arguments come before the message."""
    called = call.child_by_field_name("function")
    return _MESSAGES.get(called.text or b"") if called is not None else None


def _below(node: Node, inside: bool) -> Iterator[Node]:
    for child in node.children:
        if child.type in _CONSTANT or _is_constant(child) or _is_message(node, child):
            continue
        within = inside or _is_body(node, child)
        if within and child.is_named:
            yield child
        yield from _below(child, within)


def _is_body(node: Node, child: Node) -> bool:
    if node.type in _FUNCTIONS:
        return child == node.child_by_field_name("body")
    if node.type == "argument_list" and node.parent is not None:
        called = node.parent.child_by_field_name("function")
        return called is not None and called.text in _BODIES and child != node.named_children[0]
    return False


def _is_message(node: Node, child: Node) -> bool:
    if node.type != "argument_list" or node.parent is None or not child.is_named:
        return False
    before = before_message(node.parent)
    return before is not None and child not in node.named_children[:before]


def _is_constant(node: Node) -> bool:
    if node.type == "declaration":
        return any(child.type == "type_qualifier" and child.text == b"constexpr"
                   for child in node.children)  # fmt: skip
    if node.type == "if_statement":
        return any(child.type == "constexpr" for child in node.children)
    if node.type == "case_statement":
        return False
    parent = node.parent
    return (
        parent is not None
        and parent.type == "case_statement"
        and parent.child_by_field_name("value") == node
    )
