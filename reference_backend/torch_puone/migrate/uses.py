# SPDX-License-Identifier: BSD-3-Clause
"""Find every use of CUDA in a source file, without running it: names by imports and scopes."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence

import libcst as cst
from libcst import metadata as meta

from . import strings, table
from .places import Edit, Place, Position

#: What each file with a use of CUDA has somewhere.
_MENTIONED = re.compile("cuda|cudnn|nccl|NCCL|CUDA|CUBLAS")
_BY_HAND = "this works without an accelerator, where current_accelerator() is None"
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
    contents = _Contents()
    module.visit(contents)
    finder = _Finder(contents)
    wrapper.visit(finder)
    return text, sorted(finder.places, key=lambda place: (place.start, place.what))


def _explain(source: bytes) -> None:
    """Raise Python's own SyntaxError, which says more, if this Python finds one."""
    try:
        compile(source, "", "exec", dont_inherit=True)
    except ValueError as error:  # a null byte
        raise SyntaxError(str(error)) from error


class _Contents(cst.CSTVisitor):
    """What decides about places elsewhere in the file."""

    def __init__(self) -> None:
        super().__init__()
        #: The functions that it defines: its `.cuda()` may be its own.
        self.functions: set[str] = set()
        #: The attributes that it reads, also by strings: `getattr(stream, "cuda_stream")`.
        self.attributes: set[str] = set()
        #: What `import torch as NAME` binds.
        self.aliases: list[str] = []
        self.imports_torch = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802 - libcst's name
        self.functions.add(node.name.value)

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802 - libcst's name
        self.attributes.add(node.attr.value)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802 - libcst's name
        if node.raw_value.isidentifier():
            self.attributes.add(node.raw_value)

    def visit_Import(self, node: cst.Import) -> None:  # noqa: N802 - libcst's name
        for alias in node.names:
            self.imports_torch |= "torch" in _CODE(alias.name)
            if _CODE(alias.name) == "torch" and alias.asname:
                self.aliases.append(_CODE(alias.asname.name))

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:  # noqa: N802 - libcst's name
        self.imports_torch |= node.module is not None and "torch" in _CODE(node.module)


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (
        meta.PositionProvider,
        meta.ParentNodeProvider,
        meta.QualifiedNameProvider,
        meta.ScopeProvider,
    )

    def __init__(self, contents: _Contents) -> None:
        super().__init__()
        self.places: list[Place] = []
        self._contents = contents
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
        if isinstance(node, cst.Attribute) and self._contents.imports_torch:
            attribute = node.attr.value
            if attribute in table.ATTRIBUTES:
                self._add(node.attr, f".{attribute}", table.ATTRIBUTES[attribute])
        return True

    def _known(self, node: cst.Attribute | cst.Name, name: str) -> None:
        call = self._parent(node)
        if not (isinstance(call, cst.Call) and call.func is node):
            call = None
        row = table.find(name)
        read = [one for one in row.lacks if one in self._contents.attributes] if row else []
        advice = table.advice(name)
        if read:
            self._add(node, name, f"{advice} (it has no {read[0]}, which this file reads)")
        else:
            self._add(node, name, advice, self._name_edits(node, row, call))

    def _name_edits(
        self, node: cst.Attribute | cst.Name, row: table.Row | None, call: cst.Call | None
    ) -> tuple[Edit, ...]:
        if row is None or not self._is_read(node):
            return ()
        replacement = row.replacement
        if not row.drop_in or not replacement or replacement.startswith(table.MODULE):
            return ()  # the module of a machine without an accelerator is another one
        if call is not None and any(arg.keyword or arg.star for arg in call.args):
            return ()  # parameters have other names
        if call is not None and len(call.args) > row.takes:
            return ()
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
        if function.attr.value != "cuda" or not self._contents.imports_torch:
            return
        if name is None or not table.concerns(name):
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
        if plain and "cuda" not in self._contents.functions and not any(a.star for a in node.args):
            edits = self._moved_edits(node, function, device, rest)
        self._add(function.attr, ".cuda()", _moved_advice(device), edits, node)

    def _moved_edits(
        self,
        node: cst.Call,
        function: cst.Attribute,
        device: Sequence[cst.Arg],
        rest: Sequence[cst.Arg],
    ) -> tuple[Edit, ...]:
        method = self._over(function.attr, "to")
        if len(device) == 1 and node.args[0] is device[0] and device[0].keyword is None:
            # `.to(device=0)` is device 0 of the accelerator; a variable could hold None.
            start = self._start(device[0])
            keyword = Edit(start, start, "device=")
            return (method, keyword) if isinstance(device[0].value, cst.Integer) else ()
        if device:
            return ()
        start = self._start(rest[0]) if rest else self._before_close(node)
        return (method, Edit(start, start, f"device={table.DEVICE}{', ' if rest else ''}"))

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
            index = strings.index_behind(node, self._parent)
            self._add(node, 'the device "cuda:..."', f"write {strings.with_index(index)}")
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
            index = f":{_CODE(node.parts[1])}"
            self._add(node, 'the device "cuda:..."', f"write {strings.with_index(index)}")
        return True

    def _device(self, node: cst.SimpleString, text: str) -> None:
        use = strings.device_use(node, self._parent)
        if use is None:
            return
        what = f'comparison with "{text}"' if use.compared else f'the device "{text}"'
        write = strings.with_index(text.removeprefix("cuda"))
        advice, edits = f"write {write}", (self._over(node, write),)
        if use.compared:
            self._add(node, what, advice)
        elif self._is_guarded(use):
            self._add(node, what, advice, edits)
        elif not self._goes_to_torch(use):
            self._add(node, what, advice)  # it may be evaluated where there is no accelerator
        elif self._needs_device(use):
            self._add(node, what, advice, edits)
        else:
            self._add(node, what, f"{advice} ({_BY_HAND})")

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
        return self._imported(function) is not None

    def _needs_device(self, use: strings.Use) -> bool:
        """Whether the program fails at this use on a machine without CUDA, or has no use of it."""
        name = self._imported(use.call.func) if use.call else None
        if name is None or name != "torch.device":
            return name is None or not _LENIENT.search(name)
        # An object, which is made anywhere: what takes it decides.
        assert use.call is not None
        above = self._parent(use.call)
        while isinstance(above, cst.IfExp):
            above = self._parent(above)
        if isinstance(above, cst.Arg):
            call = self._parent(above)
            outer = strings.Use(call=call, argument=above) if isinstance(call, cst.Call) else None
            return outer is not None and self._goes_to_torch(outer) and self._needs_device(outer)
        if isinstance(above, cst.Assign):
            return all(self._is_of_use(target.target) for target in above.targets)
        return isinstance(above, (cst.AnnAssign, cst.Return, cst.Expr))

    def _is_of_use(self, target: cst.BaseExpression) -> bool:
        """Whether a variable is used for more than comparisons, or not known to be."""
        scope = self.get_metadata(meta.ScopeProvider, target, None)
        if not isinstance(target, cst.Name) or scope is None:
            return True
        reads = [self._parent(access.node) for access in scope.accesses[target.value]]
        return not reads or not all(
            isinstance(above, (cst.Comparison, cst.ComparisonTarget)) for above in reads
        )

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

    def _torch(self, node: cst.CSTNode) -> str | None:
        """The name that is PyTorch at this place, and nothing else."""
        scope = self.get_metadata(meta.ScopeProvider, node, None)
        if scope is None:
            return None
        for name in ["torch", *self._contents.aliases]:
            found = list(scope[name])
            if found and all(
                isinstance(one, meta.ImportAssignment) and _is_import_of_torch(one.node, name)
                for one in found
            ):
                return name
        return None

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

    def _add(
        self,
        node: cst.CSTNode,
        what: str,
        advice: str,
        edits: tuple[Edit, ...] = (),
        scoped: cst.CSTNode | None = None,
    ) -> None:
        """Add a place. Edits name PyTorch as the file does; without its name there are none."""
        if any(_TORCH.search(edit.text) for edit in edits):
            torch = self._torch(scoped or node)
            edits = tuple(
                Edit(edit.start, edit.end, _TORCH.sub(f"{torch}.", edit.text)) for edit in edits
            )
            if torch is None:
                edits, advice = (), f"{advice} ({_UNBOUND})"
        self.places.append(Place(self._start(node), what, advice, edits))


_TORCH = re.compile(r"\btorch\.(?=[a-zA-Z])")
_UNBOUND = "--fix needs `import torch`, alone in binding the name"


#: What takes "cuda" on a machine without CUDA, too.
_LENIENT = re.compile(
    r"autocast|\.amp\.|\.DataLoader$|\.fork_rng$|\.profiler\.|\.library\."
    r"|\.set_default_device$|\.get_device_module$|\.get_default_backend_for_device$"
)
_AVAILABLE = ("torch.cuda.is_available()", "torch.accelerator.is_available()")
_GROUP_BACKEND = (
    "leave the backend out, or write"
    f" torch.distributed.get_default_backend_for_device({table.DEVICE})"
)


def _is_import_of_torch(node: cst.CSTNode, name: str) -> bool:
    """Whether an import statement binds a name to torch itself."""
    if not isinstance(node, cst.Import):
        return False
    return any(
        (alias.asname is None and _CODE(alias.name).partition(".")[0] == name == "torch")
        or (alias.asname and _CODE(alias.asname.name) == name and _CODE(alias.name) == "torch")
        for alias in node.names
    )


def _moved_advice(device: Sequence[cst.Arg]) -> str:
    """What to write for `.cuda()`; its device stays."""
    if not device:
        return f"write {table.MOVE}"
    value = _CODE(device[0].value)
    if isinstance(device[0].value, cst.Integer):
        return f"write {table.moved(int(value, 0))}"
    return f"write .to(device={value}) if {value} is never None"
