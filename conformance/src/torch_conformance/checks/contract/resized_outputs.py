# SPDX-License-Identifier: BSD-3-Clause
"""An operator resizes an output of another size, and warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, index, noise, zeros_index

CPU = torch.device("cpu")

#: Calls that write a result of 3 x 4 to out=.
_RESIZED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add": lambda x, out: torch.add(x, 1, out=out),
    "mul": lambda x, out: torch.mul(x, x[:1], out=out),
    "mm": lambda x, out: torch.mm(x, x[:, :].t() @ x, out=out),
    "cat": lambda x, out: torch.cat([x[:1], x[1:]], out=out),
    "gather": lambda x, out: torch.gather(x, 1, zeros_index(x, 3, 4), out=out),
    "index_select": lambda x, out: torch.index_select(x, 0, index(x, 2, 0, 1), out=out),
    "sum": lambda x, out: torch.sum(x.expand(2, 3, 4), 0, out=out),
    "softmax": lambda x, out: torch.softmax(x, 1, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 1, out=out),
    "where": lambda x, out: torch.where(x > 0, x, -x, out=out),
    "tril": lambda x, out: torch.tril(x, out=out),
}
_SIZES: dict[str, tuple[int, ...]] = {
    "fewer": (2, 4),
    "more": (5, 7),
    "as_many": (4, 3),
    "as_many_in_a_row": (12,),
    "one": (),
}


@check("contract/resized", "OP-034", cases=_RESIZED)
def out_of_any_other_size_is_resized(dev: Device, case: str) -> None:
    """out= with fewer, more or as many elements is resized, with the CPU's warning, each time."""
    for size in _SIZES.values():
        expected = _resized(CPU, _RESIZED[case], size)
        actual = _resized(dev.device(), _RESIZED[case], size)
        assert actual[1:] == expected[1:], f"{actual[1:]} instead of {expected[1:]}"
        dev.assert_close(actual[0], expected[0])


def _resized(
    device: torch.device, write: Callable[[Tensor, Tensor], Any], size: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...], list[str]]:
    """What out= of that size holds at the end, its strides, and the warnings."""
    out = torch.full(size, -7.0, device=device)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            write(noise((3, 4)).to(device), out)
    finally:
        torch.set_warn_always(always)
    # PyTorch's own functions in Python name the sizes in other words.
    said = [str(entry.message).partition(" since ")[0] for entry in caught]
    return out, out.stride(), said
