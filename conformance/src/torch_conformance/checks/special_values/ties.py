# SPDX-License-Identifier: BSD-3-Clause
"""Gradients at equal elements and at zero are divided, chosen or defined as on the CPU."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_conformance.authoring.api import Device, agree_with_double, check
from torch_conformance.checks.special_values._values import INF, Work

#: Functions whose gradient is shared or chosen among equal elements, or is defined at zero.
_SHARED: dict[str, Work] = {
    "amax": lambda m: m.gradients(lambda x: x.amax(1), m.of([[1, 3, 3, 2], [5, 5, 5, 5]])),
    "amin": lambda m: m.gradients(lambda x: x.amin(0), m.of([[1, 3, 3, 2], [1, 5, 3, 2]])),
    "max_all": lambda m: m.gradients(lambda x: x.max()[None], m.of([1, 3, 3, 2])),
    "min_all": lambda m: m.gradients(lambda x: x.min()[None], m.of([1, 3, 1, 1, 1])),
    "maximum": lambda m: m.gradients(torch.maximum, m.of([1, 2, 3]), m.of([1, 3, 2])),
    "minimum": lambda m: m.gradients(torch.minimum, m.of([1, 2, 3]), m.of([1, 3, 2])),
    "norm_of_zero": lambda m: [
        y for p in (1, 2, 3, INF) for y in m.gradients(lambda x, p=p: x.norm(p)[None], m.of([0, 0]))
    ],
    "prod_of_zeros": lambda m: [
        *m.gradients(lambda x: x.prod(1), m.of([[0, 2, 3], [0, 0, 3], [1, 2, 3]])),
        *m.gradients(lambda x: x.cumprod(0), m.of([2, 0, 3, 4])),
    ],
    "sqrt_of_zero": lambda m: m.gradients(torch.sqrt, m.of([0, 4])),
    "power_of_zero": lambda m: [
        *m.gradients(lambda x: x.pow(2), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(1), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(0), m.of([0, 3])),
        *m.gradients(lambda x: x.pow(m.of([0, 1, 2])), m.of([0, 0, 0])),
    ],
    "std_of_equal": lambda m: m.gradients(lambda x: x.var(1), m.of([[2, 2, 2], [1, 2, 3]])),
    "max_pool": lambda m: m.gradients(
        lambda x: functional.max_pool2d(x, 2), m.of([[[[1, 1], [1, 1]]], [[[0, 2], [2, 0]]]])
    ),
    "sinc": lambda m: m.gradients(torch.sinc, m.of([0, 0.5, 1])),
    "xlogy": lambda m: m.gradients(torch.xlogy, m.of([0, 1, 2]), m.of([2, 1, 4])),
    "atan2": lambda m: m.gradients(torch.atan2, m.of([0, 1]), m.of([1, 0])),
    "cosine": lambda m: m.gradients(
        lambda a, b: functional.cosine_similarity(a, b, 1), m.of([[3, 4]]), m.of([[3, 4]])
    ),
    "logsumexp_of_equal": lambda m: m.gradients(lambda x: x.logsumexp(1), m.of([[2, 2, 2, 2]])),
}


@check("special_values/shared_gradient", "SPECIAL-007", cases=_SHARED)
def gradients_at_ties_and_zeros_are_those_of_the_cpu(dev: Device, case: str) -> None:
    """The gradient at equal elements and at zero is divided, chosen or defined as on the CPU."""
    agree_with_double(dev, _SHARED[case])
