# SPDX-License-Identifier: BSD-3-Clause
"""The backend is loaded by an import before or after torch, or by torch's autoload."""

from __future__ import annotations

from torch_conformance.authoring.api import Device, check, why_ended
from torch_conformance.checks.registration._programs import (
    USE,
    expect_used,
    require_explicit_import,
)


@check("registration/import_order", "REG-033", cases=("after_torch",), needs=("accelerator",))
def backend_loads_after_torch(dev: Device, case: str) -> None:
    """Imported after torch with autoload off, the backend works."""
    require_explicit_import(dev)
    expect_used(
        dev.python(
            USE.format(type=dev.type),
            backend="load",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        )
    )


@check("registration/import_order", "REG-034", cases=("before_torch",), needs=("accelerator",))
def backend_loads_before_torch(dev: Device, case: str) -> None:
    """Imported before torch, the backend works just as well."""
    require_explicit_import(dev)
    expect_used(dev.python(USE.format(type=dev.type), backend="before_torch"))


@check("registration/autoload", "REG-035", cases=("on",), needs=("autoload",))
def backend_autoloads(dev: Device, case: str) -> None:
    """`import torch` alone makes the device usable where autoload is on."""
    expect_used(
        dev.python(
            USE.format(type=dev.type),
            backend="none",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        )
    )


@check("registration/autoload", "REG-036", cases=("off",), needs=("autoload",))
def autoload_can_be_switched_off(dev: Device, case: str) -> None:
    """With TORCH_DEVICE_BACKEND_AUTOLOAD=0 torch starts without the backend."""
    done = dev.python(
        f"import torch; print(hasattr(torch, {dev.type!r}))",
        backend="none",
        env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )
    assert done.returncode == 0, why_ended(done)
    assert done.stdout.strip() == "False", "the backend loaded although autoload is off"


@check("registration/autoload", "REG-037", cases=("then_import",), needs=("autoload",))
def import_after_autoload_is_harmless(dev: Device, case: str) -> None:
    """An explicit import after autoload neither fails nor registers twice."""
    require_explicit_import(dev)
    expect_used(
        dev.python(
            USE.format(type=dev.type),
            backend="load",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        )
    )
