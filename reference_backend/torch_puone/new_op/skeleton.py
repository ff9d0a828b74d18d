# SPDX-License-Identifier: BSD-3-Clause
"""The pieces of an elementwise operator, as text."""

from __future__ import annotations

from dataclasses import dataclass

from . import element_types
from .operators import SCALARS, Operator, Parameter

_LICENCE = "SPDX-License-Identifier: BSD-3-Clause"


@dataclass(frozen=True)
class Choices:
    """What PyTorch's table does not say.

    Attributes:
        source: below csrc/aten, such as "pointwise/binary.cpp".
        family: of the kernel, a source of csrc/kernels without its suffix.
        types: words of the row's `types`.
        formula: C++ of the result, with the names of operands and parameters; None leaves it open.
        computes: the same for people.
    """

    source: str
    family: str
    types: list[str]
    formula: str | None
    computes: str


@dataclass(frozen=True)
class Skeleton:
    """The pieces. `aten_class` is "" where a class of csrc/aten/core serves."""

    kernel_name: str
    functor_name: str
    row: str
    kernel_row: str
    aten_class: str
    functor: str
    definition: str
    test: str


def write(operator: Operator, choices: Choices) -> Skeleton:
    """The pieces of an operator."""
    name = operator.base
    functor = "".join(part.title() for part in name.split("_"))
    types = element_types.of_kernel(choices.types)
    plain = all(each.type in ("Scalar", "bool") for each in operator.scalars)
    return Skeleton(
        kernel_name=name,
        functor_name=functor,
        row=_row(operator, choices, "" if plain else functor),
        kernel_row=_kernel_row(operator, choices, types),
        aten_class="" if plain else _class(operator, choices, functor),
        functor=_functor(operator, choices, functor),
        definition=f"PUONE_KERNEL({name}) = "
        f"elementwiseKernel<{functor}, {element_types.in_cpp(types)}>;",
        test=_test(operator, choices),
    )


def operands(operator: Operator) -> list[str]:
    """What the contract and the functor call the operands."""
    by_number = {1: ["x"], 2: ["a", "b"]}
    tensors = operator.tensors
    named = ["x" if each.name == "self" else each.name for each in tensors]
    return by_number.get(len(tensors), named)


def _row(operator: Operator, choices: Choices, class_name: str) -> str:
    if class_name:
        return f"{{func: {operator.name}, class: {class_name}, kernel: {operator.base}}}"
    adaptor = "class: WithScalars, " if operator.scalars else ""
    types = choices.types[0] if len(choices.types) == 1 else f"[{', '.join(choices.types)}]"
    return f"{{func: {operator.name}, {adaptor}kernel: {operator.base}, types: {types}}}"


def _kernel_row(operator: Operator, choices: Choices, types: str) -> str:
    names = ", ".join(each.name for each in operator.scalars)
    parameters = f"parameters: [{names}], " if names else ""
    text = choices.computes.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f"{operator.base}: {{types: {types}, in: [{', '.join(operands(operator))}], "
        f'{parameters}computes: "{text}"}}'
    )


def _functor(operator: Operator, choices: Choices, name: str) -> str:
    """A functor without a formula does not compile, so nobody gets wrong numbers from it."""
    names = operands(operator)
    if choices.formula is not None and not operator.scalars and len(names) < 3:
        macro = "PUONE_UNARY" if len(names) == 1 else "PUONE_BINARY"
        return f"{macro}({name}, {choices.formula});"
    body = (
        f'    static_assert(sizeof(T) == 0, "{operator.base}: write the formula");\n'
        f"    return {names[0]};"
        if choices.formula is None
        else f"    return {choices.formula};"
    )
    arguments = ", ".join(f"T {each}" for each in names)
    lines = ["template <class T>", f"struct {name} {{"]
    if scalars := operator.scalars:
        values = ", ".join(f"{each.name}(p.get<T>({i}))" for i, each in enumerate(scalars))
        lines.append(f"  explicit {name}(const Parameters& p) : {values} {{}}")
    lines += [f"  PUONE_FN auto operator()({arguments}) const {{", body, "  }"]
    if scalars:
        lines.append(f"  T {', '.join(each.name for each in scalars)};")
    return "\n".join([*lines, "};"])


def _class(operator: Operator, choices: Choices, name: str) -> str:
    """The class of a row whose scalars are not all of type Scalar or bool."""
    types = {"Tensor": "const at::Tensor&", **SCALARS}
    arguments = [
        f"{types[each.type]} " + (f"/*{each.name}*/" if each.type == "Tensor" else each.name)
        for each in operator.parameters
    ]
    arguments.append("const at::Tensor& /*out*/")
    sets = {"bool": "kBoolType", "integral": "kIntegerTypes", "reals": "kRealTypes"}
    sets |= {"complexes": "kComplexTypes", "integers": "kIntegers", "ordered": "kOrdered"}
    sets |= {"inexact": "kInexact", "numbers": "kNumbers"}
    allowed = " | ".join(sets[word] for word in choices.types)
    scalars = ", ".join(each.name for each in operator.scalars)
    kernel = f"kernel::{operator.base}"
    return (
        f"struct {name} : at::meta::{operator.meta} {{\n"
        f"  void impl({', '.join(arguments)}) {{\n"
        f"    checkType({kernel}.name(), common_dtype(), {allowed});\n"
        f"    launchElementwise({kernel}, *this, common_dtype(), {{{scalars}}});\n"
        "  }\n};"
    )


def _test(operator: Operator, choices: Choices) -> str:
    name, _, overload = operator.functional.partition(".")
    function = f"torch.ops.aten.{name}.{overload or 'default'}"
    arguments = ", ".join(
        (f"{each.name}=" if each.by_name else "") + _example(operator, each)
        for each in operator.parameters
    )
    dtypes = ", ".join(f"torch.{each}" for each in element_types.dtypes(choices.types))
    out = function.rpartition(".")[0] + f".{operator.name.partition('.')[2]}"
    return f'''\
# {_LICENCE}
"""{operator.functional} on the device is what it is on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import torch_puone as puone

OPERANDS = {len(operator.tensors)}
DTYPES = [{dtypes}]
# What rounding allows is that of the CPU, which computes in the next larger type.
LARGER = {{
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}}


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """None of these tests may borrow the operator from the CPU."""
    yield
    assert not puone._fallback_counts()


def call(tensors: list[Tensor]) -> Tensor:
    """The operator with all arguments."""
    return {function}({arguments})


def operands(dtype: torch.dtype, *shape: int) -> list[Tensor]:
    """Tensors of the CPU, with numbers between 0 and 1, and at most 4 for integers."""
    if dtype.is_floating_point or dtype.is_complex:
        made = [torch.rand(shape, dtype=LARGER.get(dtype, dtype)) for _ in range(OPERANDS)]
    else:
        made = [torch.randint(0, 2 if dtype == torch.bool else 5, shape) for _ in range(OPERANDS)]
    return [each.to(dtype) for each in made]


def check(tensors: list[Tensor]) -> None:
    """The result of the device is that of the CPU."""
    result = call([each.to("puone") for each in tensors])
    larger = [each.to(LARGER.get(each.dtype, each.dtype)) for each in tensors]
    expected = call(larger).to(result.dtype)
    assert result.dtype == call([each.to("meta") for each in tensors]).dtype
    torch.testing.assert_close(result.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (5, 33)])
def test_the_result_is_that_of_the_cpu(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    check(operands(dtype, *shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_may_have_strides_and_be_broadcast(dtype: torch.dtype) -> None:
    first, *others = operands(dtype, 6, 8)
    check([first.t()[::2], *(each.t()[:1, ::3][:, :1] for each in others)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_given_result_is_written(dtype: torch.dtype) -> None:
    tensors = [each.to("puone") for each in operands(dtype, 4, 5)]
    expected = call(tensors)
    out = torch.empty(5, 4, dtype=expected.dtype, device="puone").t()
    {out}({arguments}, {operator.out}=out)
    assert torch.equal(out.cpu(), expected.cpu())
'''


def _example(operator: Operator, parameter: Parameter) -> str:
    if parameter.type == "Tensor":
        return f"tensors[{operator.tensors.index(parameter)}]"
    return {"bool": "True", "float": "0.5"}.get(parameter.type, "2")
