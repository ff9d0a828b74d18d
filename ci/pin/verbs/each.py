# SPDX-License-Identifier: BSD-3-Clause
"""What is done for each pin: one whose index is down does not hinder the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from ci.errors import CiError, Exit
from ci.output import printable
from ci.pin.model import Pin


def each(pins: Iterable[Pin], do: Callable[[Pin], Exit]) -> Exit:
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
