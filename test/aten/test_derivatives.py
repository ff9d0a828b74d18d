# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives that are called directly, as autograd functions of others do.

Nothing before them has looked at what they are given. Of https://github.com/pytorch/pytorch/issues/195547
are many on CPUs and CUDA that read beyond their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

ATEN = torch.ops.aten
ALL = [True, True, True]


def ones(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, device="puone")


def places(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64, device="puone")


def _group_norm(**changed: Any) -> object:
    given = {
        "grad": ones(1, 6, 3),
        "x": ones(1, 6, 3),
        "mean": ones(1, 2),
        "rstd": ones(1, 2),
        "weight": ones(6),
        "rows": 1,
        "channels": 6,
        "inner": 3,
        "groups": 2,
    }
    return ATEN.native_group_norm_backward(*(given | changed).values(), ALL)


def _softmax(**changed: Any) -> object:
    given = {"grad": ones(2, 3), "result": ones(2, 3)} | changed
    return ATEN._softmax_backward_data(*given.values(), 1, torch.float32)


def _log_softmax(**changed: Any) -> object:
    given = {"grad": ones(2, 3), "result": ones(2, 3)} | changed
    return ATEN._log_softmax_backward_data(*given.values(), 1, torch.float32)


def _glu(**changed: Any) -> object:
    given = {"grad": ones(2, 3), "x": ones(2, 6), "dim": 1} | changed
    return ATEN.glu_backward(*given.values())


def _unfold(**changed: Any) -> object:
    given = {"grad": ones(3, 2), "sizes": [4], "dim": 0, "size": 2, "step": 1} | changed
    return ATEN.unfold_backward(*given.values())


def _bags(**changed: Any) -> object:
    given = {"grad": ones(2, 5), "indices": places(4), "bags": places(4), "sizes": places(2)}
    given |= changed
    rest = (places(0), 10, False, 0, None, -1)
    return ATEN._embedding_bag_dense_backward(*given.values(), *rest)


def _scales_of_bags(**changed: Any) -> object:
    given = {
        "grad": ones(2, 5),
        "table": ones(10, 5),
        "indices": places(4),
        "offsets": places(2),
        "bags": places(4),
    } | changed
    return ATEN._embedding_bag_per_sample_weights_backward(*given.values(), 0)


def _nll_loss2d(**changed: Any) -> object:
    given = {
        "grad": ones(1, 2, 4),
        "x": ones(1, 3, 2, 4),
        "target": places(1, 2, 4),
        "weight": None,
        "reduction": 0,
        "ignored": -100,
        "total": ones(),
    } | changed
    return ATEN.nll_loss2d_backward(*given.values())


def _adaptive_avg_pool2d(**changed: Any) -> object:
    given = {"grad": ones(1, 2, 1, 2), "x": ones(1, 2, 3, 4)} | changed
    return ATEN._adaptive_avg_pool2d_backward(*given.values())


def _adaptive_avg_pool3d_out(**changed: Any) -> object:
    given = {"grad": ones(1, 2, 1, 1, 2), "x": ones(1, 2, 3, 3, 4)} | changed
    return ATEN.adaptive_avg_pool3d_backward.grad_input(*given.values(), grad_input=ones(0))


def _max_pool3d(**changed: Any) -> object:
    given = {"grad": ones(1, 1, 3, 2), "indices": places(1, 1, 3, 2)} | changed
    geometry = ([1, 1, 2], [1, 1, 2], [0] * 3, [1] * 3, False)
    return ATEN.max_pool3d_with_indices_backward(
        given["grad"], ones(1, 1, 3, 4), *geometry, given["indices"]
    )


def _avg_pool2d(**changed: Any) -> object:
    given = {"grad": ones(2, 1, 3, 2), "x": ones(2, 1, 3, 4)} | changed
    return ATEN.avg_pool2d_backward(*given.values(), [1, 2], [1, 2], [0, 0], False, True, None)


def _reflection_pad1d(**changed: Any) -> object:
    given = {"grad": ones(2, 3, 6), "x": ones(2, 3, 4)} | changed
    return ATEN.reflection_pad1d_backward(*given.values(), [1, 1])


#: Derivatives, and what each may not be given; what is called first makes a tensor.
MISFITS: dict[Callable[..., object], list[dict[str, Any]]] = {
    _softmax: [
        {"result": partial(ones, 0, 3)},
        {"result": partial(ones, 1, 3)},
        {"grad": partial(ones, 3)},
    ],
    _log_softmax: [
        {"result": partial(ones, 0, 3)},
        {"result": partial(ones, 1, 3)},
        {"grad": partial(ones, 3)},
    ],
    _group_norm: [
        {"weight": partial(ones, 1)},
        {"weight": partial(ones, 0)},
        {"weight": partial(ones, 2, 6)},
        {"mean": partial(ones, 1)},
        {"groups": 0},
        {"groups": 4, "mean": partial(ones, 1, 4), "rstd": partial(ones, 1, 4)},
    ],
    _glu: [
        {"grad": partial(ones, 0)},
        {"grad": partial(ones, 2, 6)},
        {"grad": partial(ones, 7, 3)},
        {"x": partial(ones, 2, 5)},
    ],
    _unfold: [
        {"step": 0},
        {"step": -1},
        {"grad": partial(ones, 4, 2)},
        {"grad": partial(ones, 0, 2)},
        {"size": 5},
    ],
    _nll_loss2d: [
        {"grad": partial(ones, 1, 2, 3)},
        {"grad": partial(ones, 1, 2, 4), "reduction": 1},
        {"total": partial(ones, 3)},
        {"total": partial(ones, 0)},
    ],
    _adaptive_avg_pool2d: [
        {"grad": partial(ones, 1, 3, 1, 2)},
        {"grad": partial(ones, 2, 2, 1, 2)},
        {"grad": partial(ones, 2)},
        {"grad": partial(ones, 2, 1, 2)},
        {"x": partial(ones, 4)},
    ],
    _adaptive_avg_pool3d_out: [
        {"grad": partial(ones, 1, 1, 1, 1, 2)},
        {"grad": partial(ones, 2)},
    ],
    _avg_pool2d: [{"grad": partial(ones, 1, 1, 3, 2)}, {"grad": partial(ones, 0, 1, 3, 2)}],
    _reflection_pad1d: [
        {"grad": partial(ones, 1, 3, 6)},
        {"grad": partial(ones, 0, 3, 6)},
        {"grad": partial(ones, 2, 1, 6)},
    ],
    _max_pool3d: [
        {"grad": partial(ones, 1, 1, 3, 1), "indices": partial(places, 1, 1, 3, 1)},
        {"grad": partial(ones, 1, 1, 3, 4), "indices": partial(places, 1, 1, 3, 4)},
        {"indices": partial(places, 1, 1, 3, 1)},
    ],
    _bags: [
        {"grad": partial(ones, 5)},
        {"bags": partial(places, 3)},
        {"indices": partial(places, 2, 2)},
    ],
    _scales_of_bags: [
        {"grad": partial(ones, 2, 1)},
        {"grad": partial(ones, 5)},
        {"table": partial(ones, 5)},
        {"bags": partial(places, 1)},
    ],
}


def _cases() -> list[Any]:
    return [
        pytest.param(derivative, changed, id=f"{derivative.__name__[1:]}-{_said(changed)}")
        for derivative, misfits in MISFITS.items()
        for changed in misfits
    ]


def _said(changed: dict[str, Any]) -> str:
    return "-".join(
        f"{name}_{list(value.args) if isinstance(value, partial) else value}"
        for name, value in changed.items()
    )


@pytest.mark.parametrize(("derivative", "changed"), _cases())
def test_what_does_not_fit_is_refused(
    derivative: Callable[..., object], changed: dict[str, Any]
) -> None:
    derivative()
    given = {name: value() if callable(value) else value for name, value in changed.items()}
    with pytest.raises((RuntimeError, IndexError)) as raised:
        derivative(**given)
    assert not isinstance(raised.value, torch.AcceleratorError), "a kernel ran"
    torch.accelerator.synchronize()
