# SPDX-License-Identifier: BSD-3-Clause
"""Vendor words inside generic Python, by its syntax tree: comments and docstrings never count."""

from __future__ import annotations

import ast
import re
import warnings
from itertools import accumulate

from torch_backend_ci.surface.coupling.rules import Hit, Rules


def hits(file: str, source: bytes, rules: Rules) -> list[Hit]:
    """The hits of one file; SyntaxError or ValueError if it is not Python."""
    auditor = _Auditor(file, rules, _worth_reading(source, rules))
    with warnings.catch_warnings():  # of the audited code, about itself
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    auditor.visit(tree)
    return list(dict.fromkeys(sorted(auditor.found, key=lambda hit: (hit.line, hit.rule))))


def _worth_reading(source: bytes, rules: Rules) -> list[int]:
    """For each line, how many up to it have a word of the vendor, or import something."""
    words = [word.encode() for word in (*rules.vendor.words, *map(str.lower, rules.vendor.exact))]
    wanted = re.compile(rb"import|" + b"|".join(map(re.escape, words)))
    lines = re.split(rb"\r\n|[\r\n]", source.lower())
    return list(accumulate((wanted.search(line) is not None for line in lines), initial=0))


class _Auditor(ast.NodeVisitor):
    """Walks a module, remembering what surrounds a node and what the names of torch are."""

    def __init__(self, file: str, rules: Rules, worth: list[int]) -> None:
        self.file = file
        self.rules = rules
        self.vendor = rules.vendor
        self.worth = worth
        self.found: list[Hit] = []
        self.scopes: list[str] = []
        self.parents: list[ast.AST] = []
        self.modules: dict[str, str] = {}  # local name -> what of torch it stands for

    def visit(self, node: ast.AST) -> None:
        """Visit what has a word of the vendor in its lines; most of a tree has none."""
        begin = getattr(node, "lineno", 0)
        if decorators := getattr(node, "decorator_list", None):
            begin = decorators[0].lineno
        if not begin or self.worth[getattr(node, "end_lineno", begin)] > self.worth[begin - 1]:
            super().visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Descend."""
        self.parents.append(node)
        super().generic_visit(node)
        self.parents.pop()

    def hit(self, rule: str, node: ast.AST, symbol: str) -> None:
        """Note a hit."""
        line = getattr(node, "end_lineno", 0) if rule in _AT_END else getattr(node, "lineno", 0)
        self.found.append(Hit(rule, self.file, line, symbol, ".".join(self.scopes)))

    # What surrounds a node

    def _scoped(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _scoped  # noqa: N815 - the names of ast

    # Imports

    def visit_Import(self, node: ast.Import) -> None:
        """`import torch.cuda`, `import torch as t`."""
        for alias in node.names:
            if alias.name.split(".")[0] == "torch":
                self.modules[alias.asname or "torch"] = alias.name if alias.asname else "torch"
            if self.vendor.names(alias.name):
                self.hit("py.import", node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from torch import cuda`, `from torch.cuda import Stream`."""
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            name = f"{origin}{'' if origin.endswith('.') else '.'}{alias.name}"
            if origin.split(".")[0] == "torch":
                self.modules[alias.asname or alias.name] = name
            if self.vendor.names(name):
                self.hit("py.import", node, name)

    # Names

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`torch.cuda.synchronize`, `x.is_cuda`."""
        dotted = self._dotted(node)
        if dotted and self.vendor.names(dotted):
            inside = any(dotted == m or dotted.startswith(m + ".") for m in self.vendor.modules)
            self.hit("py.module" if inside else "py.binding", node, dotted)
            return
        if node.attr == self.vendor.is_device:
            self.hit("py.is_device", node, f".{node.attr}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`x.cuda()`."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == self.vendor.method:
            self.hit("py.method", function, f".{function.attr}()")
        self.generic_visit(node)

    def _dotted(self, node: ast.AST) -> str | None:
        """The full name of `torch.a.b`; None for what does not begin at torch."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return None
        return ".".join([self.modules[node.id], *reversed(parts)])

    # Texts

    def visit_Constant(self, node: ast.Constant) -> None:
        """A text that is a device type, where it is used as one."""
        text = self._device(node)
        if text and (rule := self._use(node)):
            self.hit(rule, node, f'"{text}"')

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """`f"cuda:{index}"`."""
        if len(node.values) == 2 and (text := self._device(node.values[0])):
            self.hit("py.literal", node, f'"{text}"')
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.visit(value)

    def _device(self, node: ast.expr) -> str | None:
        """The device type that a literal is."""
        value = node.value if isinstance(node, ast.Constant) else None
        return value if isinstance(value, str) and self.vendor.device.fullmatch(value) else None

    def _use(self, node: ast.Constant) -> str | None:
        """The rule for a device type as text, by what it stands in; None where it is a word."""
        parent = self.parents[-1]
        if isinstance(parent, ast.Expr) or self._is_called_text():
            return None
        if isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
            return "py.device_list" if self._device_types(parent.elts) else None
        if isinstance(parent, ast.Dict):
            return self._use_in_table(node, parent)
        if isinstance(parent, ast.Call) and self._is_text_call(parent):
            return None
        return "py.literal"

    def _is_called_text(self) -> bool:
        """Whether what the text is assigned to or passed as says that it is not a device."""
        for parent in reversed(self.parents):
            if isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                return any(self.rules.text_names.search(ast.unparse(t)) for t in targets)
            if isinstance(parent, ast.keyword):
                return bool(parent.arg and self.rules.text_names.search(parent.arg))
            if isinstance(parent, (ast.stmt, ast.Call, ast.Compare)):
                return False
        return False

    def _use_in_table(self, node: ast.Constant, table: ast.Dict) -> str | None:
        if any(node is value for value in table.values):
            return "py.literal"
        return "py.device_table" if self._device_types(table.keys) else None

    def _device_types(self, nodes: list[ast.expr] | list[ast.expr | None]) -> bool:
        """Whether all texts among the nodes are device types."""
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        types = [text.partition(":")[0] for text in texts]
        return all(text in self.rules.device_types for text in types)

    def _is_text_call(self, call: ast.Call) -> bool:
        function = call.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        return name in self.rules.text_calls


_AT_END = frozenset({"py.is_device", "py.method"})
