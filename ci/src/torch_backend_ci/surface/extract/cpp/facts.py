# SPDX-License-Identifier: BSD-3-Clause
"""What a cursor declares: the facts that are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from torch_backend_ci.surface.extract.cpp import libclang
from torch_backend_ci.surface.extract.cpp.canonical import Types
from torch_backend_ci.surface.extract.cpp.libclang import Cursor, Kind, TypeKind, cindex
from torch_backend_ci.surface.extract.cpp.sources import Sources
from torch_backend_ci.surface.extract.cpp.tokens import (
    declaration_text,
    digest,
    initializer,
    tokens,
)

Facts = dict[str, Any]

RECORDS = {
    Kind.CLASS_DECL,
    Kind.STRUCT_DECL,
    Kind.UNION_DECL,
    Kind.CLASS_TEMPLATE,
    Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
}
FUNCTIONS = {
    Kind.FUNCTION_DECL,
    Kind.FUNCTION_TEMPLATE,
    Kind.CXX_METHOD,
    Kind.CONSTRUCTOR,
    Kind.DESTRUCTOR,
    Kind.CONVERSION_FUNCTION,
}
ALIASES = {Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL}
TEMPLATE_PARAMETERS = {
    Kind.TEMPLATE_TYPE_PARAMETER,
    Kind.TEMPLATE_NON_TYPE_PARAMETER,
    Kind.TEMPLATE_TEMPLATE_PARAMETER,
}
_NOEXCEPT = {
    cindex.ExceptionSpecificationKind.BASIC_NOEXCEPT,
    cindex.ExceptionSpecificationKind.DYNAMIC_NONE,
}
_COMPUTED = cindex.ExceptionSpecificationKind.COMPUTED_NOEXCEPT
_REFERENCES = {cindex.RefQualifierKind.LVALUE: "&", cindex.RefQualifierKind.RVALUE: "&&"}
_HIDDEN = {
    cindex.AccessSpecifier.PRIVATE: "private",
    cindex.AccessSpecifier.PROTECTED: "protected",
}
_EVALUATED = {
    TypeKind.BOOL,
    TypeKind.ENUM,
    TypeKind.FLOAT,
    TypeKind.DOUBLE,
    TypeKind.POINTER,
    TypeKind.CONSTANTARRAY,
    *(kind for kind in TypeKind._kinds if kind is not None and 4 <= kind.value <= 20),
}
_LONGEST = 300  # of what is shown of a declaration


class Reader:
    """Facts of the cursors of one translation unit."""

    def __init__(self, types: Types, sources: Sources) -> None:
        self.types = types
        self.sources = sources

    def text(self, cursor: Cursor) -> str:
        """The declaration as it is written, for people."""
        if cursor.kind == Kind.ENUM_CONSTANT_DECL:
            return f"{cursor.spelling} = {cursor.enum_value}"
        text = declaration_text(self._source(cursor))
        return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."

    def specialization(self, cursor: Cursor) -> str:
        """What a specialization of a class template is for: "<c10::Half, 1>"."""
        arguments = range(cursor.get_num_template_arguments())
        return f"<{', '.join(self._argument(cursor, index) for index in arguments)}>"

    def _argument(self, cursor: Cursor, index: int) -> str:
        kind = libclang.template_argument_kind(cursor, index)
        if kind == libclang.TYPE_ARGUMENT:
            return self.types.spelling(cursor.get_template_argument_type(index))
        if kind == libclang.INTEGRAL_ARGUMENT:
            return str(cursor.get_template_argument_value(index))
        return "..."

    def record(self, cursor: Cursor, children: Sequence[Cursor]) -> Facts:
        return _without_empty(
            bases=[self._base(c) for c in children if c.kind == Kind.CXX_BASE_SPECIFIER],
            final=_has(children, Kind.CXX_FINAL_ATTR),
            abstract=bool(cursor.is_abstract_record()),
            union=cursor.kind == Kind.UNION_DECL,
            fields=_names_of_fields(children),
            template=self._template(children),
            size=max(cursor.type.get_size(), 0),
            deprecated=libclang.deprecation(cursor),
            access=_HIDDEN.get(cursor.access_specifier),
        )

    def function(self, cursor: Cursor, children: Sequence[Cursor], kind: str) -> Facts:
        type_ = cursor.type.get_canonical()
        types = list(type_.argument_types())
        # The return type may have parameters of its own: `std::function<void(int)> f(int)`.
        written = [c for c in children if c.kind == Kind.PARM_DECL][-len(types) :]
        special = kind in ("constructor", "destructor")
        return _without_empty(
            template=self._template(children),
            parameters=[
                _without_empty(
                    type=self.types.spelling(t), default=_has_default(p), value=self._default(p)
                )
                for t, p in zip(types, written, strict=False)
            ],
            returns="" if special else self.types.spelling(type_.get_result()),
            const=cursor.is_const_method(),
            ref=_REFERENCES.get(type_.get_ref_qualifier(), ""),
            noexcept=kind != "destructor" and _noexcept(cursor),
            virtual=cursor.is_virtual_method(),
            pure=cursor.is_pure_virtual_method(),
            override=_has(children, Kind.CXX_OVERRIDE_ATTR),
            final=_has(children, Kind.CXX_FINAL_ATTR),
            static=cursor.is_static_method(),
            explicit=cursor.is_explicit_method(),
            deleted=cursor.is_deleted_method()
            or cursor.availability == cindex.AvailabilityKind.NOT_AVAILABLE,
            variadic=type_.kind == TypeKind.FUNCTIONPROTO and type_.is_function_variadic(),
            body=self._body(cursor) if cursor.is_virtual_method() and not special else "",
            deprecated=libclang.deprecation(cursor),
            access=_HIDDEN.get(cursor.access_specifier),
        )

    def _default(self, parameter: Cursor) -> str:
        """The tokens of a default argument."""
        return initializer(self._source(parameter)) if _has_default(parameter) else ""

    def _body(self, method: Cursor) -> str:
        """A digest of the body that stands in the class."""
        place = method.extent
        if place.start.file is None:
            return ""
        return digest(self.sources.body(place.start.file.name, place.start.offset))

    def field(self, cursor: Cursor) -> Facts:
        return _without_empty(
            type=self.types.spelling(cursor.type),
            bits=cursor.get_bitfield_width() if cursor.is_bitfield() else 0,
            access=_HIDDEN.get(cursor.access_specifier),
        )

    def variable(self, cursor: Cursor, *, member: bool) -> Facts:
        before_name = self._source(cursor)[: cursor.location.offset - cursor.extent.start.offset]
        return {
            **_without_empty(
                type=self.types.spelling(cursor.type),
                static=member,
                constexpr=bool(re.search(r"\bconstexpr\b", before_name)),
                access=_HIDDEN.get(cursor.access_specifier),
                deprecated=libclang.deprecation(cursor),
            ),
            **self._value(cursor),
        }

    def enum(self, cursor: Cursor) -> Facts:
        return _without_empty(
            underlying=self.types.spelling(cursor.enum_type),
            scoped=cursor.is_scoped_enum(),
            access=_HIDDEN.get(cursor.access_specifier),
            deprecated=libclang.deprecation(cursor),
        )

    def enumerator(self, cursor: Cursor) -> Facts:
        return {
            "value": cursor.enum_value,
            **_without_empty(deprecated=libclang.deprecation(cursor)),
        }

    def alias(self, cursor: Cursor, children: Sequence[Cursor]) -> Facts:
        template = cursor.kind == Kind.TYPE_ALIAS_TEMPLATE_DECL
        inner = next((c for c in children if c.kind == Kind.TYPE_ALIAS_DECL), cursor)
        return _without_empty(
            target=self.types.spelling((inner if template else cursor).underlying_typedef_type),
            template=self._template(children),
            access=_HIDDEN.get(cursor.access_specifier),
            deprecated=libclang.deprecation(cursor),
        )

    def _source(self, cursor: Cursor) -> str:
        extent = cursor.extent
        file = extent.start.file
        return self.sources.text(file.name, extent.start.offset, extent.end.offset) if file else ""

    def _base(self, cursor: Cursor) -> str:
        virtual = "virtual " if libclang.is_virtual_base(cursor) else ""
        access = _HIDDEN.get(cursor.access_specifier, "public")
        return f"{virtual}{access} {self.types.spelling(cursor.type)}"

    def _template(self, children: Iterable[Cursor]) -> str:
        """The parameters of a template without their names: "typename, int =, typename..."."""
        parameters = [c for c in children if c.kind in TEMPLATE_PARAMETERS]
        return ", ".join(map(self._template_parameter, parameters))

    def _template_parameter(self, cursor: Cursor) -> str:
        words = tokens(self._source(cursor))
        kind = {
            Kind.TEMPLATE_TYPE_PARAMETER: "typename",
            Kind.TEMPLATE_TEMPLATE_PARAMETER: "template",
        }.get(cursor.kind) or self.types.spelling(cursor.type)
        pack = "..." if "..." in words[:-1] and not kind.endswith("...") else ""
        return kind + pack + (" =" if "=" in words else "")

    def _value(self, cursor: Cursor) -> Facts:
        """What a constant is: evaluated, or else as it is written."""
        type_ = cursor.type.get_canonical()
        if not type_.is_const_qualified() and type_.kind != TypeKind.CONSTANTARRAY:
            return {}
        value = libclang.value(cursor) if type_.kind in _EVALUATED else None
        if value is None:
            value = initializer(self._source(cursor))
        return {} if value == "" else {"value": value}


def template_parameters(children: Iterable[Cursor]) -> list[str]:
    """The names of a template's parameters."""
    return [c.spelling for c in children if c.kind in TEMPLATE_PARAMETERS]


def _has(children: Iterable[Cursor], kind: Kind) -> bool:
    return any(child.kind == kind for child in children)


def _has_default(parameter: Cursor) -> bool:
    """A default argument is an expression that stands after the parameter's name."""
    name = parameter.location.offset
    return any(
        child.kind.is_expression() and child.extent.start.offset > name
        for child in parameter.get_children()
    )


def _names_of_fields(children: Iterable[Cursor]) -> list[str]:
    """The data members in their order, if there is one: of a single member there is none."""
    names = [child.spelling for child in children if child.kind == Kind.FIELD_DECL]
    return names if len(names) > 1 else []


def _noexcept(cursor: Cursor) -> bool | str:
    if cursor.is_default_method():  # clang works it out only where something uses the member
        return False
    kind = cursor.exception_specification_kind
    if kind != _COMPUTED:
        return kind in _NOEXCEPT
    _, found, condition = cursor.type.get_canonical().spelling.rpartition(" noexcept")
    return condition or bool(found)


def _without_empty(**facts: Any) -> Facts:
    """Facts that say something: absence is False, None and empty."""
    return {name: value for name, value in facts.items() if value}
