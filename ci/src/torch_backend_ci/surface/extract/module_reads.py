# SPDX-License-Identifier: BSD-3-Clause
"""Which attributes of the device module a Python file reads: data flow within one file.

The walk keeps two things: which names hold the device module (or a text, or one of its attributes),
by scope and without regard to order; and which attributes are known to be there at this point.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

# Calls that give the device module.
_GIVERS = {
    "get_device_module",
    "_get_device_module",
    "_get_device_handle",
    "_FSDPDeviceHandle",
    "from_device",
}
# Parameters and attributes by which PyTorch's own code passes it on.
_CUSTOMARY = {
    "custom_device_mod",
    "device_handle",
    "device_mod",
    "device_module",
    "_device_handle",
    "_device_module",
}
# What stands for the name of a device in getattr(torch, ...).
_DEVICE_NAME = re.compile(r"(?:.*_)?(?:device|backend)(?:_.*)?")
_NAME_GIVERS = {"_get_privateuse1_backend_name"}

# Guards that stand for all attributes, because the error is caught: the one that a missing
# attribute raises, and the one that _get_custom_mod_func makes of it.
_CAUGHT = {"AttributeError": "*", "RuntimeError": "*custom"}
_ALL_CAUGHT = frozenset(_CAUGHT.values())

# A guard that stands for "this is about another device": `if device.type == "cuda":`.
_ELSEWHERE = "elsewhere"
_OTHER_DEVICES = {"cpu", "cuda", "hip", "hpu", "ipu", "meta", "mps", "mtia", "xla", "xpu"}

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop)

Binding = tuple[str, ast.expr]

Guards = frozenset[str]
_NONE: Guards = frozenset()


@dataclass(frozen=True)
class Read:
    """`torch.<device>.<name>`, once."""

    name: str  # "Stream", "_utils._get_device_index"
    line: int
    called: bool
    guarded: bool  # nothing happens if it is not there


def reads(module: ast.Module) -> list[Read]:
    """All reads of one file, in the order of the walk."""
    walk = _Walk()
    walk.function(module.body, _Scope(None, module.body), _NONE)
    return walk.found


class _Scope:
    """What the names of a function (or of the file) hold, anywhere in it."""

    def __init__(
        self,
        outer: _Scope | None,
        body: Sequence[ast.stmt],
        parameters: ast.arguments | None = None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        self.outer = outer
        # attributes of self that hold it
        self.own: frozenset[str] = own | (outer.own if outer else frozenset())
        self.modules: set[str] = set()
        self.texts: dict[str, frozenset[str]] = {}
        self.attributes: dict[str, str] = {}
        if parameters:
            self.modules.update(_customary_parameters(parameters))
        given, looped = _bindings(body)
        self.looped = {name for name, _ in looped}
        for _ in range(2):  # what a name holds may be known only after a later one is
            for name, value in [*given, *looped]:
                self._bind(name, value)

    def _bind(self, name: str, value: ast.expr) -> None:
        if self.is_module(value):
            self.modules.add(name)
        elif texts := self.texts_of(value):
            self.texts[name] = self.texts.get(name, frozenset()) | texts
        elif path := self.fetched(value):
            self.attributes[name] = path

    def lookup(self, name: str) -> _Scope | None:
        """The scope in which a name holds something of interest."""
        if name in self.modules or name in self.texts or name in self.attributes:
            return self
        return self.outer.lookup(name) if self.outer else None

    def is_module(self, node: ast.expr) -> bool:
        """The expression is the device module."""
        match node:
            case ast.Name():
                scope = self.lookup(node.id)
                return scope is not None and node.id in scope.modules
            case ast.Attribute():
                return node.attr in _CUSTOMARY or (_is_self(node.value) and node.attr in self.own)
            case ast.Call():
                return self._is_giver(node)
            case ast.IfExp():
                return self.is_module(node.body) or self.is_module(node.orelse)
            case ast.BoolOp():
                return any(map(self.is_module, node.values))
            case ast.NamedExpr():
                return self.is_module(node.value)
        return False

    def _is_giver(self, call: ast.Call) -> bool:
        name = _last(call.func)
        if name in _GIVERS:
            return True
        if name == "cast" and len(call.args) == 2:
            return self.is_module(call.args[1])
        return (
            name == "getattr"
            and len(call.args) >= 2
            and isinstance(call.args[0], ast.Name)
            and call.args[0].id == "torch"
            and self._names_a_device(call.args[1])
        )

    def _names_a_device(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return _last(node.func) in _NAME_GIVERS
        if isinstance(node, ast.Attribute) and node.attr == "type":
            return True
        name = _last(node)
        return bool(name and _DEVICE_NAME.fullmatch(name)) and name not in self.looped

    def texts_of(self, node: ast.expr) -> frozenset[str]:
        """The texts that the expression can be, or that a literal list of texts has."""
        match node:
            case ast.Constant(value=str(text)):
                return frozenset({text})
            case ast.List() | ast.Tuple() | ast.Set():
                parts = [self.texts_of(element) for element in node.elts]
                return frozenset().union(*parts) if all(parts) else frozenset()
            case ast.Name():
                scope = self.lookup(node.id)
                return scope.texts.get(node.id, frozenset()) if scope else frozenset()
        return frozenset()

    def path(self, node: ast.expr) -> str | None:
        """ "" of the device module itself, "a.b" of an attribute of it, None of anything else."""
        if self.is_module(node):
            return ""
        if isinstance(node, ast.Attribute):
            owner = self.path(node.value)
            return None if owner is None else _joined(owner, node.attr)
        return None

    def fetched(self, node: ast.expr) -> str | None:
        """What `getattr(module, "x", default)` fetches."""
        if isinstance(node, ast.Call) and _last(node.func) == "getattr":
            names = self.named(node)
            return names[0] if len(names) == 1 else None
        return None

    def named(self, call: ast.Call) -> list[str]:
        """The attributes that hasattr(module, ...) or getattr(module, ...) is about."""
        if len(call.args) < 2:
            return []
        owner = self.path(call.args[0])
        if owner is None:
            return []
        return sorted(_joined(owner, text) for text in self.texts_of(call.args[1]))

    def tested(self, test: ast.expr) -> tuple[Guards, Guards]:
        """The attributes that are there if the test holds, and if it does not."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                have, lack = self.tested(test.operand)
                return lack, have
            case ast.BoolOp():
                parts = [self.tested(value) for value in test.values]
                if isinstance(test.op, ast.And):
                    return _NONE.union(*(have for have, _ in parts)), _NONE
                return _NONE, _NONE.union(*(lack for _, lack in parts))
            case ast.Call() if _last(test.func) == "hasattr":
                return frozenset(self.named(test)), _NONE
            case ast.Compare(ops=[operation], comparators=[others]):
                if self._names_a_device(test.left) and self._are_other_devices(others):
                    elsewhere = frozenset({_ELSEWHERE})
                    if isinstance(operation, ast.Eq | ast.In):
                        return elsewhere, _NONE
                    return _NONE, elsewhere
        return _NONE, _NONE

    def _are_other_devices(self, node: ast.expr) -> bool:
        texts = self.texts_of(node)
        return bool(texts) and texts <= _OTHER_DEVICES


@dataclass
class _Walk:
    """Goes through statements and expressions and notes the reads."""

    found: list[Read] = field(default_factory=list)

    def function(self, body: Sequence[ast.stmt], scope: _Scope, guards: Guards) -> None:
        for statement in body:
            if _ELSEWHERE in guards:
                return
            guards = self.statement(statement, scope, guards)

    def statement(self, node: ast.stmt, scope: _Scope, guards: Guards) -> Guards:
        """Walk one statement; what is known to be there after it."""
        match node:
            case ast.If():
                return self._if(node, scope, guards)
            case ast.Assert():
                self._children(node, scope, guards)
                return self._required(scope.tested(node.test)[0], node, guards)
            case ast.Try():
                self._try(node, scope, guards)
                return guards
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node.body, _Scope(scope, node.body, node.args), guards)
                self._expressions([*node.decorator_list, *_defaults(node.args)], scope, guards)
                return guards
            case ast.ClassDef():
                self.function(node.body, _Scope(scope, [], own=_own(node, scope)), guards)
                return guards
        self._children(node, scope, guards)
        return guards

    def _if(self, node: ast.If, scope: _Scope, guards: Guards) -> Guards:
        have, lack = scope.tested(node.test)
        self.expression(node.test, scope, guards)
        self.function(node.body, scope, guards | have)
        self.function(node.orelse, scope, guards | lack)
        if isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break):
            return guards | lack
        if isinstance(node.body[-1], ast.Raise):
            return self._required(lack, node, guards)
        return guards

    def _try(self, node: ast.Try, scope: _Scope, guards: Guards) -> None:
        forgiven = _NONE.union(*map(_forgiven, node.handlers))
        self.function(node.body, scope, guards | forgiven)
        for handler in node.handlers:
            self.function(handler.body, scope, guards)
        self.function(node.orelse, scope, guards)
        self.function(node.finalbody, scope, guards)

    def _required(self, names: Guards, node: ast.stmt, guards: Guards) -> Guards:
        """Raises unless they are there: asked for, not asked about."""
        for name in sorted(names - {_ELSEWHERE}):
            self._note(name, node, guarded=False)
        return guards | (names & {_ELSEWHERE})

    def expression(self, node: ast.expr, scope: _Scope, guards: Guards) -> None:
        if _ELSEWHERE in guards:
            return
        match node:
            case ast.BoolOp():
                for value in node.values:
                    self.expression(value, scope, guards)
                    have, lack = scope.tested(value)
                    guards |= have if isinstance(node.op, ast.And) else lack
            case ast.IfExp():
                have, lack = scope.tested(node.test)
                self.expression(node.test, scope, guards)
                self.expression(node.body, scope, guards | have)
                self.expression(node.orelse, scope, guards | lack)
            case ast.Lambda():
                body = [ast.Expr(node.body)]
                self.function(body, _Scope(scope, body, node.args), guards)
            case ast.Call():
                self._call(node, scope, guards)
            case ast.Attribute(ctx=ast.Load()):
                self._attribute(node, scope, guards, called=False)
            case _:
                self._children(node, scope, guards)

    def _call(self, node: ast.Call, scope: _Scope, guards: Guards) -> None:
        name = _last(node.func)
        if name == "hasattr":
            self._fetch(node, scope, guarded=True)
        elif name == "getattr":
            self._fetch(node, scope, guarded=len(node.args) > 2, guards=guards)
        elif name == "_get_custom_mod_func" and node.args:
            for text in sorted(scope.texts_of(node.args[0])):
                guarded = _CAUGHT["RuntimeError"] in guards
                self._note(text, node, guarded=guarded, called=True)
        elif name == "_get_device_attr" and node.args and isinstance(node.args[0], ast.Lambda):
            self._with_module_as_parameter(node.args[0], scope, guards)
            return
        self._callee(node.func, scope, guards)
        self._expressions([*node.args, *(k.value for k in node.keywords)], scope, guards)

    def _callee(self, func: ast.expr, scope: _Scope, guards: Guards) -> None:
        if isinstance(func, ast.Attribute):
            self._attribute(func, scope, guards, called=True)
        elif isinstance(func, ast.Name):
            holder = scope.lookup(func.id)
            if holder and func.id in holder.attributes:
                self._note(holder.attributes[func.id], func, guarded=True, called=True)
        else:
            if path := scope.fetched(func):
                self._note(path, func, guarded=True, called=True)
            self.expression(func, scope, guards)

    def _with_module_as_parameter(self, node: ast.Lambda, scope: _Scope, guards: Guards) -> None:
        body = [ast.Expr(node.body)]
        inner = _Scope(scope, body)
        inner.modules.update(argument.arg for argument in node.args.args[:1])
        self.function(body, inner, guards)

    def _fetch(self, call: ast.Call, scope: _Scope, guarded: bool, guards: Guards = _NONE) -> None:
        for name in scope.named(call):
            self._note(name, call, guarded=guarded or _is_guarded(name, guards))

    def _attribute(self, node: ast.Attribute, scope: _Scope, guards: Guards, called: bool) -> None:
        if path := scope.path(node):
            self._note(path, node, guarded=_is_guarded(path, guards), called=called)
        self.expression(node.value, scope, guards)

    def _expressions(self, nodes: Sequence[ast.expr], scope: _Scope, guards: Guards) -> None:
        for node in nodes:
            self.expression(node, scope, guards)

    def _children(self, node: ast.AST, scope: _Scope, guards: Guards) -> None:
        for _, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            if parts and isinstance(parts[0], ast.stmt):
                self.function(parts, scope, guards)
                continue
            for part in parts:
                if isinstance(part, ast.expr):
                    self.expression(part, scope, guards)
                elif isinstance(part, ast.AST):
                    self._children(part, scope, guards)

    def _note(self, name: str, node: ast.AST, guarded: bool, called: bool = False) -> None:
        if "__" in name:  # every module has a __name__
            return
        self.found.append(Read(name, getattr(node, "lineno", 0), called, guarded))


def _joined(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _is_guarded(name: str, guards: Guards) -> bool:
    return name in guards or _CAUGHT["AttributeError"] in guards


def _last(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _forgiven(handler: ast.ExceptHandler) -> Guards:
    """What need not be there, because its absence ends in this handler."""
    if isinstance(handler.body[-1], ast.Raise):
        return _NONE
    if handler.type is None:
        return _ALL_CAUGHT
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {_last(kind) for kind in kinds}
    if names & {"Exception", "BaseException"}:
        return _ALL_CAUGHT
    return frozenset(guard for error, guard in _CAUGHT.items() if error in names)


def _own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes in it, and without leaves.

    (ast.walk takes four times as long, and this is where the time goes.)
    """
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _SCOPES):
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            parts = value if isinstance(value, list) else (value,)
            waiting.extend(
                p for p in parts if isinstance(p, ast.AST) and not isinstance(p, _LEAVES)
            )


def _bindings(body: Sequence[ast.stmt]) -> tuple[list[Binding], list[Binding]]:
    """Names and their values: of assignments; and names and what they run through, of loops."""
    given: list[Binding] = []
    looped: list[Binding] = []
    for node in _own_nodes(body):
        match node:
            case ast.Assign():
                given += [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
            case ast.AnnAssign(target=ast.Name() as name, value=ast.expr() as value):
                given.append((name.id, value))
            case ast.NamedExpr():
                given.append((node.target.id, node.value))
            case ast.For(target=ast.Name() as name) | ast.comprehension(target=ast.Name() as name):
                looped.append((name.id, node.iter))
    return given, looped


def _customary_parameters(parameters: ast.arguments) -> Iterator[str]:
    for parameter in [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]:
        annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
        if parameter.arg in _CUSTOMARY or "_FSDPDeviceHandle" in annotation:
            yield parameter.arg


def _defaults(parameters: ast.arguments) -> list[ast.expr]:
    return [d for d in [*parameters.defaults, *parameters.kw_defaults] if d is not None]


def _own(cls: ast.ClassDef, outer: _Scope) -> frozenset[str]:
    """The attributes of self to which some method of the class assigns the device module."""
    found: set[str] = set()
    for method in cls.body:
        if isinstance(method, ast.FunctionDef):
            for node in _own_nodes(method.body):
                if isinstance(node, ast.Assign) and outer.is_module(node.value):
                    found.update(t.attr for t in node.targets if _is_attribute_of_self(t))
    return frozenset(found)


def _is_attribute_of_self(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and _is_self(node.value)
