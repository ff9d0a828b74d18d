# SPDX-License-Identifier: BSD-3-Clause
"""Device tensors are printed and formatted as those of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check, ramp
from torch_conformance.checks.copy._copies import View

_PRINTED: dict[str, Callable[[], torch.Tensor]] = {
    "float32": lambda: ramp((2, 3)),
    "float64": lambda: ramp((2, 3), torch.float64),
    "bfloat16": lambda: ramp((2, 3), torch.bfloat16),
    "float64_range": lambda: torch.tensor([1e300, 1e-300, 1 / 3], dtype=torch.float64),
    "int64": lambda: ramp((2, 3), torch.int64),
    "int64_wide": lambda: torch.tensor([2**53 + 1, -(2**62) - 1]),
    "bool": lambda: ramp((5,), torch.bool),
    "complex64": lambda: ramp((2, 2), torch.complex64),
    "zero_dim": lambda: torch.tensor(2.5),
    "empty": lambda: torch.empty(0, 3),
    "special": lambda: torch.tensor([float("nan"), float("inf"), -0.0, 1e-10]),
    "summarised": lambda: ramp((40, 40)),
    "scientific": lambda: torch.tensor([1e-8, 1.0, 1e8]),
}

_PRINTED_VIEWS: dict[str, View] = {
    "strided": lambda x: x[::2, 1:],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(3, -1),
    "conj": lambda x: x.to(torch.complex64).conj(),
    "requires_grad": lambda x: x.detach().requires_grad_(),
    "grad_fn": lambda x: x.detach().requires_grad_() * 2,
}


def _without_device(tensor: torch.Tensor) -> str:
    """repr() of a tensor without its device and with every run of blanks as one."""
    text = " ".join(repr(tensor).split())
    if tensor.device.type == "cpu":
        return text
    mark = f", device='{tensor.device}'"
    assert mark in text, f"the representation does not name {tensor.device}: {text}"
    return text.replace(mark, "")


@check(
    "copy/repr",
    "COPY-028",
    cases=_PRINTED,
    needs=("plain_tensors",),
    case_needs={"bfloat16": "bfloat16", "complex64": "complex64"},
)
def representation_shows_values_and_device(dev: Device, case: str) -> None:
    """repr() of a device tensor reads as the CPU's with the device added."""
    source = _PRINTED[case]()
    if source.is_floating_point() or source.is_complex():
        dev.require("float64")  # torch formats numbers in it, on their device
    assert _without_device(source.to(dev.device())) == _without_device(source)


@check(
    "copy/repr_view",
    "COPY-028",
    cases=_PRINTED_VIEWS,
    needs=("float64", "plain_tensors"),
    case_needs={"conj": "complex64"},
)
def representation_of_views(dev: Device, case: str) -> None:
    """repr() of views and of tensors in a graph reads as the CPU's with the device added."""
    source = ramp((4, 6))
    view = _PRINTED_VIEWS[case]
    assert _without_device(view(source.to(dev.device()))) == _without_device(view(source))


@check("copy/format", "COPY-028", needs=("plain_tensors",))
def format_of_a_scalar_uses_its_value(dev: Device) -> None:
    """An f-string with a format applies it to the value of a 0-dim tensor."""
    x = torch.tensor(3.14159, device=dev.device())
    assert f"{x:.2f}" == "3.14"
    assert f"{torch.tensor(5, device=dev.device()):03d}" == "005"
