# SPDX-License-Identifier: BSD-3-Clause
"""Norms, lists, indices and copies again, in half the precision."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import STANDARD, Device, agree_with_double, check
from torch_conformance.checks.sizes._copies import COPIED
from torch_conformance.checks.sizes._indices import INDEXED
from torch_conformance.checks.sizes._lists import LISTS
from torch_conformance.checks.sizes._norms import NORMS
from torch_conformance.checks.sizes._sizes import Work

#: What needs more digits than 16 bits have: variances of few numbers, and numbers beyond 65504.
_WIDE_ONLY = (
    *("batch_many", "group_many", "layer_many", "local_response", "clip", "norm", "window"),
    *("arange", "linspace"),
)
_NARROW: dict[str, Work] = {
    f"{kind}_{name}": work
    for kind, table in (
        ("norm", NORMS),
        ("list", LISTS),
        ("index", INDEXED),
        ("copy", COPIED),
    )
    for name, work in table.items()
    if name not in _WIDE_ONLY
}


@check("sizes/narrow", "SIZE-012", cases=_NARROW, dtypes=("float16", "bfloat16"), breadth=STANDARD)
def narrow_types_are_complete(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Norms, lists, indices and copies of 16-bit numbers are complete."""
    agree_with_double(dev, _NARROW[case], dtype, rtol=0.02, slack=0.01)
