# SPDX-License-Identifier: BSD-3-Clause
"""Indices that are read, in full precision and in half of it."""

from __future__ import annotations

from torch.nn import functional

from torch_conformance.checks.sizes._sizes import MILLION, ROWS, Work

#: Rows that an index names, and as many as that again.
TABLE = 70_001

INDEXED: dict[str, Work] = {
    "index": lambda m: m.steps(TABLE, 3)[m.order(TABLE)],
    "index_columns": lambda m: m.steps(3, TABLE)[:, m.order(TABLE)],
    "index_pairs": lambda m: m.steps(TABLE, 9)[
        m.index(131_075, below=TABLE), m.index(131_075, below=9, seed=1)
    ],
    "index_select": lambda m: m.steps(TABLE, 9).index_select(0, m.order(TABLE)),
    "index_select_columns": lambda m: m.steps(5, TABLE).index_select(1, m.order(TABLE)),
    "gather": lambda m: m.steps(TABLE, 3).gather(0, m.index(TABLE, 3, below=TABLE)),
    "gather_rows": lambda m: m.steps(3, TABLE).gather(1, m.index(3, 131_075, below=TABLE)),
    "take": lambda m: m.steps(257, 1031).t().take(m.order(257, 1031)),
    "take_along_dim": lambda m: m.steps(TABLE, 3).take_along_dim(m.order(TABLE)[:, None], 0),
    "embedding": lambda m: functional.embedding(m.index(131_075, below=TABLE), m.steps(TABLE, 5)),
    "mask": lambda m: m.steps(131_075)[m.whole(131_075) > 0],
    "mask_rows": lambda m: m.steps(ROWS, 3)[m.whole(ROWS) > 0],
    "masked_select": lambda m: m.steps(MILLION).masked_select(m.whole(MILLION) > 0),
    "nonzero": lambda m: [m.whole(MILLION).nonzero(), m.whole(257, 1031).nonzero()],
    "repeat_interleave": lambda m: m.steps(TABLE).repeat_interleave(m.index(TABLE, below=4)),
}
