# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: programs that use the device, and how they end."""

from __future__ import annotations

from typing import Any

from torch_conformance.authoring.api import Device, why_ended

#: It computes with `type`, and prints that it did.
USE = """
import torch
x = torch.arange(4.0).to({type!r})
assert x.add(1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
assert x.device.type == {type!r}
print("used")
"""
#: It computes, copies and runs backward on the device D.
WORK = """
import torch
x = torch.randn(64, 64, device=D, requires_grad=True)
with torch.no_grad():
    y = torch.cat([x, x.t()]).sum(0).sort().values.to("cpu", copy=True)
(x @ x).relu().sum().backward()
assert x.grad.cpu().isfinite().all()
print("worked", flush=True)
"""


def require_explicit_import(dev: Device) -> None:
    """Skip the check where torch brings the backend, and nobody imports it."""
    if not (dev.descriptor.imports.before_torch or dev.descriptor.imports.after_torch):
        dev.unsupported("the descriptor names no module to import: torch brings the backend itself")


def expect_used(done: Any) -> None:
    """A process that ran USE ended well, and used the device."""
    assert done.returncode == 0, why_ended(done)
    assert done.stdout.strip().endswith("used"), f"stdout: {done.stdout[-500:]!r}"
