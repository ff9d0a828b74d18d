# SPDX-License-Identifier: BSD-3-Clause
"""On a side stream, operators and their gradients use what this stream has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise, tensors, zeros_index
from torch_conformance.checks._functions import FUNCTIONS
from torch_conformance.checks.operator._programs import attended, ints


def _bags(x: Tensor) -> Tensor:
    return functional.embedding_bag(ints(x.device, 1, 0, 1), x, ints(x.device, 0, 2), mode="sum")


def _written(x: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
    """A copy of the numbers after a write to it."""
    changed = x.detach().clone()
    write(changed)
    return changed


def _multiplied(x: Tensor) -> Tensor:
    found, scale = torch.zeros(1, device=x.device), torch.full((1,), 0.25, device=x.device)
    return _written(
        x, lambda y: torch._amp_foreach_non_finite_check_and_unscale_([y], found, scale)
    )


def _rows(x: Tensor) -> Tensor:
    """The matrix as two images of 2 x 2."""
    return x.view(1, 2, 2, 2)


#: Functions of a matrix of 2 x 4, with a derivative or without, beside those of autograd.
_STREAMED: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + 1,
    "cast": lambda x: x.to(torch.float64),
    "compare": lambda x: x > 0.1,
    "dot": lambda x: x[0] @ x[1],
    "mv": lambda x: x @ x[0],
    "addmm": lambda x: torch.addmm(x[:, :2], x, x.t()),
    "baddbmm": lambda x: torch.baddbmm(x.view(2, 2, 2), x.view(2, 2, 2), x.view(2, 2, 2)),
    "fused_attention": lambda x: attended(*[x.view(1, 1, 4, 2)] * 3),
    "fused_attention_causal": lambda x: functional.scaled_dot_product_attention(
        x.view(1, 1, 4, 2), x.view(1, 1, 4, 2), x.view(1, 1, 4, 2), is_causal=True
    ),
    "embedding": lambda x: functional.embedding(ints(x.device, 1, 0, 1), x),
    "embedding_bag": _bags,
    "nll_loss": lambda x: functional.nll_loss(x, ints(x.device, 1, 3), x[0].detach().abs()),
    "nll_loss_2d": lambda x: functional.nll_loss(_rows(x), zeros_index(x, 1, 2, 2)),
    "bce": lambda x: functional.binary_cross_entropy_with_logits(x, x.detach().sigmoid()),
    "smooth_l1": lambda x: functional.smooth_l1_loss(x, x.detach().flip(0)),
    "max_pool2d": lambda x: functional.max_pool2d(_rows(x), 2),
    "avg_pool2d": lambda x: functional.avg_pool2d(_rows(x), 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(_rows(x), 1),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(_rows(x), 1),
    "nearest": lambda x: functional.interpolate(_rows(x), size=3),
    "bilinear": lambda x: functional.interpolate(_rows(x), size=3, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(_rows(x), size=3, mode="bicubic"),
    "replicate": lambda x: functional.pad(_rows(x), (1, 1, 1, 1), mode="replicate"),
    "constant": lambda x: functional.pad(x, (1, 2), value=7.0),
    "unfold": lambda x: functional.unfold(_rows(x), 2),
    "fold": lambda x: functional.fold(x.view(1, 4, 2), (2, 3), (2, 2)),
    "conv_depthwise": lambda x: functional.conv2d(_rows(x), x.detach().view(2, 1, 2, 2), groups=2),
    "conv_transpose": lambda x: functional.conv_transpose2d(_rows(x), _rows(x).view(2, 1, 2, 2)),
    "batch_norm_evaluated": lambda x: functional.batch_norm(
        x, x[0].detach(), x[1].detach().square() + 1
    ),
    "rms_norm": lambda x: functional.rms_norm(x, (4,), x[0]),
    "prelu": lambda x: functional.prelu(x, x[0, :1]),
    "glu": lambda x: functional.glu(x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 2.0),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x.flip(1)),
    "masked_select": lambda x: x.masked_select(x > 0),
    "nonzero": lambda x: (x > 0).nonzero(),
    "unique": lambda x: x.detach().round().unique(),
    "index_put": lambda x: _written(x, lambda y: y.index_put_((ints(y.device, 1),), x[:1], True)),
    "index_add": lambda x: x.index_add(0, ints(x.device, 1, 1), x),
    "index_copy": lambda x: x.index_copy(0, ints(x.device, 1, 0), x),
    "index_fill": lambda x: x.index_fill(1, ints(x.device, 2), 5.0),
    "index_select": lambda x: x.index_select(1, ints(x.device, 2, 0)),
    "take": lambda x: x.take(ints(x.device, 7, 0, 3)),
    "put": lambda x: x.put(ints(x.device, 7, 0), x[0, :2]),
    "scatter": lambda x: x.scatter(1, ints(x.device, 3, 0, 1, 2).expand(2, 4), x),
    "scatter_reduce": lambda x: x.scatter_reduce(1, zeros_index(x, 2, 4), x, "amax"),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, 1),
    "tril": lambda x: x.tril(),
    "diag_embed": lambda x: x.diag_embed(),
    "repeat": lambda x: x.repeat(2, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(ints(x.device, 2, 1), 0),
    "stack": lambda x: torch.stack([x, x]),
    "transposed": lambda x: x.t().contiguous(),
    "cummax": lambda x: x.cummax(1).values,
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "kthvalue": lambda x: x.kthvalue(2, 1).values,
    "median": lambda x: x.median(1).values,
    "mode": lambda x: x.mode(1).values,
    "topk": lambda x: x.topk(2, 1).values,
    "argsort": lambda x: x.argsort(1),
    "argmax": lambda x: x.argmax(1),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(0),
    "var_mean": lambda x: list(torch.var_mean(x, 1)),
    "aminmax": lambda x: list(x.aminmax()),
    "any": lambda x: (x > 0.9).any(1),
    "count_nonzero": lambda x: (x > 0).count_nonzero(),
    "searchsorted": lambda x: torch.searchsorted(x.sort(1).values, x),
    "bucketize": lambda x: torch.bucketize(x, x[0].sort().values),
    "bincount": lambda x: (x > 0).view(-1).long().bincount(x.detach().abs().view(-1), 3),
    "isin": lambda x: torch.isin(x, x[0]),
    "item": lambda x: torch.full((2,), x[1, 2].item(), device=x.device),
    "where": lambda x: torch.where(x > 0, x, x.flip(1)),
    "lerp": lambda x: torch.lerp(x, x.flip(1), x.sigmoid()),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x.flip(0))),
    "foreach": lambda x: torch._foreach_add([x.detach()], [x.detach()]),
    "foreach_norm": lambda x: torch._foreach_norm([x.detach()]),
    "unscale": _multiplied,
    "update_scale": lambda x: _written(
        x[0, :1],
        lambda y: torch._amp_update_scale_(
            y, torch.zeros(1, dtype=torch.int32, device=y.device), y.ceil(), 2.0, 0.5, 3
        ),
    ),
    "fill_tensor": lambda x: _written(x, lambda y: y.fill_(x[1, 1].detach())),
    "lstm_cell": lambda x: torch.lstm_cell(x, [x, x], *[x.detach().repeat(8, 1)] * 2)[0],
    "gru_cell": lambda x: torch.gru_cell(x, x, *[x.detach().repeat(6, 1)] * 2),
}


def _with_gradient(function: Callable[[Tensor], Any], x: Tensor) -> list[Tensor]:
    """What the function returns; if it has a derivative, its gradient, too."""
    x = x.detach().requires_grad_()
    results = tensors(function(x))
    first = results[0]
    if not first.requires_grad:
        return results
    weight = torch.arange(first.numel(), device=x.device).view(first.shape).sin() + 2
    return [*results, *torch.autograd.grad(first, x, weight.to(first.dtype))]


@check(
    "operator/side_stream",
    "STREAM-046",
    needs=("streams", "delay"),
    cases={**FUNCTIONS, **_STREAMED},
)
def operators_read_what_their_stream_has_written(dev: Device, case: str) -> None:
    """On a side stream of each device, operator and gradient use numbers that arrive there late."""
    function = {**FUNCTIONS, **_STREAMED}[case]
    values = noise((2, 4))
    expected = _with_gradient(function, values)
    indices = range(min(dev.count, 2))
    given = [values.to(dev.device(index)) for index in indices]
    late = [torch.full((2, 4), 0.5, device=dev.device(index)) for index in indices]
    streams = [dev.stream(index) for index in indices]
    dev.synchronize()
    for stream, x, source in zip(streams, late, given, strict=True):
        with stream:
            dev.delay(10)
            x.copy_(source)
    found = []
    for stream, x in zip(streams, late, strict=True):
        with stream, torch.accelerator.device_index(0):
            found.append(_with_gradient(function, x))
    for stream, results in zip(streams, found, strict=True):
        with stream:
            host = [result.cpu() for result in results]
        for got, wanted in zip(host, expected, strict=True):
            dev.assert_close(got, wanted.detach(), rtol=1e-4, atol=1e-5)
