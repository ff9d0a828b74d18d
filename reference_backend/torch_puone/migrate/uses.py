# SPDX-License-Identifier: BSD-3-Clause
"""Find every use of CUDA in a source file, without running it: names by imports and scopes."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence
from typing import Any

import libcst as cst
from libcst import metadata as meta

from . import strings, table
from .places import Edit, Place, Position

#: What each file with a use of CUDA has somewhere.
_MENTIONED = re.compile("cuda|cudnn|nccl|NCCL|CUDA|CUBLAS")
_TYPED = f"write {table.TYPE}"
_CODE = cst.Module([]).code_for_node


def uses(source: bytes) -> tuple[str, list[Place]]:
    """The text of a source file, and its uses of CUDA in their order.

    SyntaxError if it is not Python, with line and column.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        module = cst.parse_module(text)
    except UnicodeDecodeError as error:
        raise SyntaxError(str(error)) from error
    except cst.ParserSyntaxError as error:
        _explain(source)
        where = ("", error.raw_line, error.raw_column + 1, None)
        raise SyntaxError(error.message, where) from error
    if not _MENTIONED.search(text):
        return text, []  # spares resolving its names
    wrapper = meta.MetadataWrapper(module, unsafe_skip_copy=True)
    finder = _Finder(_own_methods(module))
    wrapper.visit(finder)
    return text, sorted(finder.places, key=lambda place: (place.start, place.what))


def _explain(source: bytes) -> None:
    """Raise Python's own SyntaxError, which says more, if this Python finds one."""
    try:
        compile(source, "", "exec", dont_inherit=True)
    except ValueError as error:  # a null byte
        raise SyntaxError(str(error)) from error


def _own_methods(module: cst.Module) -> set[str]:
    """The functions that a file defines: its `.cuda()` may be its own."""

    class Functions(cst.CSTVisitor):
        def __init__(self) -> None:
            self.names: set[str] = set()

        def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802 - libcst's name
            self.names.add(node.name.value)

    found = Functions()
    module.visit(found)
    return found.names


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (
        meta.PositionProvider,
        meta.ParentNodeProvider,
        meta.QualifiedNameProvider,
        meta.ScopeProvider,
    )

    def __init__(self, own: set[str]) -> None:
        super().__init__()
        self.places: list[Place] = []
        self._own = own
        self._done: set[cst.CSTNode] = set()

    # Names

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802 - libcst's name
        return self._name(node)

    def visit_Name(self, node: cst.Name) -> bool:  # noqa: N802 - libcst's name
        parent = self._parent(node)
        if isinstance(parent, (cst.Param, cst.Arg)) and getattr(parent, "keyword", None) is node:
            return False
        return self._name(node)

    def _name(self, node: cst.Attribute | cst.Name) -> bool:
        """A name of CUDA; whether to look at its parts, too."""
        name = self._imported(node)
        if name is not None and table.concerns(name):
            if node not in self._done:
                self._known(node, name)
            return False
        if isinstance(node, cst.Attribute) and node.attr.value == "is_cuda":
            self._add(node.attr, ".is_cuda", f"write .device.type == {table.TYPE}")
        return True

    def _known(self, node: cst.Attribute | cst.Name, name: str) -> None:
        call = self._parent(node)
        if not (isinstance(call, cst.Call) and call.func is node):
            call = None
        edits = self._name_edits(node, name, table.find(name), call)
        self._add(node, name, table.advice(name), edits)

    def _name_edits(
        self, node: cst.Attribute | cst.Name, name: str, row: table.Row | None, call: Any
    ) -> tuple[Edit, ...]:
        if row is None or not self._torch_is_bound(node) or not self._is_read(node):
            return ()
        replacement = row.replacement
        if not row.drop_in or not replacement or replacement.startswith(table.MODULE):
            return ()  # the module of a machine without an accelerator is another one
        if call is not None and any(arg.keyword or arg.star for arg in call.args):
            return ()  # parameters have other names
        return (self._over(node, replacement),)

    # Imports

    def visit_Import(self, node: cst.Import) -> bool:  # noqa: N802 - libcst's name
        for alias in node.names:
            name = _CODE(alias.name)
            if table.concerns(name):
                self._imports(alias, name)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:  # noqa: N802 - libcst's name
        if node.module is None or node.relative:
            return False
        module = _CODE(node.module)
        if isinstance(node.names, cst.ImportStar):
            if table.concerns(module):
                self._add(node, f"from {module} import *", "import the names that are used")
            return False
        for alias in node.names:
            name = f"{module}.{_CODE(alias.name)}"
            if table.concerns(name):
                self._imports(alias, name)
        return False

    def _imports(self, node: cst.ImportAlias, name: str) -> None:
        self._add(node, f"import of {name}", table.advice(name))

    # Calls

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - libcst's name
        function = node.func
        self._profile(node)
        if not isinstance(function, cst.Attribute):
            self._getattr(node)
            return
        name = self._imported(function)
        if function.attr.value == "cuda" and (name is None or not table.concerns(name)):
            self._moved(node, function)

    def _profile(self, node: cst.Call) -> None:
        """`torch.autograd.profiler.profile(use_cuda=True)`."""
        if self._imported(node.func) != "torch.autograd.profiler.profile":
            return
        for arg in node.args:
            if arg.keyword and arg.keyword.value == "use_cuda" and _CODE(arg.value) == "True":
                self._add(arg, "profile(use_cuda=True)", f"write use_device={table.TYPE}")

    def _moved(self, node: cst.Call, function: cst.Attribute) -> None:
        """`.cuda()` of a tensor or module."""
        edits: tuple[Edit, ...] = ()
        device = [arg for arg in node.args if arg.keyword is None or arg.keyword.value == "device"]
        rest = [arg for arg in node.args if arg not in device]
        plain = all(arg.keyword and arg.keyword.value == "non_blocking" for arg in rest)
        if plain and "cuda" not in self._own and not any(arg.star for arg in node.args):
            edits = self._moved_edits(node, function, device, rest)
        self._add(function.attr, ".cuda()", f"write .to({table.DEVICE})", edits)

    def _moved_edits(
        self,
        node: cst.Call,
        function: cst.Attribute,
        device: Sequence[cst.Arg],
        rest: Sequence[cst.Arg],
    ) -> tuple[Edit, ...]:
        method = self._over(function.attr, "to")
        if len(device) == 1 and node.args[0] is device[0] and device[0].keyword is None:
            # `.to(0)` is device 0 of the accelerator; what a variable holds could be None.
            return (method,) if isinstance(device[0].value, cst.Integer) else ()
        if device or not self._torch_is_bound(node):
            return ()
        start = self._start(rest[0]) if rest else self._before_close(node)
        return (method, Edit(start, start, f"{table.DEVICE}{', ' if rest else ''}"))

    def _getattr(self, node: cst.Call) -> None:
        """`getattr(torch.cuda, "synchronize")`."""
        if not isinstance(node.func, cst.Name) or node.func.value not in ("getattr", "hasattr"):
            return
        if len(node.args) < 2 or not isinstance(node.args[1].value, cst.SimpleString):
            return
        owner, part = node.args[0].value, node.args[1].value.evaluated_value
        start = self._imported(owner)
        name = f"{start}.{part!s}"
        if start is not None and isinstance(part, str) and table.concerns(name):
            self._done.add(owner)
            self._add(node, name, table.advice(name))

    # Strings

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802 - libcst's name
        text = node.evaluated_value
        if not isinstance(text, str) or "f" in node.prefix:
            return
        if isinstance(self._parent(node), (cst.Expr, cst.ConcatenatedString)):
            return
        if strings.DEVICE.fullmatch(text):
            self._device(node, text)
        elif strings.PREFIX.fullmatch(text):
            self._add(node, 'the device "cuda:..."', _TYPED)
        elif strings.GROUP_BACKEND.fullmatch(text):
            if strings.backend_use(node, self._parent):
                self._add(node, 'the process group backend "nccl"', _GROUP_BACKEND)
        elif text in table.ENVIRONMENT:
            self._add(node, text, table.ENVIRONMENT[text])
        elif text.startswith("torch.cuda.") and (row := table.find(text)):
            self._add(node, f'"{text}"', row.advice)

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:  # noqa: N802 - libcst's name
        first = next(iter(node.parts), None)
        text = first.value if isinstance(first, cst.FormattedStringText) else ""
        if strings.PREFIX.fullmatch(text) and len(node.parts) == 2:
            self._add(node, 'the device "cuda:..."', _TYPED)
        return True

    def _device(self, node: cst.SimpleString, text: str) -> None:
        use = strings.device_use(node, self._parent)
        if use is None:
            return
        what = f'comparison with "{text}"' if use.compared else f'the device "{text}"'
        self._add(node, what, _TYPED, self._device_edits(node, text, use))

    def _device_edits(
        self, node: cst.SimpleString, text: str, use: strings.Use
    ) -> tuple[Edit, ...]:
        if use.compared or not self._torch_is_bound(node):
            return ()
        if not (self._is_guarded(use) or self._goes_to_torch(use)):
            return ()  # a default may be evaluated where there is no accelerator
        index = text.removeprefix("cuda")
        return (self._over(node, f'f"{{{table.TYPE}}}{index}"' if index else table.TYPE),)

    def _is_guarded(self, use: strings.Use) -> bool:
        """Whether it is the first choice of `"cuda" if torch.cuda.is_available() else "cpu"`."""
        if use.conditional is None or not use.is_first_choice:
            return False
        return _CODE(use.conditional.test) in _AVAILABLE

    def _goes_to_torch(self, use: strings.Use) -> bool:
        """Whether the string is an argument of torch's, which without CUDA would refuse it."""
        if use.call is None or use.argument is None or use.conditional is not None:
            return use.conditional is not None and self._is_torch_device(use.call)
        function = use.call.func
        if isinstance(function, cst.Attribute) and function.attr.value == "to":
            return use.argument is use.call.args[0] or use.argument.keyword is not None
        name = self._imported(function)
        return name is not None and not _LENIENT.search(name)

    def _is_torch_device(self, call: cst.Call | None) -> bool:
        return call is not None and self._imported(call.func) == "torch.device"

    # Metadata

    def _imported(self, node: cst.CSTNode) -> str | None:
        """The full name of what was imported from torch under this name."""
        part = node
        while isinstance(part, cst.Attribute):
            part = part.value
        if not isinstance(part, cst.Name):
            return None  # libcst names an attribute of what a call returns, too
        names = self.get_metadata(meta.QualifiedNameProvider, node, None) or ()
        for name in names:
            if name.source is meta.QualifiedNameSource.IMPORT and name.name.startswith("torch."):
                return str(name.name)
        return None

    def _torch_is_bound(self, node: cst.CSTNode) -> bool:
        """Whether the name `torch` is PyTorch at this place, and nothing else."""
        scope = self.get_metadata(meta.ScopeProvider, node, None)
        if scope is None:
            return False
        found = list(scope["torch"])
        return bool(found) and all(
            isinstance(one, meta.ImportAssignment) and _is_plain_import(one.node) for one in found
        )

    def _is_read(self, node: cst.CSTNode) -> bool:
        return not isinstance(self._parent(node), (cst.AssignTarget, cst.AugAssign, cst.Del))

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        parent = self.get_metadata(meta.ParentNodeProvider, node, None)
        return parent if isinstance(parent, cst.CSTNode) else None

    # Positions

    def _range(self, node: cst.CSTNode) -> tuple[Position, Position]:
        found = self.get_metadata(meta.PositionProvider, node)
        return (
            Position(found.start.line, found.start.column + 1),
            Position(found.end.line, found.end.column + 1),
        )

    def _start(self, node: cst.CSTNode) -> Position:
        return self._range(node)[0]

    def _before_close(self, call: cst.Call) -> Position:
        end = self._range(call)[1]
        return Position(end.line, end.column - 1)

    def _over(self, node: cst.CSTNode, text: str) -> Edit:
        return Edit(*self._range(node), text)

    def _add(self, node: cst.CSTNode, what: str, advice: str, edits: tuple[Edit, ...] = ()) -> None:
        self.places.append(Place(self._start(node), what, advice, edits))


#: What takes "cuda" on a machine without CUDA, too.
_LENIENT = re.compile(r"autocast|\.amp\.|\.DataLoader$|\.fork_rng$|\.profiler\.")
_AVAILABLE = ("torch.cuda.is_available()", "torch.accelerator.is_available()")
_GROUP_BACKEND = (
    "leave the backend out, or write"
    f" torch.distributed.get_default_backend_for_device({table.DEVICE})"
)


def _is_plain_import(node: cst.CSTNode) -> bool:
    """Whether an import statement binds the name `torch` to torch itself."""
    if not isinstance(node, cst.Import):
        return False
    return any(
        (alias.asname is None and _CODE(alias.name).partition(".")[0] == "torch")
        or (alias.asname is not None and _CODE(alias.asname.name) == "torch" == _CODE(alias.name))
        for alias in node.names
    )
