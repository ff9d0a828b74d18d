# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products and batches of them have each row, column and summand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, Inputs, agree_with_double, check
from torch_conformance.checks.sizes._sizes import MILLION, ROWS, Work

#: Rows, inner dimension, columns.
_FACTORS = (
    (65, 129, 33),
    (129, 65, 257),
    (1, 1031, 65),
    (65, 1031, 1),
    (1031, 1, 65),
    (257, 515, 129),
    (65_537, 3, 2),
    (2, 3, 65_537),
    (2, 65_537, 3),
)
_PRODUCTS: dict[str, Callable[[Inputs, int, int, int], Any]] = {
    "mm": lambda m, r, i, c: m.whole(r, i) @ m.whole(i, c),
    "left_transposed": lambda m, r, i, c: m.whole(i, r).t() @ m.whole(i, c),
    "right_transposed": lambda m, r, i, c: m.whole(r, i) @ m.whole(c, i).t(),
    "both_transposed": lambda m, r, i, c: m.whole(i, r).t() @ m.whole(c, i).t(),
    "part": lambda m, r, i, c: m.whole(r + 1, i + 3)[1:, 2:-1] @ m.whole(i, c + 5)[:, 3:-2],
    "addmm": lambda m, r, i, c: torch.addmm(m.whole(r, c), m.whole(r, i), m.whole(i, c), alpha=2),
    "addmm_row": lambda m, r, i, c: torch.addmm(m.whole(c), m.whole(r, i), m.whole(i, c), beta=3),
    "mv": lambda m, r, i, c: [m.whole(r, i) @ m.whole(i), m.whole(i) @ m.whole(i, c)],
    "linear": lambda m, r, i, c: m.gradients(
        functional.linear, m.whole(r, i), m.whole(c, i), m.whole(c)
    ),
    "bmm": lambda m, r, i, c: m.whole(3, r, i) @ m.whole(3, i, c),
    "gradient": lambda m, r, i, c: m.gradients(torch.mm, m.whole(r, i), m.whole(i, c)),
    "outer": lambda m, r, i, c: torch.outer(m.whole(r), m.whole(c)),
}


@check("sizes/product", "SIZE-008", cases=_PRODUCTS, breadth=STANDARD)
def products_are_complete(dev: Device, case: str) -> None:
    """Matrix products with odd, long and thin factors have each row, column and summand."""
    agree_with_double(dev, lambda m: [_PRODUCTS[case](m, *sizes) for sizes in _FACTORS])


@check(
    "sizes/product_type",
    "SIZE-008",
    cases=("mm", "right_transposed", "addmm", "bmm", "linear"),
    dtypes=("float16", "bfloat16", "float64", "complex64", "int64", "int32"),
    breadth=STANDARD,
)
def products_of_each_type_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Matrix products of each data type have each row, column and summand."""
    if not (dtype.is_floating_point or dtype.is_complex) and case in _DIFFERENTIATED:
        dev.unsupported("integers have no gradient")
    agree_with_double(dev, lambda m: [_PRODUCTS[case](m, *sizes) for sizes in _FACTORS[:2]], dtype)


_DIFFERENTIATED = ("linear", "gradient")

_BATCHES: dict[str, Work] = {
    "many": lambda m: m.whole(ROWS, 2, 3) @ m.whole(ROWS, 3, 2),
    "many_transposed": lambda m: m.whole(ROWS, 3, 2).mT @ m.whole(ROWS, 2, 3).mT,
    "broadcast": lambda m: m.whole(65, 1, 5, 7) @ m.whole(33, 7, 9),
    "baddbmm": lambda m: torch.baddbmm(m.whole(65, 33, 1), m.whole(65, 33, 17), m.whole(65, 17, 9)),
    "addbmm": lambda m: torch.addbmm(m.whole(33, 9), m.whole(65, 33, 17), m.whole(65, 17, 9)),
    "einsum": lambda m: torch.einsum("bij,bkj->bik", m.whole(65, 33, 17), m.whole(65, 9, 17)),
    "gradient": lambda m: m.gradients(torch.bmm, m.whole(ROWS, 2, 3), m.whole(ROWS, 3, 2)),
    "strided": lambda m: m.whole(33, 65, 17).permute(1, 0, 2) @ m.whole(17, 65, 9).permute(1, 0, 2),
    "dot": lambda m: [
        m.whole(MILLION).dot(m.whole(MILLION, seed=1)),
        m.whole(131_075)[::2].dot(m.whole(65_538, seed=1)),
    ],
    "attention": lambda m: functional.scaled_dot_product_attention(
        m.steps(2, 3, 129, 65) / 16, m.steps(2, 3, 257, 65, seed=1), m.steps(2, 3, 257, 65, seed=2)
    ),
    "cdist": lambda m: torch.cdist(m.whole(257, 5), m.whole(301, 5, seed=1), 1.0),
    "kron": lambda m: torch.kron(m.whole(65, 33), m.whole(9, 17)),
    "cross": lambda m: torch.linalg.cross(m.whole(ROWS, 3), m.whole(ROWS, 3, seed=1)),
}


@check("sizes/batch", "SIZE-008", cases=_BATCHES, breadth=STANDARD)
def batches_are_complete(dev: Device, case: str) -> None:
    """Batches of more than 2^16 products, and long inner products, are complete."""
    agree_with_double(dev, _BATCHES[case], rtol=1e-5, slack=1e-6)
