# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's function of shapes, the kernel of the meta device, says of a call.

A backend may ask it for the shape of a result; it refuses arguments in words of its own, and some
that the CPU takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_conformance.authoring.backend import first_line
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.transfer import META, moved
from torch_conformance.opinfo.without_backend import without_accelerator


def refusal(function: Callable[..., Any], sample: Sample) -> Exception | None:
    """What it raises for the arguments, if anything."""
    shaped = moved(sample, META)
    try:
        with without_accelerator():
            shaped.call(function)
    except Exception as error:
        return error
    return None


def refuses_alike(function: Callable[..., Any], sample: Sample, error: Exception) -> bool:
    """Whether it refuses the arguments with an exception like `error`."""
    return described(refusal(function, sample)) == described(error)


def described(error: Exception | None) -> str:
    """Type and first line of an exception."""
    return "nothing was raised" if error is None else f"{type(error).__name__}: {first_line(error)}"
