# SPDX-License-Identifier: BSD-3-Clause
"""Normalisations, in full precision and in half of it."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Inputs
from torch_conformance.checks.sizes._sizes import LAST, ROWS, Work


def _layer_norm(rows: int, features: int) -> Work:
    return lambda m: m.gradients(
        lambda x, w, b: functional.layer_norm(x, (features,), w, b),
        m.steps(rows, features),
        m.whole(features, seed=1),
        m.whole(features, seed=2),
    )


def _batch_norm(*shape: int, last: bool = False, training: bool = True) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        mean, variance = m.whole(shape[1], seed=3), m.whole(shape[1], seed=4).abs() + 1
        x = m.steps(*shape)
        if last:
            x = x.to(memory_format=LAST)
        weights = m.whole(shape[1], seed=1), m.whole(shape[1], seed=2)
        results = m.gradients(
            lambda x, w, b: functional.batch_norm(x, mean, variance, w, b, training),
            x,
            *weights,
        )
        return [*results, mean, variance]

    return program


def _group_norm(groups: int, *shape: int, last: bool = False) -> Work:
    def program(m: Inputs) -> list[Tensor]:
        x = m.steps(*shape).to(memory_format=LAST) if last else m.steps(*shape)
        return m.gradients(
            lambda x, w, b: functional.group_norm(x, groups, w, b),
            x,
            m.whole(shape[1], seed=1),
            m.whole(shape[1], seed=2),
        )

    return program


NORMS: dict[str, Work] = {
    "layer_65": _layer_norm(129, 65),
    "layer_129": _layer_norm(65, 129),
    "layer_1031": _layer_norm(33, 1031),
    "layer_long": _layer_norm(3, 65_537),
    "layer_many": _layer_norm(ROWS, 5),
    "batch_65": _batch_norm(5, 65, 17, 13),
    "batch_129": _batch_norm(3, 129, 9, 11),
    "batch_65_last": _batch_norm(5, 65, 17, 13, last=True),
    "batch_129_last": _batch_norm(3, 129, 9, 11, last=True),
    "batch_rows": _batch_norm(1031, 65),
    "batch_long": _batch_norm(2, 3, 65_537),
    "batch_many": _batch_norm(3, ROWS),
    "batch_evaluated": _batch_norm(5, 65, 17, 13, training=False),
    "batch_evaluated_last": _batch_norm(5, 129, 9, 13, last=True, training=False),
    "group_65": _group_norm(5, 3, 65, 17, 13),
    "group_129": _group_norm(43, 2, 129, 9, 11),
    "group_last": _group_norm(13, 3, 65, 9, 11, last=True),
    "group_long": _group_norm(2, 2, 4, 32_769),
    "group_many": _group_norm(1, ROWS, 2, 3),
    "instance": lambda m: m.gradients(functional.instance_norm, m.steps(5, 65, 9, 13)),
    "rms": lambda m: m.gradients(
        lambda x, w: functional.rms_norm(x, (129,), w, 1e-5),
        m.steps(65, 129),
        m.whole(129, seed=1),
    ),
    "local_response": lambda m: functional.local_response_norm(m.steps(3, 65, 9, 13), 5),
    "normalize": lambda m: functional.normalize(m.steps(ROWS, 5) + 0.5, dim=1),
}
