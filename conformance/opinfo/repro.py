# SPDX-License-Identifier: BSD-3-Clause
"""Self-contained code that repeats one sample on the device and on the CPU; needs only torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from conformance.descriptor import Descriptor

# Tensors up to this size are written out; larger ones are drawn anew in the same range.
WRITTEN_OUT = 64


def snippet(op: Any, sample: Any, target: Descriptor) -> str:
    """Python code for one sample of an operator."""
    imports = (*target.import_before_torch, *target.import_after_torch)
    values = _Values()
    arguments = [values.render(value) for value in (sample.input, *sample.args)]
    keywords = [f"{name}={values.render(value)}" for name, value in sample.kwargs.items()]
    call = ", ".join([*arguments, *keywords])
    lines = [f"import {name}" for name in ("torch", *imports)]
    lines += _callable_lines(op)
    lines += ["def run(device):"]
    lines += [f"    {line}" for line in values.lines]
    lines += [f"    return op({call})"]
    lines += [f'print("device:", run("{target.device_type}"))', 'print("cpu:   ", run("cpu"))']
    return "\n".join(lines)


def _callable_lines(op: Any) -> list[str]:
    path = _public_path(op)
    if path is not None:
        return [f"op = {path}"]
    return [
        "from torch.testing._internal.common_methods_invocations import op_db",
        f"op = next(o for o in op_db if (o.name, o.variant_test_name) == "
        f"({op.name!r}, {op.variant_test_name!r}))",
    ]


def _public_path(op: Any) -> str | None:
    """Where the operator's function lives below torch, if it is what the database runs."""
    for path in (f"torch.{op.name}", f"torch.Tensor.{op.name}"):
        found: Any = torch
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        if found is not None and found is op.op:
            return path
    return None


class _Values:
    """Renders argument values; tensors become lines of their own."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def render(self, value: Any) -> str:
        if isinstance(value, Tensor):
            name = f"x{len(self.lines)}"
            self.lines.append(f"{name} = {_tensor(value)}")
            return name
        if type(value) in (list, tuple):
            items = ", ".join(self.render(item) for item in value)
            comma = "," if type(value) is tuple and len(value) == 1 else ""
            return f"[{items}]" if type(value) is list else f"({items}{comma})"
        if isinstance(value, torch.device) or value == "cpu":
            return "device"
        if isinstance(value, float) and value != value:
            return "float('nan')"
        if isinstance(value, float) and value in (float("inf"), -float("inf")):
            return f"float('{value}')"
        return repr(value)


def _tensor(tensor: Tensor) -> str:
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.layout != torch.strided:
        return f"{_tensor(plain.to_dense())}.to_sparse()"
    shape = tuple(plain.shape)
    if plain.numel() <= WRITTEN_OUT:
        values = str(plain.flatten().tolist()).replace("nan", "float('nan')")
        values = values.replace("inf", "float('inf')")
        text = f"torch.tensor({values}, dtype={plain.dtype}).reshape({shape})"
    else:
        text = _drawn(plain, shape)
    if not plain.is_contiguous() and 0 not in plain.stride():
        size = sum((n - 1) * s for n, s in zip(shape, plain.stride(), strict=True)) + 1
        text = (
            f"torch.empty({size}, dtype={plain.dtype}, device=device)"
            f".as_strided({shape}, {plain.stride()}).copy_({text})"
        )
    else:
        text += ".to(device)"
    return text + (".conj()" if tensor.is_conj() else "")


def _drawn(plain: Tensor, shape: tuple[int, ...]) -> str:
    text = f"torch.testing.make_tensor({shape}, dtype={plain.dtype}, device='cpu'"
    if not plain.is_complex() and plain.dtype != torch.bool and bool(plain.isfinite().all()):
        low, high = plain.min().item(), plain.max().item()
        text += f", low={low}, high={high + 1 if isinstance(high, int) else high}"
    return text + ")"
