# SPDX-License-Identifier: BSD-3-Clause
"""Whether one sample of an operator draws random numbers, so that its values mean nothing.

Asked only after a comparison failed. The state of the generator does not tell: many entries of the
operator database seed it and put it back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Parameters of operators that are random only when one of these is not zero, or true.
_SWITCHES = ("dropout_p", "dropout", "p", "train", "training")


class _Watch(TorchDispatchMode):
    """Notes whether an operator that draws random numbers is called."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and not _switched_off(func, args, kwargs):
            self.drawn = True
        return func(*args, **kwargs)


def drawn(action: Callable[[], Any]) -> bool:
    """Repeat what was done with the sample on the CPU, and watch.

    Where only the watched action raises (matmul with a transposed out=), what it did before counts.
    """
    with _Watch() as watch, contextlib.suppress(Exception):
        action()
    return watch.drawn


def _switched_off(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    parameters = func._schema.arguments
    given = {p.name: value for p, value in zip(parameters, args, strict=False)} | kwargs
    switches = [p for p in parameters if p.name in _SWITCHES]
    values = [given.get(p.name, p.default_value) for p in switches]
    return any(type(value) in (bool, int, float) and not value for value in values)
