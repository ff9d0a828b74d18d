# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend as one that computes in float32 and has no other floating-point numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import torch_puone  # noqa: F401 - registers the device

aten = torch.ops.aten


def _refusing(op: Any) -> Callable[..., torch.Tensor]:
    """The allocation of the reference backend, for the dtypes there are."""
    allocate = torch.library.get_kernel(op, "PrivateUse1")

    def empty(keys: Any, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        wanted = dtype or torch.get_default_dtype()
        if wanted is not torch.float32 and (wanted.is_floating_point or wanted.is_complex):
            raise TypeError(f"this chip has no {wanted}: convert to float32 first")
        return allocate.call_boxed(keys, *args, dtype=wanted, **kwargs)

    return empty


def _register() -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")
    for op in (aten.empty.memory_format, aten.empty_strided.default):
        with warnings.catch_warnings():  # of overriding, which is the intent
            warnings.simplefilter("ignore")
            library.impl(op, _refusing(op), "PrivateUse1", with_keyset=True, allow_override=True)
    return library


_library = _register()
