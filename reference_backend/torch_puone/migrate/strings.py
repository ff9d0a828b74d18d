# SPDX-License-Identifier: BSD-3-Clause
"""Which strings of a program are devices, and which only look like it: by where they stand.

The rules know names that programs use (`device`, `map_location`), so they can be wrong: a string
that a rule does not know is left out of the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import libcst as cst

from . import table

#: "cuda", "cuda:1", and the beginnings from which programs put one together.
DEVICE = re.compile(r"cuda(:\d+)?")
PREFIX = re.compile(r"cuda:(\{\w*\}|%d|%s)?")
GROUP_BACKEND = re.compile(r"nccl|(cpu:\w+,)?cuda:nccl(,cpu:\w+)?")

_DEVICE_NAME = re.compile(
    r"device|map_loc|accelerator|(^|_)dev(_|$)|^(where|placement)$", re.IGNORECASE
)
_BACKEND_NAME = re.compile(r"backend", re.IGNORECASE)
#: Calls whose strings are no devices, whatever they are called on.
_OTHER_CALLS = frozenset(
    {
        *("print", "open", "join", "get", "pop", "getenv", "add_argument", "info", "debug"),
        *("warning", "warn", "error", "exception", "log", "replace", "split", "append", "add"),
        *("format", "isinstance", "setattr", "Path", "index", "count", "find", "remove", "title"),
        *("set_title", "write", "getattr", "hasattr", "skip", "skipif", "RuntimeError"),
        *("ValueError", "setdefault", "update", "strip", "add_scalar", "endswith", "Extension"),
    }
)


def with_index(index: str) -> str:
    """What a program writes for "cuda" + index, where the index reads as in an f-string."""
    return f'f"{{{table.TYPE}}}{index}"' if index else table.TYPE


Parent = Callable[[cst.CSTNode], cst.CSTNode | None]


def index_behind(node: cst.CSTNode, parent: Parent) -> str:
    """What a program appends to "cuda:", as `with_index` takes it."""
    above = parent(node)
    value: cst.CSTNode | None = None
    if isinstance(above, cst.BinaryOperation) and above.left is node:
        value = above.right
    elif isinstance(above, cst.Attribute):  # "cuda:{}".format(rank)
        above = parent(above)
    if isinstance(value, cst.Call) and _last_name(value.func) == "str":
        above, value = value, None
    if isinstance(above, cst.Call) and len(above.args) == 1:
        value = above.args[0].value
    return f":{{{cst.Module([]).code_for_node(value)}}}" if value is not None else ":{index}"


@dataclass(frozen=True)
class Use:
    """A string in a place that makes it a device (or a process group backend)."""

    #: The argument of this call that it is, if it is one.
    call: cst.Call | None = None
    argument: cst.Arg | None = None
    compared: bool = False
    #: The innermost conditional expression that chooses it, if one does.
    conditional: cst.IfExp | None = None
    #: Whether the string is what that expression has before its `if`.
    is_first_choice: bool = False


def device_use(node: cst.CSTNode, parent: Parent) -> Use | None:
    """How a string that reads like a device is used; None if nothing says that it is one."""
    return _use(node, parent, _DEVICE_NAME)


def backend_use(node: cst.CSTNode, parent: Parent) -> Use | None:
    """The same for the name of a process group backend."""
    return _use(node, parent, _BACKEND_NAME)


def _use(node: cst.CSTNode, parent: Parent, names: re.Pattern[str]) -> Use | None:
    conditional: cst.IfExp | None = None
    is_first = False
    child, above = node, parent(node)
    while isinstance(above, (cst.IfExp, cst.BooleanOperation, cst.BinaryOperation)):
        if isinstance(above, cst.IfExp):
            if child is above.test:
                return None
            if conditional is None:
                conditional, is_first = above, child is above.body
        child, above = above, parent(above)
    chosen = conditional is not None and _offers_cpu(conditional)
    found = Use(conditional=conditional, is_first_choice=is_first)
    if isinstance(above, cst.Arg):
        return _argument(found, above, parent, names, chosen)
    if isinstance(above, (cst.Comparison, cst.ComparisonTarget)):
        return _comparison(above, parent, names)
    if names is _DEVICE_NAME and _is_among_types(child, above, parent):
        return Use(compared=True)
    if chosen or names.search(_named_by(child, above, parent)):
        return found
    return None


def _argument(
    use: Use, argument: cst.Arg, parent: Parent, names: re.Pattern[str], chosen: bool
) -> Use | None:
    call = parent(argument)
    if not isinstance(call, cst.Call):
        return None
    found = replace(use, call=call, argument=argument)
    callee = _last_name(call.func)
    if argument.keyword is not None:
        keyword = argument.keyword.value
        if keyword in ("default", "choices"):
            options = " ".join(
                cst.Module([]).code_for_node(arg) for arg in call.args if not arg.keyword
            )
            return found if names.search(options) else None
        return found if chosen or names.search(keyword) else None
    if callee == "startswith":
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        named = receiver is not None and names.search(_last_name(receiver) or "")
        return Use(compared=True) if named or _is_type(receiver) else None
    if callee in _OTHER_CALLS:
        return None
    if names is _BACKEND_NAME:
        return found if callee in ("init_process_group", "new_group") else None
    return found


def _comparison(node: cst.CSTNode, parent: Parent, names: re.Pattern[str]) -> Use | None:
    comparison = parent(node) if isinstance(node, cst.ComparisonTarget) else node
    assert isinstance(comparison, cst.Comparison)
    sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
    for side in sides:
        if isinstance(side, cst.SimpleString):
            continue
        if _is_type(side) or names.search(cst.Module([]).code_for_node(side)):
            return Use(compared=True)
    return None


def _is_among_types(child: cst.CSTNode, above: cst.CSTNode | None, parent: Parent) -> bool:
    """`x.device.type in ("cuda", "cpu")`, `{"cuda": 1}[x.device.type]`, `case "cuda":`."""
    if isinstance(above, cst.DictElement) and child is above.key:
        mapping = parent(above)
        subscript = parent(mapping) if mapping else None
        if not isinstance(subscript, cst.Subscript) or subscript.value is not mapping:
            return False
        index = subscript.slice[0].slice
        return isinstance(index, cst.Index) and _is_type(index.value)
    if isinstance(above, cst.Element):
        above = parent(above)
        target = parent(above) if above else None
        return isinstance(target, cst.ComparisonTarget) and bool(
            _comparison(target, parent, _DEVICE_NAME)
        )
    while isinstance(above, (cst.MatchValue, cst.MatchOrElement, cst.MatchOr)):
        above = parent(above)
    match = parent(above) if isinstance(above, cst.MatchCase) else None
    return isinstance(match, cst.Match) and _is_type(match.subject)


def _is_type(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in ("type", "device_type")


def _named_by(child: cst.CSTNode, above: cst.CSTNode | None, parent: Parent) -> str:
    """The name that a value gets: of a variable, parameter, key, or of the function it leaves."""
    while isinstance(above, (cst.Element, cst.List, cst.Tuple, cst.Set)):
        child, above = above, parent(above)
    code = cst.Module([]).code_for_node
    if isinstance(above, cst.Assign):
        return " ".join(code(target.target) for target in above.targets)
    if isinstance(above, (cst.AnnAssign, cst.For, cst.NamedExpr)):
        return code(above.target)
    if isinstance(above, cst.Param):
        return above.name.value
    if isinstance(above, cst.DictElement) and child is above.value:
        return code(above.key)
    if isinstance(above, cst.Arg):
        call = parent(above)
        if not isinstance(call, cst.Call) or _last_name(call.func) != "add_argument":
            return ""
        return " ".join(code(arg) for arg in call.args if not arg.keyword)
    if isinstance(above, cst.Return):
        function: cst.CSTNode | None = above
        while function is not None and not isinstance(function, cst.FunctionDef):
            function = parent(function)
        return function.name.value if isinstance(function, cst.FunctionDef) else ""
    return ""


def _offers_cpu(node: cst.IfExp) -> bool:
    texts = [cst.Module([]).code_for_node(branch) for branch in (node.body, node.orelse)]
    return any(re.search(r"""["'](cpu|mps|xpu|gloo)["']""", text) for text in texts)


def _last_name(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else None
