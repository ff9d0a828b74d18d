# SPDX-License-Identifier: BSD-3-Clause
"""A NaN in any operand has the effect that it has on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, Inputs, agree_with_double, check
from torch_conformance.checks.special_values._values import INF, NAN, Work


def _with_nan(m: Inputs, *shape: int, seed: int = 0) -> Tensor:
    """Small integers with a NaN in the middle and an infinity at the end."""
    x = m.whole(*shape, seed=seed)
    x.view(-1)[x.numel() // 2] = NAN
    x.view(-1)[-1] = INF
    return x


_WITH_NAN: dict[str, Work] = {
    "clamp_min": lambda m: [m.whole(9).clamp(min=_with_nan(m, 9))],
    "clamp_max": lambda m: [m.whole(9).clamp(max=_with_nan(m, 9))],
    "clamp_both": lambda m: [
        m.whole(9).clamp(_with_nan(m, 9), m.whole(9) + 2),
        m.whole(9).clamp(m.whole(9) - 2, _with_nan(m, 9)),
        _with_nan(m, 9).clamp(m.whole(9) - 2, m.whole(9) + 2),
        m.whole(9).clamp(NAN, 1),
        m.whole(9).clamp(-1, NAN),
    ],
    "hardtanh": lambda m: [functional.hardtanh(_with_nan(m, 9)), functional.relu6(_with_nan(m, 9))],
    "threshold": lambda m: functional.threshold(_with_nan(m, 9), 1.0, 2.0),
    "prelu": lambda m: functional.prelu(-m.whole(2, 3).abs() - 1, _with_nan(m, 3)),
    "where": lambda m: [
        torch.where(m.whole(9) > 0, _with_nan(m, 9), m.whole(9)),
        torch.where(m.whole(9) > 0, m.whole(9), _with_nan(m, 9)),
    ],
    "where_gradient": lambda m: m.gradients(
        lambda x: torch.where(x > 0, x, _with_nan(m, 9)), m.whole(9)
    ),
    "lerp": lambda m: [
        torch.lerp(m.whole(9), m.whole(9, seed=1), _with_nan(m, 9)[:-1].repeat(2)[:9]),
        torch.lerp(m.whole(9), _with_nan(m, 10)[:-1], 0.25),
    ],
    "addcmul": lambda m: [
        torch.addcmul(_with_nan(m, 9), m.whole(9), m.whole(9)),
        torch.addcmul(m.whole(9), _with_nan(m, 9), m.whole(9) + 5),
        torch.addcdiv(m.whole(9), m.whole(9), _with_nan(m, 9) + 5),
    ],
    "linear": lambda m: [
        functional.linear(m.whole(3, 4), m.whole(5, 4), _with_nan(m, 5)),
        functional.linear(m.whole(3, 4) + 5, _with_nan(m, 5, 4)),
    ],
    "conv": lambda m: functional.conv2d(
        m.whole(1, 2, 5, 5) + 5, m.whole(3, 2, 3, 3), _with_nan(m, 3)
    ),
    # A NaN times the zeros around an input is NaN or nothing: weights of NaN meet none.
    "conv_of_channels": lambda m: [
        *(
            functional.conv2d(
                m.whole(2, 6, 9, 21) + 5, _with_nan(m, 6, 1, 3, 3), None, step, 0, 1, 6
            )
            for step in (1, 2)
        ),
        *m.gradients(
            lambda x, w: functional.conv2d(x, w, padding=1, groups=6),
            _with_nan(m, 2, 6, 9, 21),
            m.whole(6, 1, 3, 3),
        ),
    ],
    "batch_norm": lambda m: [
        functional.batch_norm(m.whole(3, 4), m.whole(4), m.whole(4).abs() + 1, _nan_in(m, 4)),
        functional.batch_norm(m.whole(3, 4), m.whole(4), m.of([1, NAN, 1, 4]), m.whole(4)),
        functional.batch_norm(_nan_in(m, 5, 3), None, None, training=True),
    ],
    "layer_norm": lambda m: [
        functional.layer_norm(m.steps(3, 4), (4,), _nan_in(m, 4), m.whole(4)),
        functional.layer_norm(m.steps(3, 4), (4,), m.whole(4), _nan_in(m, 4)),
        functional.layer_norm(_nan_in(m, 3, 4), (4,)),
    ],
    "group_norm": lambda m: functional.group_norm(_nan_in(m, 2, 4, 3), 2),
    "nll_weight": lambda m: [
        functional.nll_loss(m.steps(3, 3), m.order(3), _nan_in(m, 3), reduction="none"),
        functional.nll_loss(m.steps(2, 3), m.order(3)[:2] * 0, m.of([1, NAN, 1])),
    ],
    "nll_ignored": lambda m: functional.nll_loss(
        m.of([[NAN, NAN], [1, 2]]), m.order(2), ignore_index=int(m.order(2)[0]), reduction="none"
    ),
    "losses": lambda m: (
        [
            loss(_nan_in(m, 9), m.whole(9), reduction="none")
            for loss in (functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss)
        ]
        + [functional.huber_loss(m.whole(9), _nan_in(m, 9), reduction="none")]
    ),
    "bce": lambda m: functional.binary_cross_entropy_with_logits(
        m.steps(9), m.index(9, below=2).to(m.dtype), _nan_in(m, 9), reduction="none"
    ),
    "max_pool": lambda m: [
        functional.max_pool2d(_nan_in(m, 1, 1, 6, 6), 3, 2, 1),
        functional.avg_pool2d(_nan_in(m, 1, 1, 6, 6), 2),
        functional.adaptive_max_pool1d(_nan_in(m, 1, 1, 9), 3),
    ],
    "interpolate": lambda m: functional.interpolate(_nan_in(m, 1, 1, 5), scale_factor=2),
    "embedding": lambda m: functional.embedding(m.order(3), _nan_in(m, 3, 2), padding_idx=0),
    "search": lambda m: [
        torch.searchsorted(m.of([1, 2, NAN]), m.of([NAN, 2, 3, INF])),
        torch.bucketize(_nan_in(m, 9), m.of([-1, 0, 1])),
    ],
    "histc": lambda m: torch.histc(_nan_in(m, 9), 4, -3, 3),
    "isclose": lambda m: [
        torch.isclose(_with_nan(m, 9), _with_nan(m, 9)),
        torch.isclose(_with_nan(m, 9), _with_nan(m, 9), equal_nan=True),
    ],
    "sorted": lambda m: [
        *_with_nan(m, 9).sort(stable=True),
        _with_nan(m, 9).topk(2).values,
        _with_nan(m, 9).topk(8, largest=False).values,
        _with_nan(m, 9).kthvalue(9).values,
        _with_nan(m, 9).median(),
        _with_nan(m, 9).msort(),
    ],
    "extremes": lambda m: [
        _with_nan(m, 9).argmax(),
        _with_nan(m, 9).argmin(),
        *_with_nan(m, 3, 3).max(0),
        *_with_nan(m, 3, 3).min(1),
        *_with_nan(m, 3, 3).aminmax(dim=0),
        *_with_nan(m, 9).cummax(0),
        *_with_nan(m, 9).cummin(0),
    ],
    "sums": lambda m: [
        _nan_in(m, 9).nansum(),
        _nan_in(m, 9).nanmean(),
        _nan_in(m, 3, 3).sum(0),
        _nan_in(m, 3, 3).prod(1),
        _nan_in(m, 9).cumsum(0),
        _nan_in(m, 9).norm(),
        _nan_in(m, 9).norm(INF),
        _nan_in(m, 9).var(),
        _nan_in(m, 3, 3).mean(0),
    ],
    "truth": lambda m: [
        _nan_in(m, 9).bool(),
        m.of([0, NAN]).any(),
        m.of([1, NAN]).all(),
        m.of([0, NAN]).count_nonzero(),
        m.of([0, NAN, 0]).nonzero(),
        m.of([0, NAN]).logical_not(),
        m.of([0, NAN]).ne(m.of([0, NAN])),
    ],
    "scatter_reduce": lambda m: [
        m.whole(4).scatter_reduce(0, m.index(9, below=4), _nan_in(m, 9), how)
        for how in ("amax", "amin", "sum")
    ],
    "power": lambda m: [
        m.of([NAN, 1, NAN, 0]).pow(m.of([0, NAN, 2, NAN])),
        m.of([NAN, 2]).pow(0),
        torch.pow(1, m.of([NAN, 3])),
        torch.hypot(m.of([INF, NAN]), m.of([NAN, -INF])),
    ],
    "foreach": lambda m: [
        *torch._foreach_maximum([_nan_in(m, 9)], [m.whole(9)]),
        *torch._foreach_maximum([m.whole(9)], [_nan_in(m, 9)]),
        *torch._foreach_clamp_min([_nan_in(m, 9)], 0.0),
        *torch._foreach_norm([_nan_in(m, 9), m.whole(9)]),
    ],
    "attention": lambda m: functional.scaled_dot_product_attention(
        m.whole(1, 3, 4), m.whole(1, 3, 4), _nan_in(m, 1, 3, 4)
    ).isnan(),
    "softmax": lambda m: [
        _nan_in(m, 3, 3).softmax(1),
        m.of([[-INF, 1, 2], [-INF] * 3, [INF, 0, 0]]).softmax(1),
        m.of([[-INF, 1, 2], [-INF] * 3]).log_softmax(1),
        m.of([[-INF, 1, 2], [-INF] * 3, [INF, 1, 2], [INF, -INF, 0]]).logsumexp(1),
    ],
}


def _nan_in(m: Inputs, *shape: int) -> Tensor:
    """Small integers with a NaN in the middle."""
    x = m.whole(*shape)
    x.view(-1)[x.numel() // 2] = NAN
    return x


@check("special_values/nan", "SPECIAL-005", cases=_WITH_NAN)
def a_nan_in_any_operand_has_its_effect(dev: Device, case: str) -> None:
    """A NaN in a bound, weight, bias, target or other operand changes what it does on the CPU."""
    agree_with_double(dev, _WITH_NAN[case], rtol=1e-5)


_NAN_AS_BOUND: dict[str, Work] = {
    "min": lambda m: m.whole(9).clamp(min=NAN),
    "max": lambda m: m.whole(9).clamp(max=NAN),
}


@check("special_values/nan_as_bound", "SPECIAL-005", cases=_NAN_AS_BOUND)
def a_nan_as_the_only_bound_has_its_effect(dev: Device, case: str) -> None:
    """Clamped to one number that is NaN, everything is NaN."""
    if not _NAN_AS_BOUND[case](Inputs(torch.device("cpu"), torch.float64)).isnan().all():
        dev.unsupported("this torch ignores such a bound on the CPU, too")
    agree_with_double(dev, _NAN_AS_BOUND[case], rtol=1e-5)
