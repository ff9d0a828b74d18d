# SPDX-License-Identifier: BSD-3-Clause
"""Making this package known to PyTorch as the device type `puone`, once per process."""

from __future__ import annotations

import atexit
import importlib
import re
import sys

import torch
from torch.utils import backend_registration
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from ._compatibility import TorchBuild, mismatch

NAME = "puone"
UNCLAIMED = "privateuseone"
PROCESS_GROUP = "pccl"
PACKAGE = __package__ or "torch_puone"


def claim_name() -> None:
    """Load the extension, which gives PrivateUse1 our name, unless another backend has it.

    The check comes before the extension is loaded, because loading registers our kernels for the
    same dispatch key as the other backend's.
    """
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in (UNCLAIMED, NAME):
        module = getattr(getattr(torch, taken, None), "__name__", None)
        package = f" (package {module})" if module else ""
        raise ImportError(
            f"{PACKAGE} cannot be used: PyTorch has one PrivateUse1 device per process and "
            f"{taken!r}{package} has it already. Import only one of the two; if {taken!r} was "
            "loaded by `import torch` itself, set TORCH_DEVICE_BACKEND_AUTOLOAD=0."
        )
    _require_the_right_torch()
    try:
        importlib.import_module(f"{PACKAGE}._C")
    except ImportError as error:
        raise ImportError(
            f"{PACKAGE}._C, the compiled part of this backend, cannot be loaded: {error}. "
            f"It must be built for the torch that is installed ({torch.__version__}); in a "
            "checkout, `make build` does that. TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps `import "
            "torch` from loading it."
        ) from error
    # The extension has named the device in C++. This adds the half that only Python knows, such as
    # DeviceType.PUONE; a second time would wrap the same functions again.
    if backend_registration._privateuse1_backend_name != NAME:
        rename_privateuse1_backend(NAME)


def _require_the_right_torch() -> None:
    try:
        from . import _build
    except ImportError:
        return  # It is not built, and loading the extension says so.
    compiled = TorchBuild(_build.TORCH_VERSION, _build.TORCH_GIT_VERSION)
    installed = TorchBuild(str(torch.__version__), torch.version.git_version or "")
    wrong = mismatch(compiled, installed)
    if wrong:
        raise ImportError(wrong)


def register() -> None:
    """Register the package as `torch.puone`, add the methods, and stop the driver at exit."""
    package = sys.modules[PACKAGE]
    if getattr(torch, NAME, package) is not package:
        raise ImportError(f"torch.{NAME} is already {getattr(torch, NAME)!r}")
    if hasattr(torch, NAME):
        return
    # [quote: module]
    torch._register_device_module(NAME, package)
    # torch registers the package's name but not its parts: `import torch.puone.amp` would load a
    # second copy of each, with state of its own.
    for name, module in list(sys.modules.items()):
        if re.fullmatch(rf"{PACKAGE}\.[a-z]\w*", name):
            sys.modules[name.replace(PACKAGE, f"torch.{NAME}")] = module
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    # [end: module]
    register_process_group()
    # Work may still be queued. Registered this early, it runs after the program's own handlers.
    atexit.register(sys.modules[f"{PACKAGE}._exit"].shutdown)


def register_process_group() -> None:
    """Make `pccl` known to torch.distributed, as the default for this device.

    `import torch` calls this. PyTorch 2.15 also does when `pccl` is asked for by its name, through
    the entry point; a second time has no effect.
    """
    if not torch.distributed.is_available():
        return
    # [quote: process group]
    torch.distributed.Backend.register_backend(
        PROCESS_GROUP,
        _create_process_group,
        extended_api=True,
        devices=[NAME],  # a list: 2.13 takes a string apart into letters
    )
    # [end: process group]


def _create_process_group(*arguments: object) -> object:
    # Imported by the first group, not by `import torch`.
    return importlib.import_module(f"{PACKAGE}.distributed").create(*arguments)
