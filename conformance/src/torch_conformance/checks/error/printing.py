# SPDX-License-Identifier: BSD-3-Clause
"""Every device tensor can be printed."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import Device, check

_PRINTED: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "float32": lambda d: torch.arange(6.0, device=d).reshape(2, 3) / 3,
    "int64": lambda d: torch.arange(4, device=d),
    "bool": lambda d: torch.tensor([True, False], device=d),
    "zero_dim": lambda d: torch.tensor(2.5, device=d),
    "empty": lambda d: torch.empty(0, 3, device=d),
    "non_finite": lambda d: torch.tensor([float("nan"), float("inf"), -1.0], device=d),
    "strided": lambda d: torch.arange(12.0, device=d).reshape(3, 4).t()[::2],
    "requires_grad": lambda d: torch.ones(2, device=d, requires_grad=True),
    "large": lambda d: torch.arange(3000.0, device=d),
    "parameter": lambda d: torch.nn.Parameter(torch.ones(2, device=d)),
    "float64": lambda d: torch.ones(2, device=d, dtype=torch.float64) / 3,
    "float16": lambda d: torch.ones(2, device=d).to(torch.float16) / 3,
    "bfloat16": lambda d: torch.ones(2, device=d).to(torch.bfloat16) / 3,
    "complex64": lambda d: torch.tensor([1 + 2j, -3j], device=d),
    "conjugate": lambda d: torch.tensor([1 + 2j, -3j], device=d).conj(),
}
_PRINTED_NEEDS = {
    **{name: name for name in ("float64", "float16", "bfloat16", "complex64")},
    "conjugate": "complex64",
}


@check(
    "error/printing",
    "ERR-008",
    cases=_PRINTED,
    needs=("plain_tensors",),
    case_needs=_PRINTED_NEEDS,
)
def every_tensor_can_be_printed(dev: Device, case: str) -> None:
    """repr() of a device tensor shows the values the CPU shows, and the device."""
    on_cpu = _PRINTED[case](torch.device("cpu"))
    if on_cpu.numel() and (on_cpu.is_floating_point() or on_cpu.is_complex()):
        dev.require("float64")  # torch formats such numbers in it, on their device
    x = _PRINTED[case](dev.device())
    text = repr(x)
    shown = text.replace(f", device='{x.device}'", "")
    assert "".join(shown.split()) == "".join(repr(on_cpu).split()), f"{text}\nis not\n{on_cpu}"
    if dev.is_accelerator:
        assert str(x.device) in text
