# SPDX-License-Identifier: BSD-3-Clause
"""Of two backends that want PrivateUse1 the second one is refused."""

from __future__ import annotations

from torch_conformance.authoring.api import Device, check, why_ended
from torch_conformance.checks.registration._programs import (
    USE,
    expect_used,
    require_explicit_import,
)

_SECOND = """
import torch
for rename in (torch.utils.rename_privateuse1_backend, torch._C._rename_privateuse1_backend):
    try:
        rename("second")
    except RuntimeError as error:
        assert {type!r} in str(error), f"the error does not name the first backend: {{error}}"
    else:
        raise AssertionError(f"{{rename}} gave PrivateUse1 to a second backend without an error")
    assert torch._C._get_privateuse1_backend_name() == {type!r}
"""


@check("registration/second_backend:refused", "REG-045", needs=("privateuse1",))
def second_backend_is_refused(dev: Device) -> None:
    """Renaming PrivateUse1 again, in Python or in C++, raises, and this backend works on."""
    program = _SECOND + USE
    expect_used(dev.python(program.format(type=dev.type)))


_TAKEN = """
torch.utils.rename_privateuse1_backend("anotherdevice")
import atexit
atexit.register(lambda: print("name:", torch._C._get_privateuse1_backend_name()))
"""


@check("registration/second_backend:loaded", "REG-046", needs=("privateuse1",))
def backend_that_comes_second_says_so(dev: Device) -> None:
    """Loaded when PrivateUse1 has another name, the backend raises an error that names it."""
    require_explicit_import(dev)
    if dev.descriptor.imports.before_torch:
        dev.unsupported("the backend is imported before torch, so no other one can be the first")
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = dev.python("print('loaded')", between=_TAKEN, env=off)
    assert "loaded" not in done.stdout, "the backend was loaded although the name was taken"
    assert done.returncode == 1, f"loading did not end in an exception: {why_ended(done)}"
    assert "name: anotherdevice" in done.stdout, "the first backend lost its name"
    assert "anotherdevice" in done.stderr, f"the error does not name the other: {why_ended(done)}"
