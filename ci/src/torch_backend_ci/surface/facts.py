# SPDX-License-Identifier: BSD-3-Clause
"""What a snapshot says of each kind of declaration. A fact that is false or empty is left out."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from torch_backend_ci.document import Flag, Part, only_true
from torch_backend_ci.surface.model import Domain

Texts = tuple[str, ...]
Requires = Annotated[
    Texts,
    Meta(
        min_length=1,
        description="Macros that must be defined; the plain profile does not see it.",
    ),
]
Template = Annotated[
    str,
    Meta(
        description='Its parameters without their names: "typename, int =, typename..."; '
        "` =` marks a default."
    ),
]
Access = Annotated[
    Literal["protected", "private"],
    Meta(description="Left out where public; private ones are listed only if they are virtual."),
]
Deprecated = Annotated[bool | str, Meta(description="The message of the attribute, or true.")]
Value = Annotated[
    int | float | str,
    Meta(description="Evaluated if it is a number or a text, or else as written."),
]


class Facts(Part, kw_only=True, frozen=True):
    """What is compared of a declaration."""

    def __post_init__(self) -> None:
        only_true(self)


class CppClass(Facts, kw_only=True, frozen=True):
    """A class of C++."""

    bases: Annotated[
        Texts | UnsetType, Meta(description='"public c10::X", "virtual public c10::Y"')
    ] = UNSET
    final: Flag = UNSET
    abstract: Flag = UNSET
    union: Flag = UNSET
    fields: Annotated[
        Texts | UnsetType, Meta(description="Its data members in their order, private ones too.")
    ] = UNSET
    template: Template | UnsetType = UNSET
    size: Annotated[
        int | UnsetType, Meta(description="Bytes, where it is complete and not a template.")
    ] = UNSET
    access: Access | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppParameter(Facts, kw_only=True, frozen=True):
    """A parameter of a C++ function: its canonical type."""

    type: str
    default: Flag = UNSET
    value: Annotated[str | UnsetType, Meta(description="The default, its tokens.")] = UNSET


class CppFunction(Facts, kw_only=True, frozen=True):
    """A function, method, constructor or destructor of C++."""

    parameters: tuple[CppParameter, ...] | UnsetType = UNSET
    returns: str | UnsetType = UNSET
    const: Flag = UNSET
    ref: Literal["&", "&&"] | UnsetType = UNSET
    noexcept: bool | str | UnsetType = UNSET
    virtual: Flag = UNSET
    pure: Flag = UNSET
    override: Flag = UNSET
    final: Flag = UNSET
    static: Flag = UNSET
    explicit: Flag = UNSET
    deleted: Flag = UNSET
    variadic: Flag = UNSET
    body: Annotated[
        str | UnsetType,
        Meta(
            description="Of a virtual with an implementation in the class: a digest of its tokens."
        ),
    ] = UNSET
    template: Template | UnsetType = UNSET
    access: Access | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppField(Facts, kw_only=True, frozen=True):
    """A data member."""

    type: str
    bits: Annotated[int | UnsetType, Meta(description="Of a bit-field.")] = UNSET
    static: Flag = UNSET
    constexpr: Flag = UNSET
    value: Value | UnsetType = UNSET
    access: Access | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppEnum(Facts, kw_only=True, frozen=True):
    """An enumeration."""

    underlying: str
    scoped: Flag = UNSET
    access: Access | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppEnumerator(Facts, kw_only=True, frozen=True):
    """A value of an enumeration."""

    value: int
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppAlias(Facts, kw_only=True, frozen=True):
    """Another name of a type."""

    target: str
    template: Template | UnsetType = UNSET
    access: Access | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppVariable(Facts, kw_only=True, frozen=True):
    """A variable in a namespace."""

    type: str
    constexpr: Flag = UNSET
    value: Value | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    requires: Requires | UnsetType = UNSET


class CppMacro(Facts, kw_only=True, frozen=True):
    """A macro."""

    parameters: Annotated[
        Texts | UnsetType,
        Meta(
            description="$1, $2, ...; an empty list is that of NAME(); left out for a macro "
            "without parentheses."
        ),
    ] = UNSET
    body: Annotated[
        str | UnsetType, Meta(description="Tokens, one space apart, parameters as $1, $2.")
    ] = UNSET
    requires: Requires | UnsetType = UNSET


class Header(Facts, kw_only=True, frozen=True):
    """A header."""

    alone: Annotated[Flag, Meta(description="It can be included before any other header.")] = UNSET
    error: Annotated[str | UnsetType, Meta(description="Why it cannot.")] = UNSET
    unread: Annotated[Flag, Meta(description="It is there, and was not tried alone.")] = UNSET


class Language(Facts, kw_only=True, frozen=True):
    """The language of the headers."""

    minimum: Annotated[
        Literal[11, 14, 17, 20, 23, 26],
        Meta(description="The C++ standard that an #error of the headers demands."),
    ]


class Symbol(Facts, kw_only=True, frozen=True):
    """An exported symbol."""

    library: Literal["c10", "torch_cpu", "torch_python"]


class PythonModule(Facts, kw_only=True, frozen=True):
    """A module."""

    exports: Annotated[Texts | UnsetType, Meta(description="What `__all__` names.")] = UNSET
    passed_on: Annotated[
        Texts | UnsetType, Meta(description="Names that it imports from elsewhere in torch.")
    ] = UNSET


class PythonClass(Facts, kw_only=True, frozen=True):
    """A class of Python."""

    bases: Annotated[
        Texts | UnsetType, Meta(description="As written; compared by their last name.")
    ] = UNSET
    decorators: Texts | UnsetType = UNSET
    conditional: Flag = UNSET
    deprecated: Flag = UNSET


class PythonParameter(Facts, kw_only=True, frozen=True):
    """A parameter of a Python function."""

    name: str
    kind: Annotated[
        Literal["positional_only", "var_positional", "keyword_only", "var_keyword"] | UnsetType,
        Meta(description="Left out: by position or by keyword."),
    ] = UNSET
    default: Annotated[str | UnsetType, Meta(description="As written, quoted one way.")] = UNSET


class PythonFunction(Facts, kw_only=True, frozen=True):
    """A function of Python."""

    parameters: tuple[PythonParameter, ...] | UnsetType = UNSET
    decorators: Annotated[
        Texts | UnsetType, Meta(description="Their last names, without arguments.")
    ] = UNSET
    raises: Annotated[Flag, Meta(description="It does nothing but raise NotImplementedError.")] = (
        UNSET
    )
    abstract: Flag = UNSET
    is_async: Flag = field(name="async", default=UNSET)
    conditional: Flag = UNSET
    deprecated: Flag = UNSET


class PythonAttribute(Facts, kw_only=True, frozen=True):
    """An attribute."""

    value: Annotated[str | UnsetType, Meta(description="A literal of at most 80 characters.")] = (
        UNSET
    )
    property: Flag = UNSET
    writable: Flag = UNSET
    conditional: Flag = UNSET
    deprecated: Flag = UNSET


class OperatorArgument(Facts, kw_only=True, frozen=True):
    """An argument of an operator."""

    name: str
    type: str
    default: str | UnsetType = UNSET
    alias: Annotated[str | UnsetType, Meta(description="a, a!, a->*")] = UNSET
    kwarg_only: Flag = UNSET


class OperatorReturn(Facts, kw_only=True, frozen=True):
    """What an operator returns."""

    name: str | UnsetType = UNSET
    type: str
    alias: str | UnsetType = UNSET


class Operator(Facts, kw_only=True, frozen=True):
    """An operator of native_functions.yaml."""

    arguments: tuple[OperatorArgument, ...] | UnsetType = UNSET
    returns: tuple[OperatorReturn, ...] | UnsetType = UNSET
    dispatch: Annotated[
        Literal[
            "composite_implicit",
            "composite_explicit",
            "composite_explicit_non_functional",
            "structured_delegate",
            "structured",
            "explicit",
        ],
        Meta(description="How a kernel is found; of the last two a backend must register one."),
    ]
    keys: Annotated[
        Texts | UnsetType, Meta(description="Dispatch keys with a kernel in PyTorch.")
    ] = UNSET
    tags: Texts | UnsetType = UNSET
    device_check: Annotated[
        str | UnsetType, Meta(description="As written: NoCheck; left out for the usual check.")
    ] = UNSET
    variants: tuple[Literal["function", "method"], ...] | UnsetType = UNSET
    generated: Annotated[
        Texts | UnsetType, Meta(description="Operators that torchgen derives from this one.")
    ] = UNSET
    namespace: Annotated[
        str | UnsetType, Meta(description="Of torch, in Python: nn, linalg, ...")
    ] = UNSET


class OperatorTag(Facts, kw_only=True, frozen=True):
    """A tag of operators."""


class DeviceModule(Facts, kw_only=True, frozen=True):
    """torch.<device>."""

    readers: Texts | UnsetType = UNSET


class DeviceModuleAttribute(Facts, kw_only=True, frozen=True):
    """An attribute that PyTorch reads off torch.<device>."""

    called: Flag = UNSET
    guarded: Annotated[Flag, Meta(description="Every reader can do without.")] = UNSET
    readers: Annotated[Texts, Meta(min_length=1)]
    required_by: Annotated[
        Texts | UnsetType, Meta(description="Readers that cannot do without.")
    ] = UNSET


#: The facts of each kind of declaration.
FACTS: dict[tuple[Domain, str], type[Facts]] = {
    (Domain.CPP, "class"): CppClass,
    (Domain.CPP, "function"): CppFunction,
    (Domain.CPP, "method"): CppFunction,
    (Domain.CPP, "constructor"): CppFunction,
    (Domain.CPP, "destructor"): CppFunction,
    (Domain.CPP, "field"): CppField,
    (Domain.CPP, "enum"): CppEnum,
    (Domain.CPP, "enumerator"): CppEnumerator,
    (Domain.CPP, "alias"): CppAlias,
    (Domain.CPP, "variable"): CppVariable,
    (Domain.CPP, "macro"): CppMacro,
    (Domain.HEADER, "header"): Header,
    (Domain.HEADER, "language"): Language,
    (Domain.SYMBOL, "symbol"): Symbol,
    (Domain.PYTHON, "module"): PythonModule,
    (Domain.PYTHON, "class"): PythonClass,
    (Domain.PYTHON, "function"): PythonFunction,
    (Domain.PYTHON, "attribute"): PythonAttribute,
    (Domain.OPERATOR, "operator"): Operator,
    (Domain.OPERATOR, "tag"): OperatorTag,
    (Domain.DEVICE_MODULE, "module"): DeviceModule,
    (Domain.DEVICE_MODULE, "attribute"): DeviceModuleAttribute,
}
