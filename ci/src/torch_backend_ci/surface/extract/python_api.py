# SPDX-License-Identifier: BSD-3-Clause
"""The Python API: the modules and names under `python:` in surface/surfaces.yaml."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import griffe

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.python_modules import Member, Modules, is_private, notes
from torch_backend_ci.surface.model import Declaration, Domain
from torch_backend_ci.torch_tree.tree import TorchTree

_KINDS = {
    griffe.ParameterKind.positional_only: "positional_only",
    griffe.ParameterKind.positional_or_keyword: None,  # the usual one is left out
    griffe.ParameterKind.var_positional: "var_positional",
    griffe.ParameterKind.keyword_only: "keyword_only",
    griffe.ParameterKind.var_keyword: "var_keyword",
}
_STARS = {"var_positional": "*", "var_keyword": "**"}
_LONGEST_VALUE = 80


def extract(tree: TorchTree, catalogue: Catalogue) -> list[Declaration]:
    """Every module, class, function and attribute that the catalogue lists and the tree has."""
    modules = Modules(tree.root)
    if modules.get("torch") is None:
        raise CiError(f"{tree.root}: there is no torch/__init__.py")
    found: dict[str, Declaration] = {}
    for surface in catalogue.surfaces:
        for entry in surface.python:
            for declaration in _Entry(modules, surface.name).declarations(entry):
                found.setdefault(declaration.name, declaration)
    return list(found.values())


@dataclass(frozen=True)
class _Entry:
    """One entry of a `python:` list."""

    modules: Modules
    surface: str

    def declarations(self, entry: str) -> Iterator[Declaration]:
        """Of `package.module` everything public, of `package.module:name` just that."""
        path, _, name = entry.partition(":")
        module = self.modules.get(path)
        if module is None:
            return
        if name:
            yield from self._named(module, name)
            return
        facts = {
            "exports": sorted(str(name) for name in module.exports or ()),
            "passed_on": self.modules.passed_on(module),
        }
        yield self._declaration("module", path, f"module {path}", module, facts)
        for exported in self.modules.exported(module):
            if member := self.modules.find(module, exported):
                yield from self._member(f"{path}.{exported}", member)

    def _named(self, module: griffe.Module, name: str) -> Iterator[Declaration]:
        """`name`, or `Class.member` for a private member."""
        first, *rest = name.split(".")
        member: Any = self.modules.find(module, first)
        for part in rest:
            member = member.members.get(part) if isinstance(member, griffe.Class) else None
        if isinstance(member, Member):
            yield from self._member(f"{module.path}.{name}", member)

    def _member(self, name: str, member: Member) -> Iterator[Declaration]:
        if not member.runtime:  # below `if TYPE_CHECKING`
            return
        if renamed := _renamed(member):
            for declaration in self._member(name, renamed):
                yield _with(declaration, deprecated=notes(member)["deprecated"])
        elif isinstance(member, griffe.Class):
            yield from self._class(name, member)
        elif isinstance(member, griffe.Function):
            yield self._function(name, member)
        elif isinstance(member, griffe.Attribute) and not _is_of_instances_only(member):
            yield self._attribute(name, member)

    def _class(self, name: str, cls: griffe.Class) -> Iterator[Declaration]:
        bases = [str(base) for base in cls.bases]
        facts = {"bases": bases, "decorators": _decorators(cls)}
        text = f"class {_last(name)}" + (f"({', '.join(bases)})" if bases else "")
        yield self._declaration("class", name, text, cls, facts)
        for member_name, member in sorted(cls.members.items()):
            special = member_name.startswith("__") and not isinstance(member, griffe.Function)
            if isinstance(member, Member) and not is_private(member_name) and not special:
                yield from self._member(f"{name}.{member_name}", member)
        if "__init__" not in cls.members and "dataclass" in facts["decorators"]:
            yield self._constructor_of_dataclass(f"{name}.__init__", cls)

    def _function(self, name: str, function: griffe.Function) -> Declaration:
        parameters = [_parameter(p) for p in function.parameters]
        decorators = _decorators(function)
        if isinstance(function.parent, griffe.Class) and "staticmethod" not in decorators:
            parameters = parameters[1:]  # self or cls
        facts = {
            "parameters": parameters,
            "decorators": decorators,
            "async": "async" in function.labels,
            "abstract": "abstractmethod" in decorators,
            "raises": notes(function).get("raises"),
        }
        return self._declaration("function", name, _signature(name, function), function, facts)

    def _constructor_of_dataclass(self, name: str, cls: griffe.Class) -> Declaration:
        """What @dataclass makes of the fields of the class itself."""
        fields = (m for m in cls.members.values() if isinstance(m, griffe.Attribute))
        parameters = [_field(f) for f in fields if _is_field(f) and not _is_of_the_class(f)]
        text = f"def __init__({', '.join(map(_written, parameters))})"
        return self._declaration("function", name, text, cls, {"parameters": parameters})

    def _attribute(self, name: str, attribute: griffe.Attribute) -> Declaration:
        is_property = "property" in attribute.labels
        annotation = f": {attribute.annotation}" if attribute.annotation else ""
        value = _literal(attribute.value)
        facts = {
            "property": is_property,
            "writable": is_property and "writable" in attribute.labels,
            "value": value,
        }
        text = f"{_last(name)}{annotation}" + (f" = {value}" if value else "")
        return self._declaration("attribute", name, text, attribute, facts)

    def _declaration(
        self, kind: str, name: str, text: str, thing: griffe.Object, facts: dict[str, Any]
    ) -> Declaration:
        facts = facts | {n: notes(thing).get(n) for n in ("deprecated", "conditional")}
        return Declaration(
            Domain.PYTHON,
            kind,
            name,
            self.surface,
            text,
            self.modules.file(thing),
            thing.lineno or 0,
            {fact: value for fact, value in facts.items() if value},
        )


def _renamed(member: Member) -> Member | None:
    """The function or class that an attribute is another name of."""
    other = notes(member).get("other_name_of")
    found = member.parent.members.get(other) if other and member.parent else None
    return found if isinstance(found, griffe.Function | griffe.Class) else None


def _with(declaration: Declaration, deprecated: bool) -> Declaration:
    if not deprecated:
        return declaration
    return replace(declaration, facts={**declaration.facts, "deprecated": True})


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _decorators(thing: griffe.Function | griffe.Class) -> list[str]:
    """The names of the decorators; their arguments and where they come from do not matter."""
    return sorted({_last(str(d.callable_path)) for d in thing.decorators})


def _parameter(parameter: griffe.Parameter) -> dict[str, Any]:
    kind = _KINDS[parameter.kind] if parameter.kind else None
    found: dict[str, Any] = {"name": parameter.name}
    if kind:
        found["kind"] = kind
    if parameter.default is not None and kind not in _STARS:
        found["default"] = str(parameter.default)
    return found


def _written(parameter: dict[str, Any]) -> str:
    """A parameter as one writes it."""
    default = f"={parameter['default']}" if "default" in parameter else ""
    return _STARS.get(parameter.get("kind", ""), "") + parameter["name"] + default


def _signature(name: str, function: griffe.Function) -> str:
    keyword = "async def" if "async" in function.labels else "def"
    return f"{keyword} {function.signature(name=_last(name))}"


def _is_of_instances_only(attribute: griffe.Attribute) -> bool:
    """Set in `__init__` and nowhere said of the class: an implementation detail."""
    return (
        "instance-attribute" in attribute.labels
        and not _is_field(attribute)
        and ("class-attribute" not in attribute.labels)
    )


def _is_field(attribute: griffe.Attribute) -> bool:
    """`name: annotation` in the body of the class, and not a ClassVar."""
    return (
        notes(attribute).get("in_body", False)
        and attribute.annotation is not None
        and "instance-attribute" in attribute.labels
    )


def _is_of_the_class(attribute: griffe.Attribute) -> bool:
    return "ClassVar" in str(attribute.annotation)


def _field(attribute: griffe.Attribute) -> dict[str, Any]:
    """A field of a dataclass as a parameter of its constructor."""
    found = {"name": attribute.name}
    if attribute.value is not None:
        found["default"] = str(attribute.value)
    return found


def _literal(value: object) -> str | None:
    """A short value that is written down, not computed."""
    text = str(value) if value is not None else ""
    if not text or len(text) > _LONGEST_VALUE:
        return None
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return text
