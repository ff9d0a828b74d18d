# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose answer is computed by the CPU in double precision.

The inputs are small multiples of 1/128 and small integers, which differ from place to place without
a period. Sums and products of them are exact in float32, so that an element that a device leaves
out, takes twice or takes from another place changes the result by more than a rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.device import Device
from torch_conformance.authoring.programs import tensors

#: The dtype in which the truth of a result is computed: the widest that the CPU has.
WIDE: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}


class Inputs:
    """Makes the inputs of a program: the same numbers on each device and in each data type.

    Numbers are first rounded to `rounded`, by default to `dtype` itself.
    """

    def __init__(
        self, device: torch.device, dtype: torch.dtype, rounded: torch.dtype | None = None
    ) -> None:
        self.device = device
        self.dtype = dtype
        self._rounded = rounded or dtype

    def steps(self, *shape: int, seed: int = 0) -> Tensor:
        """Multiples of 1/128 between -8 and 8."""
        return self.of(_integers(shape, seed, -1024, 1024) / 128)

    def whole(self, *shape: int, seed: int = 0, limit: int = 3) -> Tensor:
        """Integers from -limit to limit, in the data type of the program."""
        return self.of(_integers(shape, seed, -limit, limit + 1))

    def index(self, *shape: int, below: int, seed: int = 0) -> Tensor:
        """int64 numbers from 0 to below - 1; the first two are 0 and below - 1."""
        numbers = _integers(shape, seed, 0, below).clone()
        numbers.view(-1)[:2] = torch.tensor([0, below - 1])[: numbers.numel()]
        return numbers.to(self.device)

    def order(self, *shape: int, seed: int = 0) -> Tensor:
        """int64 numbers from 0 up, each once, in no order."""
        return _permutation(math.prod(shape), seed).view(shape).to(self.device, copy=True)

    def distinct(self, *shape: int, seed: int = 0) -> Tensor:
        """Different integers in no order, in the data type of the program."""
        return self.order(*shape, seed=seed).to(self._rounded).to(self.dtype)

    def of(self, numbers: Any) -> Tensor:
        """Any numbers, in the data type of the program."""
        values = torch.as_tensor(numbers)
        return values.to(self._rounded).to(self.dtype).to(self.device, copy=True)

    def gradients(self, function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
        """The result of a function and its gradients, for weights that are small integers."""
        leaves = [x.detach().requires_grad_() for x in inputs]
        output = function(*leaves)
        weights = self.whole(*output.shape, seed=9)
        return [output, *torch.autograd.grad(output, leaves, weights)]


@lru_cache(maxsize=8)
def _integers(shape: tuple[int, ...], seed: int, low: int, high: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randint(low, high, shape, generator=generator)


@lru_cache(maxsize=4)
def _permutation(count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed + 1))


def agree_with_double(
    dev: Device,
    program: Callable[[Inputs], Any],
    dtype: torch.dtype = torch.float32,
    *,
    rtol: float | None = None,
    slack: float = 0.0,
) -> None:
    """Run a program on the device in `dtype` and on the CPU in double precision, and compare.

    The tolerance is that of the result's data type, widened by `rtol`, and by `slack` times the
    largest finite element of the result. Where the CPU itself does not keep it in a 16-bit type,
    the relative error may be twice the CPU's largest. Integers and truth values are exact.
    """
    __tracebackhide__ = True
    cpu = torch.device("cpu")
    expected = tensors(program(Inputs(cpu, WIDE.get(dtype, dtype), dtype)))
    actual = tensors(program(Inputs(dev.device(), dtype)))
    assert expected, "the program returned no tensor"
    assert len(actual) == len(expected)

    @cache
    def of_cpu() -> list[Tensor]:
        return tensors(program(Inputs(cpu, dtype)))

    for i, (got, wanted) in enumerate(zip(actual, expected, strict=True)):
        assert got.device.type == dev.type, f"a result is on {got.device}"
        _assert_close(dev, got, wanted.detach(), rtol or 0.0, slack, partial(_nth, of_cpu, i))


def _nth(results: Callable[[], list[Tensor]], place: int) -> Tensor:
    return results()[place]


def _assert_close(
    dev: Device,
    got: Tensor,
    wanted: Tensor,
    rtol: float,
    slack: float,
    of_cpu: Callable[[], Tensor],
) -> None:
    __tracebackhide__ = True
    if WIDE.get(got.dtype) == wanted.dtype:
        wanted = wanted.to(got.dtype)
    if not (wanted.is_floating_point() or wanted.is_complex()):
        dev.assert_equal(got, wanted)
        return
    relative, absolute = dev.tolerance(got.dtype)
    relative = max(relative, rtol)
    if slack:
        finite = wanted[wanted.isfinite()].abs()
        absolute = max(absolute, slack * float(finite.max()) if finite.numel() else 0.0)
    try:
        dev.assert_close(got, wanted, rtol=relative, atol=absolute)
    except AssertionError:
        if got.dtype not in (torch.float16, torch.bfloat16):
            raise
        relative = max(relative, 2 * _relative_error(of_cpu().detach(), wanted, absolute))
        dev.assert_close(got, wanted, rtol=relative, atol=absolute)


def _relative_error(got: Tensor, wanted: Tensor, atol: float) -> float:
    """The largest finite one, beyond an absolute error of `atol`."""
    exact = wanted.double()
    errors = ((got.double() - exact).abs() - atol) / exact.abs()
    finite = errors[errors.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0
