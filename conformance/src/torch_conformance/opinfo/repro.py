# SPDX-License-Identifier: BSD-3-Clause
"""Self-contained code that repeats one sample on the device and on the CPU; needs only torch."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any

import torch
from torch import Tensor

from torch_conformance.opinfo.sample import Sample
from torch_conformance.spec.descriptor import Descriptor

# Tensors up to this size are written out; larger ones are random in the same range.
WRITTEN_OUT = 64


@dataclass(frozen=True)
class Recipe:
    """How a topic uses an operator: which function of its, and the lines that call it.

    In the lines, {call} stands for all arguments, {input} for the first, {tensors} for all tensors.
    """

    function: str = "op"
    lines: tuple[str, ...] = ("return op({call})",)


#: Shows what the call raises.
RAISES = Recipe(
    "op",
    (
        "try:",
        "    op({call})",
        "except Exception as error:",
        "    return repr(error)",
        "return 'nothing is raised'",
    ),
)


def snippet(op: Any, sample: Sample, target: Descriptor, recipe: Recipe) -> str:
    """Python code for one sample of an operator."""
    imports = (*target.imports.before_torch, *target.imports.after_torch)
    values = _Values()
    arguments = [values.render(value) for value in (sample.input, *sample.args)]
    keywords = [f"{name}={values.render(value)}" for name, value in sample.kwargs.items()]
    words = {
        "{call}": ", ".join([*arguments, *keywords]),
        "{input}": arguments[0],
        "{tensors}": ", ".join(values.names),
    }
    lines = [f"import {name}" for name in ("torch", *imports)]
    lines += _callable_lines(op, recipe.function)
    lines += ["def run(device):"]
    lines += [f"    {line}" for line in values.lines]
    lines += [f"    {_filled(line, words)}" for line in recipe.lines]
    lines += [f'print("device:", run("{target.device_type}"))', 'print("cpu:   ", run("cpu"))']
    return "\n".join(lines)


def _filled(line: str, words: dict[str, str]) -> str:
    for word, text in words.items():
        line = line.replace(word, text)
    return line


def _callable_lines(op: Any, attribute: str) -> list[str]:
    path = _public_path(op, attribute)
    if path is not None:
        return [f"op = {path}"]
    found = f"(o.name, o.variant_test_name) == ({op.name!r}, {op.variant_test_name!r})"
    return [
        "from torch.testing._internal.common_methods_invocations import op_db",
        f"op = next(o for o in op_db if {found}).{attribute}",
    ]


def _public_path(op: Any, attribute: str) -> str | None:
    """Where the operator's function lives below torch, if it is what the database runs."""
    suffix = "_" if attribute == "inplace_variant" else ""
    for path in (f"torch.{op.name}{suffix}", f"torch.Tensor.{op.name}{suffix}"):
        found: Any = torch
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        if found is not None and found is getattr(op, attribute):
            return path
    return None


class _Values:
    """Renders argument values; tensors become lines of their own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: list[str] = []
        self._known: dict[int, str] = {}

    def render(self, value: Any) -> str:
        if isinstance(value, Tensor):
            if id(value) not in self._known:
                name = f"x{len(self.lines)}"
                grad = ".requires_grad_()" if value.requires_grad else ""
                self.lines.append(f"{name} = {_tensor(value)}{grad}")
                self.names.append(name)
                self._known[id(value)] = name
            return self._known[id(value)]
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
        if hasattr(type(value), "__members__"):  # an enum, of Python or of C++
            return f"{type(value).__module__}.{type(value).__qualname__}.{value.name}"
        if is_dataclass(value) and getattr(torch.nn, type(value).__name__, None) is type(value):
            return f"torch.nn.{value!r}"
        return repr(value)


def _tensor(tensor: Tensor) -> str:
    if tensor.is_conj():
        return f"{_tensor(tensor.conj())}.conj()"
    if tensor.is_neg():
        return f"torch._neg_view({_tensor(torch._neg_view(tensor))})"
    plain = tensor.detach().cpu()
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
    return text


def _drawn(plain: Tensor, shape: tuple[int, ...]) -> str:
    text = f"torch.testing.make_tensor({shape}, dtype={plain.dtype}, device='cpu'"
    if plain.dtype.is_floating_point and plain.dtype.itemsize == 1:
        plain = plain.float()  # float8 has neither isfinite nor min
    if not plain.is_complex() and plain.dtype != torch.bool and bool(plain.isfinite().all()):
        low, high = plain.min().item(), plain.max().item()
        text += f", low={low}, high={high + 1 if isinstance(high, int) else high}"
    return text + ")"
