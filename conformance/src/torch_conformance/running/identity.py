# SPDX-License-Identifier: BSD-3-Clause
"""What exactly was tested: the driver behind the backend and the names of its devices.

Two runs of one backend are only comparable when these agree, so they belong into the report.
"""

from __future__ import annotations

import json
import platform
from typing import Any

from torch_conformance.authoring import backend
from torch_conformance.authoring.device import Device
from torch_conformance.results.locations import without_folders

MAX_DEVICES = 64


def identity(dev: Device) -> dict[str, Any]:
    """``{"driver": {...} or None, "devices": [name, ...]}``, of plain values.

    Whatever the backend raises is a part of the answer.
    """
    return {"driver": without_folders(_driver(dev)), "devices": _devices(dev)}


def _driver(dev: Device) -> Any:
    if not dev.descriptor.driver:
        return None
    try:
        # A backend may return anything; a value that JSON cannot represent is reported as text.
        return json.loads(
            json.dumps(backend.resolve(dev.descriptor.driver)(), default=str, allow_nan=False)
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Bindings to other languages end with exceptions of their own.
        return {"error": f"{type(error).__name__}: {backend.first_line(error)}"}


def _devices(dev: Device) -> list[str]:
    if not dev.is_accelerator:
        return [platform.processor() or platform.machine()]
    try:
        return [str(dev.module.get_device_name(i)) for i in range(min(dev.count, MAX_DEVICES))]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return []  # It gives its devices no names.
