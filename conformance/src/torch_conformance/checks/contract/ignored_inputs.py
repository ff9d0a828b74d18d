# SPDX-License-Identifier: BSD-3-Clause
"""A product of matrices ignores the input whose factor is zero."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, agree, check, gradients, noise

_A, _B = noise((3, 5)), noise((5, 4), seed=1)

#: A product of matrices that is added to an input: its name, shape and operands.
_PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[Tensor, ...]]] = {
    "addmm": ((3, 4), (_A, _B)),
    "addmv": ((3,), (_A, _B[:, 0])),
    "addr": ((3, 4), (_A[:, 0], _B[0])),
    "addbmm": ((3, 4), (_A.expand(2, 3, 5), _B.expand(2, 5, 4))),
    "baddbmm": ((2, 3, 4), (_A.expand(2, 3, 5), _B.expand(2, 5, 4))),
    "addmm_inner_empty": ((3, 4), (_A[:, :0], _B[:0])),
    "addmv_inner_empty": ((3,), (_A[:, :0], _B[:0, 0])),
    "addbmm_inner_empty": ((3, 4), (_A.expand(2, 3, 5)[..., :0], _B.expand(2, 5, 4)[:, :0])),
    "baddbmm_inner_empty": ((2, 3, 4), (_A.expand(2, 3, 5)[..., :0], _B.expand(2, 5, 4)[:, :0])),
}

#: How a product is called: with its name, input and operands.
_CALLS: dict[str, Callable[..., Tensor]] = {
    "returned": lambda name, x, *given: getattr(torch, name)(x, *given, beta=0, alpha=2),
    "in_place": lambda name, x, *given: getattr(x, name + "_")(*given, beta=0, alpha=2),
    "out": lambda name, x, *given: getattr(torch, name)(
        x, *given, beta=0, alpha=2, out=torch.full_like(x, float("nan"))
    ),
    "out_is_input": lambda name, x, *given: getattr(torch, name)(x, *given, beta=0, alpha=2, out=x),
}
#: Values that would show if they were multiplied by zero.
_LOUD = (float("nan"), float("inf"))


def _strides(x: Tensor) -> list[Tensor]:
    """The same elements in row-major and in column-major order."""
    return [x, x.mT.contiguous().mT] if x.dim() > 1 else [x]


@check(
    "contract/ignored_input",
    "CONTRACT-005",
    cases=_PRODUCTS,
    dtypes=("float32", "bfloat16", "float64"),
)
def a_factor_of_zero_ignores_the_input(dev: Device, case: str, dtype: torch.dtype) -> None:
    """With beta=0 NaN and infinity of the input do not reach the result of any form of the call."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float64", "bfloat16"})
    name = case.removesuffix("_inner_empty")
    shape, operands = _PRODUCTS[case]
    given = [operand.to(dtype) for operand in operands]
    there = [operand.to(dev.device()) for operand in given]
    expected = getattr(torch, name)(torch.zeros(shape, dtype=dtype), *given, beta=0, alpha=2)
    for loud in _LOUD:
        for call in _CALLS.values():
            for x in _strides(torch.full(shape, loud, dtype=dtype)):
                dev.assert_close(call(name, x.to(dev.device()), *there), expected)


@check("contract/ignored_input_row", "CONTRACT-005", cases=("addmm", "addbmm", "baddbmm", "addr"))
def a_factor_of_zero_ignores_a_row(dev: Device, case: str) -> None:
    """With beta=0 an input that is expanded, or of infinities, is ignored as well."""
    shape, operands = _PRODUCTS[case]
    there = [operand.to(dev.device()) for operand in operands]
    expected = getattr(torch, case)(torch.zeros(shape), *operands, beta=0)
    for loud in _LOUD:
        row = torch.full(shape[-1:], loud, device=dev.device())
        dev.assert_close(getattr(torch, case)(row, *there, beta=0), expected)


@check("contract/ignored_gradient", "CONTRACT-005", cases=("addmm", "addmv", "addbmm", "baddbmm"))
def an_ignored_input_has_no_gradient(dev: Device, case: str) -> None:
    """With beta=0 the gradient of an input of NaN is zero, and those of the factors are right."""
    shape, operands = _PRODUCTS[case]

    def program(device: torch.device) -> list[Tensor]:
        x = torch.full(shape, float("nan")).to(device).requires_grad_()
        leaves = [operand.to(device, copy=True).requires_grad_() for operand in operands]
        return gradients(getattr(torch, case)(x, *leaves, beta=0, alpha=2), x, *leaves)

    agree(dev, program)
