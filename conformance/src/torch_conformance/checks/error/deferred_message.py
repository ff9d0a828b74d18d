# SPDX-License-Identifier: BSD-3-Clause
"""The message of a late error names the launch that failed, and how to find its call."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.error._failures import DEFERRED, NAMED


def _message_of(dev: Device, index: int, launches: Sequence[str], failing: int) -> str:
    """What the wait says after some launches on device `index`, of which one fails."""
    stream, x = dev.stream(index), torch.ones(64, device=dev.device(index))
    dev.synchronize()
    try:
        dev.fault.kernel_error_at(failing + 1)
        with stream:
            for name in launches:
                NAMED[name](x)
        return str(raised(stream.synchronize)).lower()
    finally:
        dev.fault.reset()


@check("error/deferred_name", "ERR-021", needs=DEFERRED)
def a_late_error_names_the_launch(dev: Device) -> None:
    """The message of a late error names the kernel that failed, not the call that found it."""
    message = _message_of(dev, 0, ["fill"], 0)
    assert "fill" in message, f"the failed launch, fill, is not named: {message}"


#: Which of three launches fails.
_FAILING = {"first": 0, "second": 1, "last": 2}


@check("error/deferred_name", "ERR-021", cases=_FAILING, needs=DEFERRED)
def a_late_error_names_the_launch_that_failed(dev: Device, case: str) -> None:
    """Of several launches on one stream the message names the one that failed, and no other."""
    for index in {0, dev.count - 1}:
        message = _message_of(dev, index, [*NAMED], _FAILING[case])
        named = [name in message for name in NAMED]
        wanted = [position == _FAILING[case] for position in range(len(NAMED))]
        assert named == wanted, f"{[*NAMED][_FAILING[case]]} failed on device {index}: {message}"


@check("error/deferred_advice", "ERR-032", needs=DEFERRED)
def late_errors_name_the_variable_that_makes_calls_wait(dev: Device) -> None:
    """The message of a late error has the name of the descriptor's blocking_env."""
    names = dev.environment("blocking_env")
    message = _message_of(dev, 0, ["fill"], 0)
    for name in names:
        assert name.lower() in message, f"{name} is not in the message: {message}"
