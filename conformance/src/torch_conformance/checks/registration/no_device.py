# SPDX-License-Identifier: BSD-3-Clause
"""Where there is no device the module says so, and its use raises."""

from __future__ import annotations

import functools
import json
from typing import Any

from torch_conformance.authoring.api import Device, check, why_ended

_WITHOUT_DEVICE = """
import json, torch
D = {type!r}
m = torch.get_device_module(D)
torch.manual_seed(3)  # of every device there is
told = [
    m.is_available(),
    m.device_count(),
    torch.accelerator.is_available(),
    torch.accelerator.device_count(),
]
said = []
for use in {uses!r}:
    try:
        eval(use)
        said.append([use, "nothing", ""])
    except Exception as error:
        said.append([use, type(error).__name__, str(error)])
print("FOUND" + json.dumps([told, said, torch.ones(3).sum().item()]))
"""
#: What needs a device.
_USES = ("torch.ones(2, device=D)", "torch.ones(2).to(D)", "m.synchronize()", "m.current_device()")


@functools.cache
def _found_without_device(dev: Device) -> list[Any]:
    """What a fresh process finds where there is no device."""
    env = dev.environment("no_device_env")
    done = dev.python(_WITHOUT_DEVICE.format(type=dev.type, uses=_USES), env=env)
    assert done.returncode == 0, why_ended(done)
    found: list[Any] = json.loads(done.stdout.rpartition("FOUND")[2])
    return found


@check("registration/no_device:told", "REG-048", needs=("accelerator",))
def where_there_is_no_device_the_module_says_so(dev: Device) -> None:
    """Without a device none is available or counted; work on the CPU goes on."""
    told, _, total = _found_without_device(dev)
    assert told == [False, 0, False, 0], f"(module, its count, accelerator, its count): {told}"
    assert total == 3, f"torch.ones(3).sum() on the CPU is {total}"


@check("registration/no_device:raised", "REG-049", needs=("accelerator",))
def where_there_is_no_device_its_use_raises(dev: Device) -> None:
    """Without a device each use raises RuntimeError with a reason."""
    _, said, _ = _found_without_device(dev)
    for use, error, message in said:
        assert error in ("RuntimeError", "AcceleratorError"), f"{use} raises {error}: {message}"
        assert dev.type in message, f"{use} does not say what is missing: {message}"
