# SPDX-License-Identifier: BSD-3-Clause
"""Classes that construct something else than they are, and are otherwise the real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def stand_in(
    real: type,
    construct: Callable[..., Any],
    is_instance: Callable[[Any], bool] | None = None,
) -> type:
    """A subclass of `real` whose calls are calls of `construct`.

    What is an instance of `real` (or fulfils `is_instance`) is one of it. Classes that a program
    derives from it are ordinary subclasses of `real`.
    """

    class Meta(type(real)):  # type: ignore[misc]  # a base of run time
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return construct(*args, **kwargs) if cls is made else super().__call__(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            if cls is not made:
                return bool(super().__instancecheck__(instance))
            return is_instance(instance) if is_instance else isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return (
                issubclass(subclass, real) if cls is made else super().__subclasscheck__(subclass)
            )

    named = {"__module__": real.__module__, "__doc__": real.__doc__, "__qualname__": real.__name__}
    made: type = Meta(real.__name__, (real,), named)
    return made
