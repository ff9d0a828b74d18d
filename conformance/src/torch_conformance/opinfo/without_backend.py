# SPDX-License-Identifier: BSD-3-Clause
"""Whether the CPU raises by itself, so that there is nothing to compare a device with.

PyTorch calls the module of the current accelerator for computations on the CPU, too: entries of the
operator database seed all generators. What such a call raises is an error of the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from torch_conformance.authoring.origin import left_backend


def raised_by_cpu(error: Exception, again: Callable[[], object]) -> bool:
    """Whether a computation on the CPU raised by itself; `again` repeats it."""
    if left_backend(error):
        return False
    # A wrong call of the backend leaves no trace in its code: without the backend, it goes well.
    with without_accelerator():
        try:
            again()
        except Exception:
            return True
    return False


@contextmanager
def without_accelerator() -> Iterator[None]:
    """Let PyTorch's Python code find no accelerator, so that it computes on the CPU alone."""
    name = torch._C._get_privateuse1_backend_name()
    module = vars(torch).pop(name, None)
    try:
        with (
            mock.patch.object(torch.accelerator, "is_available", _unavailable),
            mock.patch.object(torch.accelerator, "current_accelerator", _nothing),
        ):
            yield
    finally:
        if module is not None:
            setattr(torch, name, module)


def _unavailable() -> bool:
    return False


def _nothing(check_available: bool = False) -> Any:
    return None
