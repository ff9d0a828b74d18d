# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that real backends make above their driver, and how they are told.

A lie wraps the operators of the device under test: it sees each call and may change its arguments,
its result or what it did. A planted lie changes something else, once, before the checks run. The
lies are in the files lies_about_*.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

BACKEND = "puone"

Call = Callable[..., Any]


@dataclass(frozen=True)
class Lie:
    """A mistake: what it does to a call, and which requirements must notice, by which checks."""

    tell: Callable[..., Any]
    requirements: tuple[str, ...]
    checks: tuple[str, ...]
    planted: bool = False
    """Called once, without arguments, instead of for every operator."""
    layer: str = ""
    """The part of the backend it is about; by default the way in which it is told."""

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return str(self.tell.__doc__)


LIES: dict[str, Lie] = {}


def lie(
    requirements: str, checks: str, *, planted: bool = False, layer: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a lie with the requirements, and the check patterns, that must catch it."""

    def register(tell: Callable[..., Any]) -> Callable[..., Any]:
        if tell.__name__ in LIES:
            raise ValueError(f"two lies are called {tell.__name__}")
        LIES[tell.__name__] = Lie(
            tell, tuple(requirements.split()), tuple(checks.split()), planted, layer
        )
        return tell

    return register


def plant(owner: Any, name: str, value: Any) -> None:
    """Put what a planted lie says in the place of an attribute of a module or class."""
    setattr(owner, name, value)


def _through(
    self: Telling, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    kwargs = kwargs or {}
    if not on_device([args, kwargs]):
        return func(*args, **kwargs)
    return self.tell(func.name().removeprefix("aten::"), func, args, kwargs)


# Computations of the CPU pass through the mode as well. What they raise is not the backend's, which
# the suite tells by the files in the traceback.
_through.__code__ = _through.__code__.replace(co_filename="<mode>")


class Telling(TorchDispatchMode):
    """While active, every operator that touches the device goes through one lie."""

    __torch_dispatch__ = _through

    def __init__(self, tell: Callable[..., Any]) -> None:
        super().__init__()
        self.tell = tell


def on_device(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, torch.device)):
        return (value if isinstance(value, torch.device) else value.device).type == BACKEND
    if isinstance(value, dict):
        return any(on_device(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(on_device(item) for item in value)
