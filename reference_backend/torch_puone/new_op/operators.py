# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's operators, as far as a skeleton depends on them: from the installed torch's table.

torchgen, which torch brings along, parses native_functions.yaml.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torchgen
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import (
    Argument,
    BackendIndex,
    DispatchKey,
    NativeFunction,
    NativeFunctionsGroup,
)

#: Scalars of a schema that can be parameters of a kernel, and their types in C++.
SCALARS = {"Scalar": "const c10::Scalar&", "bool": "bool", "float": "double", "int": "int64_t"}


class SkeletonError(ValueError):
    """There is no skeleton; the message says why, and what to do instead."""


@dataclass(frozen=True)
class Parameter:
    """An argument of the operator, without `out`. `type` is "Tensor" or one of SCALARS."""

    name: str
    type: str
    by_name: bool  # only by its name, in a call from Python


@dataclass(frozen=True)
class Operator:
    """A structured elementwise operator.

    Attributes:
        name: the overload that its row names, such as "addcmul.out".
        functional: the overload that tests call, such as "addcmul".
        meta: PyTorch's class with the meta function, without namespace.
        out: what the schema calls its result.
    """

    name: str
    functional: str
    meta: str
    parameters: tuple[Parameter, ...]
    out: str

    @property
    def base(self) -> str:
        """The name without overload, such as "addcmul"; with it where it distinguishes."""
        return self.functional.replace(".", "_").lower()

    @property
    def tensors(self) -> list[Parameter]:
        """The operands."""
        return [each for each in self.parameters if each.type == "Tensor"]

    @property
    def scalars(self) -> list[Parameter]:
        """The parameters of the kernel."""
        return [each for each in self.parameters if each.type != "Tensor"]


@dataclass(frozen=True)
class _Table:
    groups: Sequence[NativeFunction | NativeFunctionsGroup]
    on_cpu: BackendIndex

    def is_for_a_device(self, group: NativeFunction | NativeFunctionsGroup) -> bool:
        """Whether a device implements it: the CPU does, and PyTorch does not for all devices."""
        return any(
            self.on_cpu.has_kernel(function) and not function.has_composite_kernel
            for function in _members(group)
        )


@cache
def _table() -> _Table:
    folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
    files = [str(folder / name) for name in ("native_functions.yaml", "tags.yaml")]
    parsed = parse_native_yaml(*files)
    groups = get_grouped_native_functions(parsed.native_functions)
    return _Table(groups, parsed.backend_indices[DispatchKey.CPU])


def find(name: str) -> Operator:
    """The operator of this name: "aten::addcmul", "addcmul" or one of its overloads.

    Raises SkeletonError if there is none, if the name stands for several, if it needs no kernel and
    if its kernel is not a function of elements.
    """
    name = name.removeprefix("aten::")
    if not name:
        raise SkeletonError("give the name of an operator, such as aten::special_i1")
    table = _table()
    found = [group for group in table.groups if name in _names(group)]
    found = found or [group for group in table.groups if name in map(_base, _names(group))]
    if not found:
        raise SkeletonError(f"aten has no operator {name}{_suggestion(name)}")
    wanted = [group for group in found if table.is_for_a_device(group)]
    if not wanted:
        raise SkeletonError(_why_not(name, found[0]))
    if len(wanted) > 1:
        names = ", ".join(min(_names(group), key=len) for group in wanted)
        raise SkeletonError(f"{name} stands for several operators: {names}")
    return _operator(name, wanted[0])


def forms(name: str) -> list[str]:
    """The overloads of one operator: functional, in-place and out. Empty if aten has no `name`."""
    groups = (_names(group) for group in _table().groups)
    return next((sorted(names) for names in groups if name in names), [])


def _members(group: NativeFunction | NativeFunctionsGroup) -> list[NativeFunction]:
    return [group] if isinstance(group, NativeFunction) else list(group.functions())


def _names(group: NativeFunction | NativeFunctionsGroup) -> list[str]:
    return [str(function.func.name) for function in _members(group)]


def _base(name: str) -> str:
    return name.partition(".")[0]


def _suggestion(name: str) -> str:
    known = {_base(each) for group in _table().groups for each in _names(group)}
    near = difflib.get_close_matches(_base(name), sorted(known), n=3, cutoff=0.75)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _why_not(name: str, group: NativeFunction | NativeFunctionsGroup) -> str:
    own = [function for function in _members(group) if "generated" not in function.tags]
    if any(function.has_composite_kernel for function in own):
        return (
            f"{name} needs nothing: PyTorch composes it of other operators, so it works on a "
            "device as soon as those do"
        )
    return f"{name} is of other devices or layouts: not even the CPU has a kernel for it"


def _operator(name: str, group: NativeFunction | NativeFunctionsGroup) -> Operator:
    if not isinstance(group, NativeFunctionsGroup) or not group.structured:
        raise SkeletonError(_by_hand(name, "a function", "`function:`", "its whole schema"))
    out = group.out
    if out.structured_inherits != "TensorIteratorBase":
        meta = f"a class that derives from at::meta::structured_{_identifier(group)}"
        raise SkeletonError(_by_hand(name, meta, "`class:`", "impl()"))
    return Operator(
        name=str(out.func.name),
        functional=str(group.functional.func.name),
        meta=f"structured_{_identifier(group)}",
        parameters=(
            *(_parameter(name, each) for each in out.func.arguments.flat_positional),
            *(_parameter(name, each, True) for each in out.func.arguments.flat_kwarg_only),
        ),
        out=out.func.arguments.out[0].name,
    )


def _identifier(group: NativeFunctionsGroup) -> str:
    return group.functional.func.name.unambiguous_name()


def _parameter(operator: str, argument: Argument, by_name: bool = False) -> Parameter:
    written = str(argument.type)
    if written != "Tensor" and written not in SCALARS:
        raise SkeletonError(
            f"{operator} takes {written} {argument.name}, which is not a parameter of a kernel as "
            "it is: write a class with impl() that computes the parameters of it, as `Clamp` in "
            "pointwise/ternary.cpp does, a row with `class:` and the kernel"
        )
    return Parameter(argument.name, written, by_name)


def _by_hand(name: str, what: str, key: str, with_what: str) -> str:
    return (
        f"{name} is not a structured function of elements, so its kernel has no skeleton. Write "
        f"by hand: {what} in a source of csrc/aten, with {with_what}; a row with {key} for it in "
        "csrc/aten/operators.yaml; its kernels in csrc/hal/kernels.yaml and csrc/kernels. "
        "csrc/kernels/README.md has the idioms"
    )
