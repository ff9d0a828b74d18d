# SPDX-License-Identifier: BSD-3-Clause
"""What is done for each pin: one whose index is down does not hinder the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import printable

T = TypeVar("T")


def each(pins: Iterable[T], do: Callable[[T], Exit]) -> Exit:
    """The worst status."""
    worst = Exit.OK
    for pin in pins:
        try:
            status = do(pin)
        except CiError as error:
            print(printable(f"error: {error}"), file=sys.stderr)
            status = Exit.UNUSABLE
        worst = max(worst, status)
    return worst
