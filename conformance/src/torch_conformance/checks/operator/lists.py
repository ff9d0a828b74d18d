# SPDX-License-Identifier: BSD-3-Clause
"""Operators that take lists of tensors, or change the tensors in them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, ramp
from torch_conformance.checks.operator._programs import ints, x2, x3

_LISTS: dict[str, Program] = {
    "foreach_add": lambda d: torch._foreach_add(_list(d), _list(d), alpha=2),
    "foreach_mul_scalar": lambda d: torch._foreach_mul(_list(d), 2.5),
    "foreach_complex_number": lambda d: (
        torch._foreach_mul(_list(d), 2j) + torch._foreach_sub(_list(d), 1 + 2j)
    ),
    "foreach_scalars": lambda d: torch._foreach_mul(_list(d), [1.0, 2.0, 3.0]),
    "foreach_in_place": lambda d: _mutated(torch._foreach_add_, d, 1.5),
    "foreach_div_in_place": lambda d: _mutated(torch._foreach_div_, d, [2.0, 4.0, 8.0]),
    "foreach_addcdiv": lambda d: torch._foreach_addcdiv(
        _list(d), _list(d), _list(d), [1.0, 2.0, 3.0]
    ),
    "foreach_addcmul_in_place": lambda d: _mutated(
        torch._foreach_addcmul_, d, _list(d), _list(d), value=0.5
    ),
    "foreach_norm": lambda d: torch._foreach_norm(_list(d)),
    "foreach_sqrt": lambda d: torch._foreach_sqrt(torch._foreach_abs(_list(d))),
    "foreach_zero": lambda d: _mutated(torch._foreach_zero_, d),
    "foreach_copy": lambda d: _mutated(torch._foreach_copy_, d, torch._foreach_neg(_list(d))),
    "foreach_lerp": lambda d: torch._foreach_lerp(_list(d), torch._foreach_neg(_list(d)), 0.25),
    "foreach_maximum": lambda d: torch._foreach_maximum(_list(d), 1.0),
    "foreach_pow": lambda d: torch._foreach_pow(_list(d), 2),
    "foreach_types": lambda d: torch._foreach_mul(_of_types(d), 2.0),
    "foreach_types_in_place": lambda d: _types_mutated(d),
    "foreach_types_norm": lambda d: torch._foreach_norm(_of_types(d)),
    "cat": lambda d: torch.cat([x.flatten() for x in _list(d)]),
    "cat_mixed": lambda d: torch.cat([_list(d)[0], _list(d)[0].int(), _list(d)[0].half()]),
    "stack": lambda d: torch.stack([x2(d), x2(d) * 2, x2(d)], 1),
    "block_diag": lambda d: torch.block_diag(*[x.view(-1, 2) for x in _list(d)[::2]]),
    "broadcast_tensors": lambda d: torch.broadcast_tensors(x2(d), x2(d)[0], x2(d)[:, :1]),
    "einsum": lambda d: torch.einsum("ij,kj,k->i", x2(d), x2(d), x2(d)[:, 0]),
    "chain_matmul": lambda d: torch.linalg.multi_dot([x2(d), x2(d).t(), x2(d)]) / 1e3,
    "index_lists": lambda d: torch.ops.aten.index(x3(d), [None, ints(d, 2, 0), None]),
    "clip_grad_norm": lambda d: _clipped(d),
    "cat_many": lambda d: torch.cat(_many(d)),
    "stack_many": lambda d: torch.stack([x[0] for x in _many(d)]),
    "foreach_many": lambda d: torch._foreach_add(_many(d), 1.5),
    "foreach_many_in_place": lambda d: _many_mutated(d),
}


def _list(device: torch.device) -> list[Tensor]:
    return [ramp(shape).to(device, copy=True) for shape in ((4,), (2, 3), (1, 2, 3))]


def _of_types(device: torch.device) -> list[Tensor]:
    """Alike but for their data types."""
    types = (torch.float32, torch.float16, torch.float32)
    return [ramp((2, 3)).to(device, dtype, copy=True) for dtype in types]


def _types_mutated(device: torch.device) -> list[Tensor]:
    tensors = _of_types(device)
    torch._foreach_addcmul_(tensors, _of_types(device), _of_types(device), value=0.5)
    return tensors


def _many(device: torch.device) -> list[Tensor]:
    """More tensors, of more sizes, than one launch takes."""
    return [ramp((1 + n % 7,)).to(device) + n for n in range(401)]


def _many_mutated(device: torch.device) -> list[Tensor]:
    tensors, others = _many(device), _many(device)
    torch._foreach_mul_(tensors, 2)
    torch._foreach_addcmul_(tensors, others, others, value=0.5)
    return tensors


def _mutated(operator: Any, device: torch.device, *arguments: Any, **keywords: Any) -> list[Tensor]:
    tensors = _list(device)
    operator(tensors, *arguments, **keywords)
    return tensors


def _clipped(device: torch.device) -> list[Tensor]:
    parameters = [torch.nn.Parameter(x) for x in _list(device)]
    for parameter in parameters:
        parameter.grad = parameter.detach() * 3
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    return [norm, *(p.grad for p in parameters if p.grad is not None)]


@check(
    "operator/tensor_list",
    "OP-009",
    cases=tuple(_LISTS),
    case_needs={
        **{name: "float16" for name in _LISTS if "types" in name},
        "foreach_complex_number": "complex64",
    },
)
def lists_of_tensors_are_read_and_written(dev: Device, case: str) -> None:
    """Operators that take lists, and those that change the tensors in them, agree with the CPU."""
    agree(dev, _LISTS[case], rtol=1e-5, atol=1e-4)
