# SPDX-License-Identifier: BSD-3-Clause
"""What the descriptor of a backend names, as objects and as source of a fresh interpreter."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from torch_conformance import PACKAGE
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import CannotLoad, LoadProblem

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def resolve(path: str) -> Any:
    """The object named by ``pkg.mod.attribute`` or ``pkg.mod:attribute``."""
    module_name, colon, attributes = path.partition(":")
    if colon:
        found: Any = importlib.import_module(module_name)
        parts = attributes.split(".")
    else:
        first, *parts = path.split(".")
        found = importlib.import_module(first)
    for i, part in enumerate(parts):
        if not hasattr(found, part) and not colon:
            # A submodule that nobody imported yet.
            importlib.import_module(".".join(path.split(".")[: i + 2]))
        found = getattr(found, part)
    return found


def fresh_environment(descriptor: Descriptor) -> dict[str, str]:
    """The environment of a fresh interpreter that imports this suite and the backend."""
    environment = {**os.environ, **descriptor.env}
    paths = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def settle_after_fork() -> None:
    """Renew what PyTorch renews without a lock, while this forked process has one thread.

    The first call of set_num_threads after a fork replaces the parent's pool of CPU threads; the
    autograd engine makes it in one thread for each device at once, and a thread that comes between
    finds no pool and aborts the process. The first use of the engine replaces the engine; threads
    that use it at once wait for threads of the former one, once in a thousand forks
    (torch/csrc/autograd/python_engine.cpp, get_python_engine).
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())
    torch.autograd.Variable._execution_engine.is_checkpoint_valid()


def device_module(device_type: str, descriptor: Descriptor) -> Any:
    """The module behind a device type (``torch.<type>``), or None."""
    if descriptor.module:
        return resolve(descriptor.module)
    import torch

    return None if device_type == "cpu" else getattr(torch, device_type, None)


def device_count(device_type: str, descriptor: Descriptor) -> int:
    """How many devices of the type there are; 1 where the backend cannot tell."""
    import torch

    current = torch.accelerator.current_accelerator()
    if current is not None and current.type == device_type:
        return torch.accelerator.device_count()
    module = device_module(device_type, descriptor)
    count = getattr(module, "device_count", None)
    return int(count()) if callable(count) else 1


def prelude(descriptor: Descriptor, mode: str, between: str = "") -> str:
    """Python source that loads the backend in a fresh interpreter (see Device.python)."""
    # The child must not outlive a worker that was killed: PR_SET_PDEATHSIG is 1, SIGKILL is 9.
    source = (
        "import sys\n"
        "if sys.platform == 'linux':\n"
        "    import ctypes\n"
        "    ctypes.CDLL(None).prctl(1, 9)\n"
    )
    if mode == "none":
        return source
    early = [f"import {name}" for name in descriptor.imports.before_torch]
    late = [f"import {name}" for name in descriptor.imports.after_torch]
    order = (
        [*early, *late, "import torch"]
        if mode == "before_torch"
        else [*early, "import torch", between, *late]
    )
    source += "".join(f"{line}\n" for line in order)
    if descriptor.device.setup:
        module, _, function = descriptor.device.setup.partition(":")
        source += f"import {module}\n_kept_alive = {module}.{function}()\n"
    return source


def first_line(error: BaseException) -> str:
    """The first non-empty line of an exception's text; backends' exceptions may fail to print."""
    return next((line.strip() for line in text_of(error).splitlines() if line.strip()), "")


def text_of(error: BaseException) -> str:
    """An exception's text, in which whatever cannot be encoded is escaped."""
    try:
        text = str(error)
    except BaseException:  # what a backend's __str__ does is its own affair
        return "(message cannot be printed)"
    return text.encode(errors="backslashreplace").decode()


def prepare_parent() -> None:
    """Import torch as a parent of forks needs it: one thread, no backend, no device."""
    if "torch" not in sys.modules:
        os.environ[AUTOLOAD] = "0"
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")
        # The operator database asks for CUDA devices; asking NVML leaves CUDA fit for forks.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    try:
        import torch
    except ImportError as error:
        raise CannotLoad(
            f"torch cannot be imported: {error}; install the torch to test", LoadProblem.NO_TORCH
        ) from None
    if os.environ.get(AUTOLOAD) != "0" and torch._C._get_privateuse1_backend_name() != (
        "privateuseone"
    ):
        raise CannotLoad(
            f"torch was imported with a backend before the suite started; set {AUTOLOAD}=0"
        )
    os.environ[AUTOLOAD] = "0"
    torch.set_num_threads(1)
