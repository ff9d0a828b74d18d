# SPDX-License-Identifier: BSD-3-Clause
"""Scaled dot product attention: its gradients, forms, dropout and memory."""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from torch_conformance.authoring.api import (
    Device,
    Program,
    agree,
    check,
    gradients,
    leaf,
    noise,
    ramp,
)
from torch_conformance.authoring.backend import first_line


def _attention(heads: int = 4, lengths: tuple[int, int] = (5, 6), **options: Any) -> Program:
    mask = options.pop("mask", None)

    def program(device: torch.device) -> list[Tensor]:
        q = leaf(device, 2, 4, lengths[0], 8)
        k, v = (leaf(device, 2, heads, lengths[1], 8, seed=seed) for seed in (1, 2))
        keywords = dict(options)
        if mask == "bool":
            keywords["attn_mask"] = (ramp((5, 6)) > -20).to(device)
        elif mask == "row":
            keywords["attn_mask"] = torch.arange(5, device=device)[:, None] != 2
        elif mask == "float":
            keywords["attn_mask"] = (ramp((2, 1, 5, 6)) / 30).to(device)
        out = functional.scaled_dot_product_attention(q, k, v, **keywords)
        return gradients(out, q, k, v)

    return program


def _wide(device: torch.device) -> list[Tensor]:
    """Rows of 256 elements, as many as fused kernels of today take, and of more."""
    results: list[Tensor] = []
    for size in (256, 257):
        q, k, v = (leaf(device, 1, 2, 5, size, seed=seed) for seed in range(3))
        results += gradients(functional.scaled_dot_product_attention(q, k, v), q, k, v)
    return results


def _no_keys(device: torch.device) -> list[Tensor]:
    """A result of zeros, in memory that may hold what was there before."""
    q = leaf(device, 2, 4, 131, 8)
    k, v = (leaf(device, 2, 4, 0, 8) for _ in range(2))
    for _ in range(3):
        torch.full((2, 4, 131, 8), 7.0, device=device)
        out = functional.scaled_dot_product_attention(q, k, v)
    return gradients(out, q, k, v)


def _transposed(device: torch.device) -> list[Tensor]:
    """Elements of one row are not neighbours in memory, nor are those of its gradients."""
    q = leaf(device, 2, 4, 8, 5)
    k, v = (leaf(device, 2, 4, 8, 6, seed=seed) for seed in (1, 2))
    out = functional.scaled_dot_product_attention(q.mT, k.mT, v.mT)
    return gradients(out, q, k, v)


def _multi_head(device: torch.device) -> list[Tensor]:
    torch.manual_seed(5)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).to(device)
    x = leaf(device, 2, 5, 8)
    out, weights = module(x, x, x, need_weights=True)
    return [*gradients(out, x, *module.parameters()), weights]


def _encoder(device: torch.device) -> Tensor:
    torch.manual_seed(5)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    with torch.inference_mode():
        out: Tensor = layer.eval().to(device)(noise((2, 5, 8)).to(device))
    return out.clone()


_ATTENTION: dict[str, Program] = {
    "plain": _attention(),
    "causal": _attention(is_causal=True),
    "long": _attention(lengths=(131, 261)),
    "long_causal": _attention(lengths=(261, 131), is_causal=True),
    "longer_causal": _attention(lengths=(523, 521), is_causal=True),
    "bool_mask": _attention(mask="bool"),
    "float_mask": _attention(mask="float"),
    "empty_row": _attention(mask="row"),
    "no_keys": _no_keys,
    "no_queries": _attention(lengths=(0, 131)),
    "scale": _attention(scale=0.3),
    "wide": _wide,
    "grouped_query": _attention(heads=2, enable_gqa=True),
    "grouped_query_causal": _attention(heads=1, enable_gqa=True, is_causal=True),
    "transposed": _transposed,
    "multi_head": _multi_head,
    "encoder_fast_path": _encoder,
}


@check("operator/attention", "OP-012", cases=tuple(_ATTENTION))
def attention_agrees_forward_and_backward(dev: Device, case: str) -> None:
    """Scaled dot product attention, masked, causal and grouped, agrees with the CPU."""
    agree(dev, _ATTENTION[case], rtol=1e-4, atol=1e-5)


def _composed_on_cpu(device: torch.device, program: Program) -> list[Tensor]:
    """The CPU's own form of attention has no second derivative, its composition has."""
    forms = [SDPBackend.MATH] if device.type == "cpu" else list(_FORMS)
    with sdpa_kernel(forms):
        results: list[Tensor] = program(device)
    return results


def _second(heads: int = 4, **options: Any) -> Program:
    mask = options.pop("mask", None)

    def program(device: torch.device) -> list[Tensor]:
        q = leaf(device, 2, 4, 5, 8)
        k, v = (leaf(device, 2, heads, 6, 8, seed=seed) for seed in (1, 2))
        if mask is not None:
            options["attn_mask"] = mask.to(device)
        out = functional.scaled_dot_product_attention(q, k, v, **options)
        weight = noise(out.shape, seed=9).to(device)
        first = torch.autograd.grad(out, (q, k, v), weight, create_graph=True)
        total = torch.stack([(g * g.detach().cos()).sum() for g in first]).sum()
        return [*first, *torch.autograd.grad(total, (q, k, v))]

    return program


_ATTENTION_TWICE: dict[str, Program] = {
    "plain": _second(),
    "causal": _second(is_causal=True),
    "scale": _second(scale=0.3),
    "bool_mask": _second(mask=ramp((5, 6)) > -20),
    "float_mask": _second(mask=ramp((2, 1, 5, 6)) / 30),
    "empty_row": _second(mask=torch.arange(5)[:, None] != 2),
    "grouped_query": _second(heads=2, enable_gqa=True),
    "grouped_query_causal": _second(heads=1, enable_gqa=True, is_causal=True),
}
_NO_DERIVATIVE = r"derivative for .* is not implemented|not differentiable"


@check("operator/attention_second", "OP-012", cases=_ATTENTION_TWICE)
def second_derivatives_of_attention_agree(dev: Device, case: str) -> None:
    """Second derivatives of attention agree with the CPU's, or PyTorch says that there are none."""
    try:
        agree(dev, lambda d: _composed_on_cpu(d, _ATTENTION_TWICE[case]), rtol=1e-3, atol=1e-4)
    except RuntimeError as error:
        if not re.search(_NO_DERIVATIVE, str(error)):
            raise
        dev.unsupported(f"this form of attention has no second derivative: {first_line(error)}")


@check("operator/attention_dtype", "OP-012", dtypes=("float16", "bfloat16", "float64"))
def attention_works_in_other_dtypes(dev: Device, dtype: torch.dtype) -> None:
    """Attention in this data type is near the float64 result on the CPU."""
    q, k, v = (noise((1, 2, 5, 8), seed=i) for i in range(3))
    expected = functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    there, low = dev.device(), dtype
    actual = functional.scaled_dot_product_attention(
        q.to(there, low), k.to(there, low), v.to(there, low)
    )
    assert actual.dtype == dtype
    slack = {torch.float16: 1e-2, torch.bfloat16: 5e-2}.get(dtype, 1e-6)
    dev.assert_close(actual.cpu().double(), expected, rtol=slack, atol=slack)


#: How the names of the operators begin that each form of attention runs as.
_FORMS = {
    SDPBackend.MATH: ("aten::_safe_softmax", "aten::_scaled_dot_product_attention_math"),
    SDPBackend.FLASH_ATTENTION: ("aten::_scaled_dot_product_flash_attention",),
    SDPBackend.EFFICIENT_ATTENTION: ("aten::_scaled_dot_product_efficient_attention",),
    SDPBackend.CUDNN_ATTENTION: ("aten::_scaled_dot_product_cudnn_attention",),
    SDPBackend.OVERRIDEABLE: ("aten::_scaled_dot_product_fused_attention_overrideable",),
}
_BY_NAME = {form.name.lower(): form for form in _FORMS}
_NO_FORM = r"No (available kernel|viable backend)"
#: The operators that a device has a kernel of if PyTorch lets it choose between the forms.
_FUSED = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)


class _Called(TorchDispatchMode):
    """The names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def _forced(dev: Device, form: SDPBackend, q: Tensor, k: Tensor, v: Tensor) -> Tensor | None:
    """Attention in that form; nothing if PyTorch's error says that there is no such kernel."""
    with warnings.catch_warnings(), sdpa_kernel(form), _Called() as called:
        warnings.simplefilter("ignore")  # these say why a kernel is not used
        try:
            out = functional.scaled_dot_product_attention(q, k, v)
        except RuntimeError as error:
            if re.match(_NO_FORM, str(error)):
                return None
            raise
    ran = any(name.startswith(_FORMS[form]) for name in called.names)
    if not ran and not _has_fused_forms(dev):
        dev.unsupported("without a fused form, PyTorch takes MATH whatever is forced")
    assert ran, f"{form.name} was forced, but {', '.join(called.names) or 'nothing'} ran"
    return out


def _has_fused_forms(dev: Device) -> bool:
    key = torch._C._dispatch_key_for_device(dev.type)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(has(f"aten::{name}", key) for name in _FUSED)


def _sequences(dev: Device, length: int, size: int = 8) -> list[Tensor]:
    """Query, key and value."""
    return [leaf(dev.device(), 1, 2, length, size, seed=i) for i in range(3)]


@check("operator/attention_form", "OP-040", cases=tuple(_BY_NAME))
def forced_forms_of_attention_run_or_raise(dev: Device, case: str) -> None:
    """Attention that is forced into this form runs in it, right, or raises PyTorch's error."""
    inputs = _sequences(dev, 5)
    out = _forced(dev, _BY_NAME[case], *inputs)
    if out is None:
        return
    q, k, v = (x.detach().cpu().double() for x in inputs)
    expected = functional.scaled_dot_product_attention(q, k, v)
    dev.assert_close(out.cpu().double(), expected, rtol=1e-4, atol=1e-5)


@check("operator/attention_form_refused", "OP-040")
def forced_forms_of_attention_refuse_other_shapes(dev: Device) -> None:
    """A fused form that is forced for batches that are broadcast is right or raises.

    Fused kernels take equal batches only, MATH takes all.
    """
    q, k, v = (x.detach() for x in _sequences(dev, 5))
    q = torch.cat([q, -q])
    expected = functional.scaled_dot_product_attention(
        q.cpu().double(), k.cpu().double(), v.cpu().double()
    )
    for form in _FORMS:
        out = _forced(dev, form, q, k, v)
        if out is not None:
            dev.assert_close(out.cpu().double(), expected, rtol=1e-4, atol=1e-5)


def _dropped(dev: Device, p: float, n: int = 64) -> tuple[Tensor, Tensor]:
    """The weights of attention to n equal keys after dropout, [4, n, n], and what the gradient of
    the values says of their sums over queries, [4, n]."""
    zero = torch.zeros(1, 4, n, n, device=dev.device())
    value = torch.eye(n, device=dev.device()).expand(1, 4, n, n).clone().requires_grad_()
    out = functional.scaled_dot_product_attention(zero, zero, value, dropout_p=p)
    (gradient,) = torch.autograd.grad(out.sum(), value)
    return out.detach().cpu()[0], gradient.cpu()[0, :, :, 0]


_SHARES = {"none": 0.0, "tenth": 0.1, "half": 0.5, "all": 1.0}


@check("operator/attention_dropout", "OP-041", cases=tuple(_SHARES))
def attention_drops_a_share_of_the_weights(dev: Device, case: str) -> None:
    """Attention drops the share of the weights that it is asked for, and divides the others by
    the rest of it."""
    p = _SHARES[case]
    torch.manual_seed(3)
    weights, _ = _dropped(dev, p)
    kept = 1 / (64 * (1 - p)) if p < 1 else 0.0
    gone = weights.abs() <= 1e-6
    wrong = weights[~gone & ((weights - kept).abs() > 1e-6)]
    assert not len(wrong), f"weights are {kept} or 0, but one is {wrong[0]}"
    share = gone.double().mean().item()
    # Six standard deviations.
    slack = 6 * (p * (1 - p) / weights.numel()) ** 0.5
    assert abs(share - p) <= slack, f"dropout_p={p} drops a share of {share:.4f}"


@check("operator/attention_dropout_rows", "OP-041")
def attention_drops_other_weights_each_time(dev: Device) -> None:
    """No two queries lose the same keys, nor do two calls lose the same weights."""
    torch.manual_seed(3)
    (first, _), (second, _) = _dropped(dev, 0.25), _dropped(dev, 0.25)
    assert not torch.equal(first, second), "two calls drop the same weights"
    rows = first.view(-1, 64)
    assert len(torch.unique(rows, dim=0)) == len(rows), "two queries drop the same keys"


@check("operator/attention_dropout_again", "OP-043")
def attention_drops_the_same_weights_in_its_gradient(dev: Device) -> None:
    """The gradient of the values is made of the weights that the forward pass has left."""
    torch.manual_seed(3)
    weights, sums = _dropped(dev, 0.25)
    dev.assert_close(sums, weights.sum(1), rtol=1e-4, atol=1e-5)


@check("operator/attention_dropout_gradient", "OP-043", cases=("query", "key", "value"))
def gradients_of_attention_with_dropout_agree(dev: Device, case: str) -> None:
    """The gradient of attention with dropout is that of the function it has just computed.

    The function is known by its values: the same seed gives the same weights.
    """
    names = ("query", "key", "value")
    inputs = dict(zip(names, (x.detach() for x in _sequences(dev, 6, 4)), strict=True))
    direction = noise((1, 2, 6, 4), seed=7).to(dev.device())
    weight = noise((1, 2, 6, 4), seed=8).to(dev.device())

    def value(x: Tensor) -> Tensor:
        torch.manual_seed(9)
        given: dict[str, Any] = {**inputs, case: x}
        return (functional.scaled_dot_product_attention(**given, dropout_p=0.5) * weight).sum()

    if not torch.equal(value(inputs[case]).cpu(), value(inputs[case]).cpu()):
        dev.unsupported("the same seed gives other numbers, so that the function is not known")
    x = inputs[case].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(x), x)
    step = 0.01
    ahead, back = (value(inputs[case] + way * step * direction) for way in (1, -1))
    slope = (ahead - back) / (2 * step)
    dev.assert_close((gradient * direction).sum().cpu(), slope.cpu(), rtol=1e-2, atol=1e-3)


@check("operator/attention_dropout_second", "OP-043", cases=("query", "key", "value"))
def second_derivatives_of_attention_with_dropout_agree(dev: Device, case: str) -> None:
    """The derivative of the gradient of attention with dropout is that of the same weights.

    The gradient is known by its values: the same seed gives the same weights.
    """
    names = ("query", "key", "value")
    inputs = dict(zip(names, (x.detach() for x in _sequences(dev, 6, 4)), strict=True))
    direction, along = (noise((1, 2, 6, 4), seed=s).to(dev.device()) for s in (7, 8))

    def slope(x: Tensor) -> Tensor:
        torch.manual_seed(9)
        x = x.detach().requires_grad_() if not x.requires_grad else x
        given: dict[str, Any] = {**inputs, case: x}
        out = functional.scaled_dot_product_attention(**given, dropout_p=0.5)
        (gradient,) = torch.autograd.grad(out.sin().sum(), x, create_graph=True)
        return (gradient * direction).sum()

    x = inputs[case].clone().requires_grad_()
    try:
        (second,) = torch.autograd.grad(slope(x), x)
    except RuntimeError as error:
        if not re.search(_NO_DERIVATIVE, str(error)):
            raise
        dev.unsupported(f"this form of attention has no second derivative: {first_line(error)}")
    if not torch.equal(slope(inputs[case]).detach().cpu(), slope(inputs[case]).detach().cpu()):
        dev.unsupported("the same seed gives other numbers, so that the gradient is not known")
    step = 0.01
    ahead, back = (slope(inputs[case] + way * step * along).detach() for way in (1, -1))
    expected = (ahead - back) / (2 * step)
    dev.assert_close((second * along).sum().cpu(), expected.cpu(), rtol=2e-2, atol=5e-3)


@check("operator/attention_memory", "OP-042")
def fused_attention_does_not_hold_the_scores(dev: Device) -> None:
    """A fused form of attention, forward and backward, takes less memory than its scores."""
    length = 2048
    inputs = _sequences(dev, length)
    scores = 2 * length * length * 4
    for form in _FORMS:
        if form is SDPBackend.MATH:
            continue
        torch.accelerator.reset_peak_memory_stats()
        before = torch.accelerator.memory_allocated()
        out = _forced(dev, form, *inputs)
        if out is None:
            continue
        torch.autograd.grad(out.sum(), inputs)
        taken = torch.accelerator.max_memory_allocated() - before
        assert taken < scores // 4, f"{form.name} took {taken} bytes; its scores have {scores}"
