# SPDX-License-Identifier: BSD-3-Clause
"""Fused attention: its values, gradients, memory and random numbers, and when it is chosen."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import torch_puone as puone

attention: Any = scaled_dot_product_attention
fused = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
SLACK = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": -0.7},
    "bool mask": {"attn_mask": torch.rand(2, 1, 70, 45) < 0.5},
    "mask of keys": {"attn_mask": torch.rand(2, 1, 1, 45) < 0.5},
    "bias": {"attn_mask": torch.randn(70, 45)},
    "bias of heads": {"attn_mask": torch.randn(1, 6, 1, 1)},
    "empty rows": {"attn_mask": (torch.arange(70) % 3 > 0)[:, None].expand(70, 45)},
    "grouped": {"enable_gqa": True, "key_heads": 2},
    "grouped causal": {"enable_gqa": True, "key_heads": 1, "is_causal": True},
    "other size of values": {"value_size": 19},
    "one query": {"lengths": (1, 45)},
    "long": {"lengths": (200, 400)},
    "long causal": {"lengths": (400, 200), "is_causal": True},
}


def run(device: str, dtype: torch.dtype, options: dict[str, Any], form: SDPBackend) -> list[Tensor]:
    """The result and the gradients of query, key and value, as float64 in host memory."""
    options = dict(options)
    lengths = options.pop("lengths", (70, 45))
    key_heads, value_size = options.pop("key_heads", 6), options.pop("value_size", 24)
    shapes = [(lengths[0], 6, 24), (lengths[1], key_heads, 24), (lengths[1], key_heads, value_size)]
    torch.manual_seed(2)
    numbers = [torch.randn(2, *shape, dtype=torch.float64).to(dtype) for shape in shapes]
    wide = torch.float64 if device == "cpu" else dtype
    # As a layer projects them: heads are inside of rows.
    q, k, v = leaves = [x.to(wide).to(device).transpose(1, 2).requires_grad_() for x in numbers]
    if isinstance(mask := options.get("attn_mask"), Tensor):
        options["attn_mask"] = mask.to(device, mask.dtype if mask.dtype == torch.bool else wide)
    with sdpa_kernel(form):
        out = attention(q, k, v, **options)
    grad = torch.randn(out.shape, dtype=torch.float64).to(dtype).to(device, wide)
    return [x.detach().cpu().double() for x in (out, *torch.autograd.grad(out, leaves, grad))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", SLACK, ids=lambda dtype: str(dtype)[6:])
def test_results_and_gradients_are_those_of_the_matrix_of_scores(
    dtype: torch.dtype, kind: str
) -> None:
    puone._reset_fallback_counts()
    actual = run("puone", dtype, KINDS[kind], SDPBackend.OVERRIDEABLE)
    assert not puone._fallback_counts()
    expected = run("cpu", dtype, KINDS[kind], SDPBackend.MATH)
    for got, wanted in zip(actual, expected, strict=True):
        slack = SLACK[dtype] * max(1.0, wanted.abs().max().item())
        torch.testing.assert_close(got, wanted, rtol=SLACK[dtype], atol=slack)


def heads(*shape: int, **options: Any) -> Tensor:
    return torch.randn(shape, device="puone", **options)


def test_it_is_what_runs_unless_something_else_is_asked_for() -> None:
    x = heads(1, 2, 5, 8)
    assert torch._fused_sdp_choice(x, x, x) == SDPBackend.OVERRIDEABLE.value
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert torch._fused_sdp_choice(x, x, x) == SDPBackend.MATH.value


@pytest.mark.parametrize(
    "form",
    [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION],
    ids=lambda form: form.name,
)
def test_a_form_that_the_device_does_not_have_is_refused(form: SDPBackend) -> None:
    x = heads(1, 2, 5, 8)
    with (
        sdpa_kernel(form),
        pytest.warns(UserWarning, match=r"SDPBackend\.OVERRIDEABLE"),
        pytest.raises(RuntimeError, match="No available kernel"),
    ):
        attention(x, x, x)


# What MATH takes and the kernels do not: inputs, options, and what the warning says.
REFUSED: dict[str, tuple[list[Tensor], dict[str, Any], str]] = {
    "3 dimensions": ([torch.randn(2, 5, 8)] * 3, {}, "4 dimensional"),
    "large heads": ([torch.randn(1, 1, 2, 257)] * 3, {}, "at most 256 columns"),
    "a batch that is broadcast": (
        [torch.randn(2, 1, 2, 4), *[torch.randn(1, 1, 2, 4)] * 2],
        {},
        "same batch_size",
    ),
    "heads that are no group": (
        [torch.randn(1, 4, 2, 4), *[torch.randn(1, 2, 2, 4)] * 2],
        {},
        "same num_heads",
    ),
    "a gradient of the mask": (
        [torch.randn(1, 1, 2, 4)] * 3,
        {"attn_mask": torch.zeros(2, 2, requires_grad=True)},
        "no gradient of attn_mask",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_the_kernels_do_not_compute_is_refused_with_a_reason(kind: str) -> None:
    inputs, options, reason = REFUSED[kind]
    there = [x.to("puone") for x in inputs]
    if "attn_mask" in options:
        options = {"attn_mask": options["attn_mask"].detach().to("puone").requires_grad_()}
    chosen: Any = torch._fused_sdp_choice
    assert chosen(*there, **options) == SDPBackend.MATH.value
    with warnings.catch_warnings(record=True) as said, sdpa_kernel(SDPBackend.OVERRIDEABLE):
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="No available kernel"):
            attention(*there, **options)
    assert any(reason in str(warning.message) for warning in said), [str(w.message) for w in said]


def test_a_mask_beside_is_causal_is_pytorchs_error() -> None:
    x = heads(1, 1, 3, 4)
    mask = torch.ones(3, 3, dtype=torch.bool, device="puone")
    with pytest.raises(RuntimeError, match="should not be set when is_causal=True"):
        attention(x, x, x, attn_mask=mask, is_causal=True)


def test_the_gradient_of_a_mask_comes_from_the_composite_form() -> None:
    def gradient(device: str) -> Tensor:
        torch.manual_seed(0)
        x, mask = torch.randn(1, 1, 3, 4).to(device), torch.randn(3, 3).to(device)
        mask.requires_grad_()
        attention(x, x, x, attn_mask=mask).sum().backward()
        assert mask.grad is not None
        return mask.grad.cpu()

    torch.testing.assert_close(gradient("puone"), gradient("cpu"))


@pytest.mark.parametrize(("queries", "keys", "size"), [(0, 3, 4), (3, 0, 4), (0, 0, 4), (3, 2, 0)])
def test_empty_sequences_give_empty_results_or_zeros(queries: int, keys: int, size: int) -> None:
    q, k = heads(2, 3, queries, size), heads(2, 3, keys, size)
    v = heads(2, 3, keys, 5)
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v)
    assert out.shape == (2, 3, queries, 5)
    out.sum().backward()
    expected = attention(*(x.detach().cpu() for x in (q, k, v)))
    torch.testing.assert_close(out.detach().cpu(), expected, equal_nan=True)
    for x in (q, k):
        assert x.grad is not None and x.grad.shape == x.shape
        assert not x.grad.any()


def test_the_result_has_the_layout_of_the_queries() -> None:
    q = heads(2, 5, 3, 8).transpose(1, 2)
    assert attention(q, q, q).transpose(1, 2).is_contiguous()
    narrow = heads(2, 5, 3, 6).transpose(1, 2)
    out = attention(q, q, narrow)
    assert out.transpose(1, 2).is_contiguous()
    columns = heads(2, 3, 8, 5).mT  # neighbours are not in a row
    expected = attention(*[columns.cpu()] * 3)
    torch.testing.assert_close(attention(columns, columns, columns).cpu(), expected)


def test_scores_far_from_zero_do_not_overflow() -> None:
    q, k, v = heads(1, 1, 130, 8), heads(1, 1, 300, 8), heads(1, 1, 300, 8)
    q[..., 0], k[..., 0] = 300, 300
    expected = attention(*(x.cpu().double() for x in (q, k, v)))
    torch.testing.assert_close(attention(q, k, v).cpu().double(), expected, rtol=0, atol=0.05)


def test_equal_inputs_give_equal_bits() -> None:
    def bits() -> list[Tensor]:
        torch.manual_seed(1)
        inputs = [heads(1, 4, 300, 40, requires_grad=True) for _ in range(3)]
        out = attention(*inputs, dropout_p=0.3)
        return [out.detach(), *torch.autograd.grad(out.sum(), inputs)]

    assert all(torch.equal(a, b) for a, b in zip(bits(), bits(), strict=True))


@pytest.mark.usefixtures("uncollected")
def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    def taken(length: int) -> int:
        inputs = [heads(1, 2, length, 16, requires_grad=True) for _ in range(3)]
        torch.accelerator.reset_peak_memory_stats()
        before = torch.accelerator.memory_allocated()
        torch.autograd.grad(attention(*inputs, is_causal=True).sum(), inputs)
        return torch.accelerator.max_memory_allocated() - before

    assert taken(2048) < 9 * taken(256)


def test_dropout_advances_the_generator_once_and_only_if_there_is_any() -> None:
    x = heads(1, 2, 5, 8)
    generator = puone.default_generators[0]
    before = generator.get_offset()
    attention(x, x, x)
    assert generator.get_offset() == before
    attention(x, x, x, dropout_p=0.5)
    assert generator.get_offset() == before + 4


def test_dropout_in_a_graph_drops_other_weights_at_each_replay() -> None:
    x = torch.zeros(1, 1, 32, 32, device="puone")
    value = torch.eye(32, device="puone")[None, None].clone().requires_grad_()
    graph = torch.accelerator.Graph()
    with torch.Stream("puone"), graph:
        out = attention(x, x, value, dropout_p=0.5)
        (gradient,) = torch.autograd.grad(out.sum(), value)
    seen = []
    for _ in range(2):
        graph.replay()
        torch.testing.assert_close(gradient[0, 0, :, 0], out.detach()[0, 0].sum(0))
        seen.append(out.detach().cpu())
    assert not torch.equal(*seen)


def test_the_operator_itself_checks_what_it_is_given() -> None:
    x = heads(1, 2, 5, 8)
    with pytest.raises(RuntimeError, match="of one type"):
        fused(x, x.half(), x)
    with pytest.raises(RuntimeError, match="expects a query of"):
        fused(x, x[..., :4], x)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        fused(x, x, x, None, 1.5)
    with pytest.raises(RuntimeError, match="attn_bias must be"):
        fused(x, x, x, torch.zeros(5, 5, dtype=torch.int64, device="puone"))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        fused(x.long(), x.long(), x.long())
    bias = torch.zeros(1, 2, 5, 5, device="puone", requires_grad=True)
    out = fused(x, x, x, bias)[0]
    with pytest.raises(NotImplementedError, match=r"no gradient of attn_bias; SDPBackend\.MATH"):
        out.sum().backward()


def test_a_bool_mask_needs_no_other_in_its_place() -> None:
    x = heads(1, 2, 5, 8)
    mask = torch.rand(5, 5, device="puone") < 0.7
    torch.testing.assert_close(fused(x, x, x, mask)[0], attention(x, x, x, attn_mask=mask))


def test_the_logarithm_of_the_sum_is_saved() -> None:
    q, k = heads(1, 2, 5, 8), heads(1, 2, 200, 8)
    saved = fused(q, k, k, scale=1.0)[1]
    torch.testing.assert_close(saved, (q @ k.mT).logsumexp(3))
