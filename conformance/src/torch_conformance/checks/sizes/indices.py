# SPDX-License-Identifier: BSD-3-Clause
"""Indices beyond 16 bits read and write the elements that they name."""

from __future__ import annotations

from torch.nn import functional

from torch_conformance.authoring.api import Device, agree_with_double, check
from torch_conformance.checks.sizes._indices import INDEXED, TABLE
from torch_conformance.checks.sizes._sizes import MILLION, Work

_WRITTEN: dict[str, Work] = {
    "index_put": lambda m: m.steps(TABLE, 3).index_put_((m.order(TABLE),), m.whole(TABLE, 3)),
    "index_put_accumulate": lambda m: m.steps(TABLE, 3).index_put_(
        (m.index(131_075, below=TABLE),), m.whole(131_075, 3), accumulate=True
    ),
    "index_put_few": lambda m: m.steps(7).index_put_(
        (m.index(131_075, below=7),), m.whole(131_075), accumulate=True
    ),
    "index_add": lambda m: m.steps(TABLE, 3).index_add_(
        0, m.index(131_075, below=TABLE), m.whole(131_075, 3)
    ),
    "index_add_columns": lambda m: m.steps(3, TABLE).index_add_(
        1, m.index(131_075, below=TABLE), m.whole(3, 131_075)
    ),
    "index_copy": lambda m: m.steps(TABLE, 3).index_copy_(0, m.order(TABLE), m.whole(TABLE, 3)),
    "index_fill": lambda m: m.steps(TABLE, 3).index_fill_(0, m.order(TABLE)[:50_001], 9),
    "index_reduce": lambda m: m.steps(TABLE, 3).index_reduce_(
        0, m.index(131_075, below=TABLE), m.whole(131_075, 3, limit=9), "amax"
    ),
    "scatter": lambda m: m.steps(TABLE).scatter_(0, m.order(TABLE), m.whole(TABLE)),
    "scatter_add": lambda m: m.steps(TABLE, 3).scatter_add_(
        0, m.index(131_075, 3, below=TABLE), m.whole(131_075, 3)
    ),
    "scatter_add_few": lambda m: m.steps(5).scatter_add_(
        0, m.index(131_075, below=5), m.whole(131_075)
    ),
    "scatter_reduce": lambda m: m.steps(3, TABLE).scatter_reduce_(
        1, m.index(3, 131_075, below=TABLE), m.whole(3, 131_075, limit=9), "amin"
    ),
    "put": lambda m: m.steps(257, 1031).put_(m.order(257, 1031), m.steps(257, 1031, seed=1)),
    "put_accumulate": lambda m: m.steps(TABLE).put_(
        m.index(131_075, below=TABLE), m.whole(131_075), accumulate=True
    ),
    "mask": lambda m: m.steps(131_075).masked_scatter_(m.whole(131_075) > 0, m.steps(131_075)),
    "masked_fill": lambda m: m.steps(MILLION).masked_fill_(m.whole(MILLION) > 0, 9),
    "embedding_gradient": lambda m: m.gradients(
        lambda w: functional.embedding(m.index(131_075, below=TABLE), w), m.steps(TABLE, 3)
    ),
    "embedding_gradient_few": lambda m: m.gradients(
        lambda w: functional.embedding(m.index(131_075, below=5), w, 1), m.steps(5, 3)
    ),
    "gather_gradient": lambda m: m.gradients(
        lambda x: x.gather(0, m.index(131_075, below=TABLE)), m.steps(TABLE)
    ),
    "embedding_bag": lambda m: m.gradients(
        lambda w: functional.embedding_bag(m.index(2001, 9, below=TABLE), w, mode="sum"),
        m.steps(TABLE, 5),
    ),
}


@check("sizes/index_read", "SIZE-006", cases=INDEXED)
def indices_beyond_16_bits_are_read(dev: Device, case: str) -> None:
    """More than 2^16 indices, with numbers beyond 2^16, each read the element that they name."""
    agree_with_double(dev, INDEXED[case])


@check("sizes/index_write", "SIZE-006", cases=_WRITTEN)
def indices_beyond_16_bits_are_written(dev: Device, case: str) -> None:
    """More than 2^16 indices, with numbers beyond 2^16, each write or add what they are given."""
    agree_with_double(dev, _WRITTEN[case])
