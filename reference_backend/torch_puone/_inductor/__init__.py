# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile's default backend, inductor, for puone: graphs become kernels of the device.

Inductor asks the device module for the names below when it is used for the first time, for any
device. Only then is anything here imported: inductor takes seconds to load. Newer versions of
PyTorch call `_inductor_backend_init` instead.
"""

from __future__ import annotations

#: The attributes of the device module that inductor reads.
NAMES = ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen")


def register() -> None:
    """Register the backend with inductor and Dynamo. A second call changes nothing.

    It returns None, the value of each of NAMES: then inductor registers nothing of its own, which
    would lack what belongs to the key of its caches.
    """
    from . import registration

    registration.register()
