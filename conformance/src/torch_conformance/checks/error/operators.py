# SPDX-License-Identifier: BSD-3-Clause
"""Operators that have no kernel for the device raise, or run on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, raised


def _triple_each(xs: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
    for x, out in zip(xs, outs, strict=True):
        out.copy_(x * 3)


@functools.cache
def _library() -> torch.library.Library:
    """Operators that no backend can know: one without kernels, one with a CPU kernel only."""
    library = torch.library.Library("conformance_error", "DEF")
    library.define("missing(Tensor x) -> Tensor")
    library.define("cpu_only(Tensor x) -> Tensor")
    library.impl("cpu_only", lambda x: x * 3, "CPU")
    library.define("cpu_only_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("cpu_only_", lambda x: x.mul_(3), "CPU")
    library.define("cpu_only_lists(Tensor[] xs, Tensor(a!)[] outs) -> ()")
    library.impl("cpu_only_lists", _triple_each, "CPU")
    return library


def _missing_operator_error(x: torch.Tensor) -> NotImplementedError:
    """The error of calling an operator that has no kernel."""
    _library()
    error = raised(lambda: torch.ops.conformance_error.missing(x))
    assert isinstance(error, NotImplementedError), f"{type(error).__name__}: {error}"
    return error


@check("error/operator:kind", "ERR-006")
def a_missing_operator_raises_not_implemented(dev: Device) -> None:
    """An operator without any kernel raises NotImplementedError."""
    _missing_operator_error(torch.ones(3, device=dev.device()))


@check("error/operator:names_operator", "ERR-006")
def the_error_of_a_missing_operator_names_it(dev: Device) -> None:
    """The error of an operator without any kernel names the operator."""
    error = _missing_operator_error(torch.ones(3, device=dev.device()))
    assert "conformance_error::missing" in str(error), str(error)


@check("error/operator:usable_after", "ERR-006")
def a_missing_operator_leaves_its_operand_usable(dev: Device) -> None:
    """After the error of a missing operator its operand can be computed with."""
    x = torch.ones(3, device=dev.device())
    _missing_operator_error(x)
    dev.assert_equal(x + 1, torch.full((3,), 2.0))


def _in_lists(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    torch.ops.conformance_error.cpu_only_lists([x, x], [torch.zeros_like(x), out])
    return out


#: name -> (a call of a CPU operator, what its operand of ones holds afterwards).
_CPU_ONLY: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "functional": (lambda x: torch.ops.conformance_error.cpu_only(x), 1.0),
    "in_place": (lambda x: torch.ops.conformance_error.cpu_only_(x), 3.0),
    "in_place_view": (
        lambda x: torch.ops.conformance_error.cpu_only_(x.expand(2, 3).t()[:, 0]),
        3.0,
    ),
    "lists": (_in_lists, 1.0),
}


@check("error/operator_cpu_only", "ERR-007", cases=_CPU_ONLY)
def an_operator_of_the_cpu_falls_back_or_raises(dev: Device, case: str) -> None:
    """An operator with a CPU kernel only gives the right result on the device, or raises."""
    _library()
    call, left = _CPU_ONLY[case]
    x = torch.ones(3, device=dev.device())
    try:
        result = call(x)
    except NotImplementedError as error:
        assert "conformance_error::cpu_only" in str(error), str(error)
        return
    assert result.device == x.device
    dev.assert_equal(result, torch.full((3,), 3.0))
    dev.assert_equal(x, torch.full((3,), left))
