# SPDX-License-Identifier: BSD-3-Clause
"""A slow device gives the same results in the same order."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_conformance.authoring.api import LATE_MS, Device, check

#: What another stream writes, beside the work that it waits for afterwards.
_BESIDE: dict[str, Callable[[torch.Tensor], object]] = {
    "order": lambda y: None,
    "overlap": lambda y: y.fill_(9),
}


@check("error/latency", "ERR-026", cases=_BESIDE, needs=("fault_injection", "streams", "events"))
def a_slow_device_gives_the_same_results(dev: Device, case: str) -> None:
    """Latency in front of every piece of work changes no result and no order."""
    x, y = torch.zeros(64, device=dev.device(0)), torch.zeros(64, device=dev.device(0))
    dev.synchronize()
    try:
        dev.fault.latency_ns(int(LATE_MS / 8 * 1e6))
        first, then = dev.stream(0), dev.stream(0)
        with first:
            for value in range(1, 4):
                x.fill_(value)
        with then:
            _BESIDE[case](y)
        then.wait_stream(first)
        with then:
            y.copy_(x)
        dev.assert_equal(y, torch.full((64,), 3.0))
    finally:
        dev.fault.reset()
