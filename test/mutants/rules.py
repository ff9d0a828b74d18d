# SPDX-License-Identifier: BSD-3-Clause
"""What may stand in the place of a piece of source: the rules of rules.yaml, applied to a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from mutants.grammar import Source, before_message
from tree_sitter import Node

_RULES: dict[str, Any] = yaml.load(
    (Path(__file__).parent / "rules.yaml").read_text(), yaml.CSafeLoader
)
_GUARDS = re.compile(_RULES["guards"])

#: Where a mutant is written: in the place of an expression, or of one that is a condition, whatever
#: its type; around a statement, which it skips; in front of a statement.
EXPRESSION, CONDITION, SKIPPED, BEFORE = "expression", "condition", "skipped", "before"


@dataclass(frozen=True)
class Mutant:
    """One edit of one file, in bytes from `start` to `end`."""

    file: str
    line: int
    start: int
    end: int
    rule: str
    original: str
    instead: str
    form: str = EXPRESSION

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.original, self.instead))
        return f"{self.place}: {self.rule}: `{before}` -> `{after}`"


Found = Iterator[tuple[Node, str, str, str]]  # node, rule, text instead, form


def mutants(source: Source) -> Iterator[Mutant]:
    """All that the rules find in a file and that changes it, in the order of the text."""
    for node in source.nodes():
        for rule in _BY_TYPE.get(node.type, ()):
            for where, name, instead, form in rule(source, node):
                original = source.text(where)
                if original == instead:
                    continue
                yield Mutant(
                    source.name,
                    where.start_point.row + 1,
                    where.start_byte,
                    where.end_byte,
                    name,
                    original,
                    instead,
                    form,
                )


def _binary(source: Source, node: Node) -> Found:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return
    sides, word = (source.text(left), source.text(right)), source.text(operator)
    logical = word in ("&&", "||", "and", "or")
    form = CONDITION if logical else EXPRESSION
    for other in _RULES["binary"].get(word, ()):
        yield node, "operator", f"{sides[0]} {other} {sides[1]}", form
    if word in _RULES["one_sided"]:
        for side in sides[: 1 + logical]:
            yield node, "one side", side, form


def _comparison(source: Source, node: Node) -> Found:
    """Python's comparisons, of two operands."""
    operators = node.children_by_field_name("operators")
    if len(operators) == 1 and node.named_child_count == 2:
        sides = source.text(node.named_children[0]), source.text(node.named_children[1])
        for other in _RULES["binary"].get(source.text(operators[0]), ()):
            yield node, "operator", f"{sides[0]} {other} {sides[1]}", EXPRESSION


def _unary(source: Source, node: Node) -> Found:
    argument = node.child_by_field_name("argument")
    word = source.text(node.children[0])
    if argument is not None and word in ("!", "-", "~", "not"):
        form = CONDITION if word in ("!", "not") else EXPRESSION
        yield node, f"lost {word}", source.text(argument), form


def _number(source: Source, node: Node) -> Found:
    text = source.text(node)
    if whole := re.fullmatch(r"(\d+)[uUlLzZ]*", text):
        yield node, "constant", f"({text} + 1)", EXPRESSION
        if int(whole[1]) > 0:
            yield node, "constant", f"({text} - 1)", EXPRESSION
    elif re.fullmatch(r"[\d.]+(e[+-]?\d+)?[fF]?", text):
        suffix = "f" if text[-1] in "fF" else ""
        yield node, "constant", f"({text} * 1.01{suffix})", EXPRESSION
        yield node, "constant", f"({text} + 1)", EXPRESSION


def _truth(source: Source, node: Node) -> Found:
    words = ("True", "False") if source.is_python else ("true", "false")
    yield node, "constant", words[source.text(node) == words[0]], EXPRESSION


def _none(source: Source, node: Node) -> Found:
    yield node, "constant", "0", EXPRESSION


def _condition(source: Source, node: Node) -> Found:
    condition = node.child_by_field_name("condition")
    if condition is None and node.type == "conditional_expression" and source.is_python:
        condition = node.named_children[1]
    if condition is not None and condition.type == "condition_clause":
        if condition.child_by_field_name("initializer"):
            return
        condition = condition.child_by_field_name("value")
    if condition is None or condition.type == "declaration":
        return
    words = ("True", "False") if source.is_python else ("true", "false")
    endless = node.type in ("while_statement", "for_statement", "do_statement")
    for word in words[endless:]:
        yield condition, "condition", word, CONDITION


def _statement(source: Source, node: Node) -> Found:
    inner = node.named_children[0] if node.named_child_count else None
    if inner is None or source.text(inner).startswith(("TORCH_LIBRARY", "static_assert")):
        return
    kinds = ("call_expression", "assignment_expression", "update_expression", "call")
    augmented = ("assignment", "augmented_assignment")
    if inner.type in kinds or (inner.type in augmented and source.is_python):
        if inner.type == "assignment" and inner.child_by_field_name("right") is None:
            return
        yield node, "lost statement", "", SKIPPED


def _assignment(source: Source, node: Node) -> Found:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = next((c for c in node.children if not c.is_named and c.type.endswith("=")), None)
    if left is None or right is None or operator is None or source.is_python:
        return
    for other in _RULES["assignment"].get(source.text(operator), ()):
        yield node, "operator", f"{source.text(left)} {other} {source.text(right)}", EXPRESSION


# What an empty value is anyway, or what has a rule of its own.
_EMPTY = ("true", "false", "0", "nullptr", "std::nullopt")


def _is_deduced(node: Node) -> bool:
    """Whether the return type is that of what is returned, as in a lambda; `{}` has none."""
    around = node.parent
    while around is not None and around.type not in ("lambda_expression", "function_definition"):
        around = around.parent
    if around is None or around.type == "function_definition":
        return False
    declarator = around.child_by_field_name("declarator")
    return declarator is None or all(
        child.type != "trailing_return_type" for child in declarator.children
    )


def _return(source: Source, node: Node) -> Found:
    if not node.named_child_count:
        yield node, "lost return", "", SKIPPED
    elif source.is_python:
        yield node, "returned value", "return None", BEFORE
    elif source.text(node.named_children[0]) not in _EMPTY and not _is_deduced(node):
        yield node, "returned value", "return {};", BEFORE


def _jump(source: Source, node: Node) -> Found:
    yield node, "lost jump", "", SKIPPED


def _call(source: Source, node: Node) -> Found:
    function, listed = (node.child_by_field_name(name) for name in ("function", "arguments"))
    if function is None or listed is None or before_message(node) is not None:
        return
    arguments = [argument for argument in listed.named_children if argument.type != "comment"]
    named = source.text(function)
    for one, other in pairwise(arguments):
        first, second = source.text(one), source.text(other)
        if first == second or "keyword_argument" in (one.type, other.type):
            continue
        between = source.data[one.end_byte : other.start_byte].decode()
        begin = source.data[node.start_byte : one.start_byte].decode()
        end = source.data[other.end_byte : node.end_byte].decode()
        yield node, "swapped arguments", f"{begin}{second}{between}{first}{end}", EXPRESSION
    plain = re.split(r"::|\.|->", named.partition("<")[0])[-1]
    for other in _RULES["calls"].get(plain, ()):
        if other != "=":
            at = named.rindex(plain, 0, len(named.partition("<")[0]))
            renamed = named[:at] + other + named[at + len(plain) :]
            yield node, "call", renamed + source.text(listed), EXPRESSION
        elif arguments:
            yield node, "call", source.text(arguments[0]), EXPRESSION
        elif function.type in ("field_expression", "attribute"):
            yield node, "call", source.text(function.named_children[0]), EXPRESSION
    if plain == "index" and not arguments and not source.is_python:
        yield node, "wrong device", f"static_cast<decltype({source.text(node)})>(0)", EXPRESSION


def _subscript(source: Source, node: Node) -> Found:
    indices = node.child_by_field_name("indices")
    index = indices.named_children if indices is not None else []
    if len(index) == 1 and source.text(index[0]) != "0":
        yield index[0], "index", "0", EXPRESSION


def _name(source: Source, node: Node) -> Found:
    text = source.text(node)
    prefix, colons, last = text.rpartition("::")
    for other in _RULES["names"].get(last, ()):
        if colons or last.startswith("k"):
            yield node, "name", f"{prefix}{colons}{other}", EXPRESSION


def _guard(source: Source, node: Node) -> Found:
    """`Guard guard(x);` becomes an empty std::optional of it."""
    kind = node.child_by_field_name("type")
    declared = node.child_by_field_name("declarator")
    if kind is None or declared is None or not _GUARDS.search(source.text(kind)):
        return
    if declared.type == "init_declarator":
        name, value = (declared.child_by_field_name(part) for part in ("declarator", "value"))
    elif declared.type == "function_declarator":  # read as one: Guard guard(x)
        name, value = (declared.child_by_field_name(part) for part in ("declarator", "parameters"))
    else:
        return
    if name is None or value is None or value.type not in ("argument_list", "parameter_list"):
        return
    made = f"{source.text(kind)}{source.text(value)}"
    text = f"std::optional<decltype({made})> {source.text(name)}; "
    text += f"if (@) {source.text(name)}.emplace{source.text(value)};"
    yield node, "lost guard", text, SKIPPED


Rule = Callable[[Source, Node], Found]
_BY_TYPE: dict[str, tuple[Rule, ...]] = {
    "binary_expression": (_binary,),
    "binary_operator": (_binary,),
    "boolean_operator": (_binary,),
    "comparison_operator": (_comparison,),
    "unary_expression": (_unary,),
    "unary_operator": (_unary,),
    "not_operator": (_unary,),
    "number_literal": (_number,),
    "integer": (_number,),
    "float": (_number,),
    "true": (_truth,),
    "false": (_truth,),
    "none": (_none,),
    "if_statement": (_condition,),
    "elif_clause": (_condition,),
    "while_statement": (_condition,),
    "do_statement": (_condition,),
    "conditional_expression": (_condition,),
    "expression_statement": (_statement,),
    "assignment_expression": (_assignment,),
    "return_statement": (_return,),
    "break_statement": (_jump,),
    "continue_statement": (_jump,),
    "call_expression": (_call,),
    "call": (_call,),
    "subscript_expression": (_subscript,),
    "identifier": (_name,),
    "qualified_identifier": (_name,),
    "declaration": (_guard,),
}
