# SPDX-License-Identifier: BSD-3-Clause
"""Tensors without elements: results, gradients, and reductions that refuse them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    Program,
    agree,
    check,
    gradients,
    leaf,
    raised,
    zeros_index,
)
from torch_conformance.checks.operator._programs import attended, filled_memory, ints

_EMPTY: dict[str, Program] = {
    "sum": lambda d: torch.zeros(0, 3, device=d).sum(0),
    "sum_all": lambda d: torch.zeros(0, device=d).sum(),
    "mean": lambda d: torch.zeros(0, device=d).mean(),
    "prod": lambda d: torch.zeros(2, 0, device=d).prod(1),
    "all_any": lambda d: [torch.zeros(0, device=d).all(), torch.zeros(0, device=d).any()],
    "add": lambda d: torch.zeros(0, 3, device=d) + 1,
    "matmul_inner": lambda d: torch.zeros(2, 0, device=d) @ torch.zeros(0, 3, device=d),
    "matmul_outer": lambda d: torch.zeros(0, 2, device=d) @ torch.zeros(2, 3, device=d),
    "bmm": lambda d: torch.bmm(torch.zeros(0, 2, 3, device=d), torch.zeros(0, 3, 4, device=d)),
    "bmm_inner": lambda d: torch.bmm(
        torch.zeros(2, 2, 0, device=d), torch.zeros(2, 0, 4, device=d)
    ),
    "softmax": lambda d: torch.softmax(torch.zeros(0, 5, device=d), 1),
    "log_softmax": lambda d: torch.log_softmax(torch.zeros(3, 0, device=d), 1),
    "cat": lambda d: torch.cat([torch.zeros(0, 3, device=d), torch.ones(2, 3, device=d)]),
    "cat_legacy": lambda d: torch.cat([torch.zeros(0, device=d), torch.ones(2, 3, device=d)]),
    "stack": lambda d: torch.stack([torch.zeros(0, device=d)] * 2),
    "sort": lambda d: list(torch.sort(torch.zeros(0, device=d))),
    "topk": lambda d: list(torch.topk(torch.ones(3, device=d), 0)),
    "unique": lambda d: torch.unique(torch.zeros(0, device=d)),
    "nonzero": lambda d: torch.zeros(0, 2, device=d).nonzero(),
    "nonzero_none": lambda d: torch.zeros(4, device=d).nonzero(),
    "cumsum": lambda d: torch.zeros(0, 2, device=d).cumsum(0),
    "linear": lambda d: functional.linear(torch.zeros(0, 3, device=d), torch.ones(2, 3, device=d)),
    "conv2d": lambda d: functional.conv2d(
        torch.zeros(0, 2, 5, 5, device=d), torch.ones(3, 2, 3, 3, device=d)
    ),
    "embedding": lambda d: functional.embedding(ints(d), torch.ones(4, 3, device=d)),
    "where": lambda d: torch.where(torch.zeros(0, dtype=torch.bool, device=d), 1.0, 2.0),
    "masked_fill": lambda d: torch.zeros(0, device=d).masked_fill(
        torch.zeros(0, dtype=torch.bool, device=d), 1.0
    ),
    "layer_norm": lambda d: functional.layer_norm(torch.zeros(0, 4, device=d), (4,)),
    "batch_norm": lambda d: functional.batch_norm(
        torch.zeros(0, 4, device=d), torch.zeros(4, device=d), torch.ones(4, device=d)
    ),
    "mse_loss": lambda d: functional.mse_loss(
        torch.zeros(0, device=d), torch.zeros(0, device=d), reduction="sum"
    ),
    "interpolate": lambda d: functional.interpolate(torch.zeros(0, 2, 4, device=d), size=8),
    "svd": lambda d: torch.linalg.svdvals(torch.zeros(0, 3, device=d)),
    "det": lambda d: torch.linalg.det(torch.zeros(0, 0, device=d)),
    "foreach": lambda d: torch._foreach_mul([torch.zeros(0, device=d), torch.ones(2, device=d)], 2),
    "repeat": lambda d: torch.ones(2, device=d).repeat(0, 3),
    "split": lambda d: list(torch.zeros(0, 4, device=d).split(2, 1)),
    "bincount": lambda d: torch.bincount(ints(d), minlength=3),
    "histc": lambda d: torch.histc(torch.zeros(0, device=d), 4, 0.0, 1.0),
}


@check("operator/empty", "OP-007", cases=tuple(_EMPTY))
def empty_inputs_are_handled(dev: Device, case: str) -> None:
    """Operators on tensors without elements give the CPU's result."""
    agree(dev, _EMPTY[case])


#: Differentiable functions, and the shapes of what they are given: a dimension has no elements.
_EMPTY_GRADIENTS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "attention_keys": (attended, ((2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 8))),
    "attention_queries": (attended, ((2, 3, 0, 8), (2, 3, 5, 8), (2, 3, 5, 8))),
    "attention_batch": (attended, ((0, 3, 5, 8), (0, 3, 4, 8), (0, 3, 4, 8))),
    "attention_columns": (attended, ((2, 3, 5, 8), (2, 3, 4, 8), (2, 3, 4, 0))),
    "mm_inner": (torch.mm, ((3, 0), (0, 4))),
    "mm_rows": (torch.mm, ((0, 3), (3, 4))),
    "mm_columns": (torch.mm, ((3, 4), (4, 0))),
    "bmm_inner": (torch.bmm, ((2, 3, 0), (2, 0, 4))),
    "bmm_batch": (torch.bmm, ((0, 3, 5), (0, 5, 4))),
    "mv_inner": (torch.mv, ((3, 0), (0,))),
    "mv_rows": (torch.mv, ((0, 3), (3,))),
    "dot": (torch.dot, ((0,), (0,))),
    "outer": (torch.outer, ((0,), (3,))),
    "addmm_inner": (torch.addmm, ((4,), (3, 0), (0, 4))),
    "addmm_rows": (torch.addmm, ((4,), (0, 3), (3, 4))),
    "addmv_inner": (torch.addmv, ((3,), (3, 0), (0,))),
    "addr": (torch.addr, ((4,), (0,), (4,))),
    "addbmm_batch": (torch.addbmm, ((3, 4), (0, 3, 5), (0, 5, 4))),
    "baddbmm_inner": (torch.baddbmm, ((2, 3, 4), (2, 3, 0), (2, 0, 4))),
    "baddbmm_batch": (torch.baddbmm, ((1, 3, 4), (0, 3, 5), (0, 5, 4))),
    "linear_batch": (functional.linear, ((0, 3), (4, 3), (4,))),
    "linear_inner": (functional.linear, ((5, 0), (4, 0), (4,))),
    "bilinear_batch": (functional.bilinear, ((0, 3), (0, 4), (2, 3, 4), (2,))),
    "conv1d_batch": (functional.conv1d, ((0, 3, 7), (4, 3, 2), (4,))),
    "conv2d_batch": (functional.conv2d, ((0, 3, 6, 7), (4, 3, 2, 2), (4,))),
    "conv3d_batch": (functional.conv3d, ((0, 2, 4, 4, 4), (3, 2, 2, 2, 2), (3,))),
    "conv_transpose2d_batch": (functional.conv_transpose2d, ((0, 3, 4, 5), (3, 2, 2, 2), (2,))),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (4,), w, b), ((0, 4), (4,), (4,))),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (4,), w), ((0, 4), (4,))),
    "group_norm": (lambda x, w, b: functional.group_norm(x, 2, w, b), ((0, 4, 3), (4,), (4,))),
    "batch_norm_evaluated": (
        lambda x, w, b: functional.batch_norm(x, b.detach() * 0, b.detach() * 0 + 1, w, b),
        ((0, 4, 3), (4,), (4,)),
    ),
    "prelu": (functional.prelu, ((0, 4, 3), (4,))),
    "embedding": (
        lambda w: functional.embedding(zeros_index(w, 0), w, padding_idx=1),
        ((5, 3),),
    ),
    "embedding_columns": (
        lambda w: functional.embedding(zeros_index(w, 4), w),
        ((5, 0),),
    ),
    "embedding_bag": (
        lambda w: functional.embedding_bag(zeros_index(w, 0), w, zeros_index(w, 2), mode="sum"),
        ((5, 3),),
    ),
    "embedding_bag_mean": (
        lambda w: functional.embedding_bag(zeros_index(w, 0), w, zeros_index(w, 2), mode="mean"),
        ((5, 3),),
    ),
    "index": (lambda x: x[zeros_index(x, 0)], ((5, 3),)),
    "index_select": (lambda x: x.index_select(0, zeros_index(x, 0)), ((5, 3),)),
    "gather": (lambda x: x.gather(0, zeros_index(x, 0, 3)), ((5, 3),)),
    "take": (lambda x: x.take(zeros_index(x, 0)), ((5, 3),)),
    "masked_select": (lambda x: x.masked_select(x > 1e6), ((5, 3),)),
    "masked_fill": (lambda x, y: x.masked_fill(x > 0, y.sum()), ((0, 3), (0,))),
    "index_put": (lambda x, y: x.index_put((zeros_index(x, 0),), y), ((5, 3), (0, 3))),
    "index_add": (lambda x, y: x.index_add(0, zeros_index(x, 0), y), ((5, 3), (0, 3))),
    "index_copy": (lambda x, y: x.index_copy(0, zeros_index(x, 0), y), ((5, 3), (0, 3))),
    "scatter": (lambda x, y: x.scatter(0, zeros_index(x, 0, 3), y), ((5, 3), (0, 3))),
    "scatter_add": (lambda x, y: x.scatter_add(0, zeros_index(x, 0, 3), y), ((5, 3), (0, 3))),
    "repeat_interleave": (
        lambda x: x.repeat_interleave(zeros_index(x, 5), 0),
        ((5, 3),),
    ),
    "repeat": (lambda x: x.repeat(0, 2), ((5, 3),)),
    "slice": (lambda x: x[2:2], ((5, 3),)),
    "expand": (lambda x: x.expand(0, 3), ((1, 3),)),
    "broadcast": (lambda x, y: x * y, ((0, 3), (3,))),
    "broadcast_column": (lambda x, y: x + y, ((5, 0), (5, 1))),
    "where": (lambda x, y: torch.where(x > 0, x, y), ((0, 3), (3,))),
    "lerp": (torch.lerp, ((0, 3), (3,), (1, 3))),
    "addcmul": (torch.addcmul, ((3,), (0, 3), (0, 1))),
    "cat": (lambda x, y: torch.cat([x, y]), ((0, 3), (2, 3))),
    "cat_columns": (lambda x, y: torch.cat([x, y], 1), ((2, 0), (2, 3))),
    "stack": (lambda x, y: torch.stack([x, y]), ((0, 3), (0, 3))),
    "unfold": (lambda x: x.unfold(0, 2, 1), ((5, 0),)),
    "pad": (lambda x: functional.pad(x, (2, 1)), ((3, 0),)),
    "pad_reflect": (lambda x: functional.pad(x, (1, 1), mode="reflect"), ((0, 3, 4),)),
    "pad_replicate": (lambda x: functional.pad(x, (1, 1), mode="replicate"), ((0, 3, 4),)),
    "sum": (lambda x: x.sum(0), ((0, 3),)),
    "sum_all": (lambda x: x.sum(), ((0, 3),)),
    "prod": (lambda x: x.prod(0), ((0, 3),)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=0), ((0, 3),)),
    "logsumexp": (lambda x: x.logsumexp(0), ((0, 3),)),
    "amax": (lambda x: x.amax(1), ((0, 3),)),
    "max": (lambda x: x.max(1).values, ((0, 3),)),
    "var": (lambda x: x.var(1), ((0, 3),)),
    "softmax": (lambda x: x.softmax(0), ((0, 3),)),
    "log_softmax": (lambda x: x.log_softmax(1), ((0, 3),)),
    "cumsum": (lambda x: x.cumsum(0), ((0, 3),)),
    "cumprod": (lambda x: x.cumprod(1), ((0, 3),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), ((0, 3),)),
    "sort": (lambda x: x.sort(0).values, ((0, 3),)),
    "topk": (lambda x: x.topk(0, 1).values, ((5, 3),)),
    "gelu": (functional.gelu, ((0, 3),)),
    "glu": (functional.glu, ((0, 4),)),
    "dropout": (lambda x: functional.dropout(x, 0.5), ((0, 3),)),
    "max_pool": (lambda x: functional.max_pool2d(x, 2), ((0, 3, 4, 4),)),
    "avg_pool": (lambda x: functional.avg_pool2d(x, 2), ((0, 3, 4, 4),)),
    "adaptive_avg_pool": (lambda x: functional.adaptive_avg_pool2d(x, 2), ((0, 3, 4, 4),)),
    "interpolate": (lambda x: functional.interpolate(x, size=7, mode="linear"), ((0, 3, 4),)),
    "interpolate_nearest": (lambda x: functional.interpolate(x, size=7), ((0, 3, 4),)),
    "mse_loss": (lambda x, y: functional.mse_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "mse_loss_mean": (functional.mse_loss, ((0, 3), (0, 3))),
    "l1_loss": (lambda x, y: functional.l1_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "smooth_l1_loss": (functional.smooth_l1_loss, ((0, 3), (0, 3))),
    "huber_loss": (lambda x, y: functional.huber_loss(x, y, reduction="sum"), ((0, 3), (0, 3))),
    "bce_with_logits": (
        lambda x: functional.binary_cross_entropy_with_logits(
            x, torch.ones_like(x), reduction="sum"
        ),
        ((0, 3),),
    ),
    "nll_loss": (
        lambda x: functional.nll_loss(x, zeros_index(x, 0), reduction="sum"),
        ((0, 3),),
    ),
    "nll_loss_mean": (lambda x: functional.nll_loss(x, zeros_index(x, 0)), ((0, 3),)),
    "cross_entropy": (
        lambda x: functional.cross_entropy(x, zeros_index(x, 0), reduction="none"),
        ((0, 3),),
    ),
    "cdist": (torch.cdist, ((0, 3), (4, 3))),
    "cdist_columns": (torch.cdist, ((5, 0), (4, 0))),
    "einsum": (lambda x, y: torch.einsum("bi,bj->ij", x, y), ((0, 3), (0, 4))),
    "diagonal": (lambda x: x.diagonal(), ((0, 3),)),
    "tril": (lambda x: x.tril(), ((0, 3),)),
    "to": (lambda x: x.to(torch.float64), ((0, 3),)),
}


@check("operator/empty_gradient", "OP-007", cases=_EMPTY_GRADIENTS)
def gradients_beside_empty_dimensions_are_handled(dev: Device, case: str) -> None:
    """The gradients of all inputs agree with the CPU where an input has no elements."""
    function, shapes = _EMPTY_GRADIENTS[case]

    def program(device: torch.device) -> list[Tensor]:
        inputs = [leaf(device, *shape, seed=seed) for seed, shape in enumerate(shapes)]
        return gradients(function(*inputs), *inputs)

    with filled_memory():
        agree(dev, program)


@check("operator/empty_refused", "OP-035", cases=("max", "argmin", "median_dim", "amax"))
def reductions_without_identity_refuse_empties(dev: Device, case: str) -> None:
    """max, argmin, amax and median over no elements raise, as on the CPU."""
    x = torch.zeros(0, 3, device=dev.device())
    works: dict[str, Callable[[], Any]] = {
        "max": x.max,
        "argmin": lambda: x.argmin(0),
        "median_dim": lambda: x.median(0),
        "amax": lambda: x.amax(0),
    }

    def work() -> None:
        works[case]()
        dev.synchronize()

    assert isinstance(raised(work), (RuntimeError, IndexError))
