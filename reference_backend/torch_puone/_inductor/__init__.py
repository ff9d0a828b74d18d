# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile for puone: Dynamo knows the device, and inductor makes kernels of graphs.

Both take seconds to load, and a program that compiles nothing should not wait for them. So Dynamo
learns of the device when it is imported, and inductor when it reads NAMES from the device module,
which it does when it is used for the first time, for any device. Newer versions of PyTorch call
`_inductor_backend_init` instead.
"""

from __future__ import annotations

import torch

from .._after_import import after_import

#: The attributes of the device module that inductor reads.
NAMES = ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen")


def register() -> object:
    """Register the backend with inductor. A second call changes nothing.

    Gives the value of each of NAMES. It is None, so that inductor registers nothing of its own,
    which would lack what belongs to the key of its caches; or, if it is too old, what raises.
    """
    from . import refusal

    if tuple(map(int, torch.__version__.split(".")[:2])) < refusal.SINCE:
        return refusal.NoCodegen
    from . import registration

    registration.register()
    return None


def follow_dynamo() -> None:
    """Register the device with Dynamo, now or when that is imported."""
    after_import("torch._dynamo", _register_with_dynamo)


def _register_with_dynamo() -> None:
    from . import dynamo

    dynamo.register()
