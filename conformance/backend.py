# SPDX-License-Identifier: BSD-3-Clause
"""Bringing a declared backend up: in this process, or as the prelude of a fresh interpreter."""

from __future__ import annotations

import importlib
import os
from typing import Any

from conformance.descriptor import Descriptor
from conformance.outcome import CannotLoad

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"

# Objects returned by set-up callables: some backends tear the device down with their owner.
_kept_alive: list[Any] = []


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


def needs_fresh_process(descriptor: Descriptor) -> bool:
    """Whether workers cannot be forked from a parent that has imported torch already."""
    return (
        descriptor.start_method == "spawn"
        or bool(descriptor.import_before_torch)
        or bool(descriptor.launcher)
        or not hasattr(os, "fork")
    )


def bring_up(descriptor: Descriptor) -> Any:
    """Import and set up the backend in this process; return the torch.device to test.

    Raises CannotLoad with a reason that fits on one line.
    """
    os.environ.update(descriptor.env)
    try:
        return _bring_up(descriptor)
    except CannotLoad:
        raise
    except BaseException as error:  # Backends end their import with SystemExit, too.
        raise CannotLoad(f"{type(error).__name__}: {first_line(error)}") from error


def _bring_up(descriptor: Descriptor) -> Any:
    for name in descriptor.import_before_torch:
        importlib.import_module(name)
    import torch

    check_torch_version(descriptor, torch.__version__)
    if descriptor.autoload and not descriptor.import_after_torch:
        # torch was imported with autoload off, so that only this process meets the backend.
        torch._import_device_backends()
    for name in descriptor.import_after_torch:
        importlib.import_module(name)
    device = _set_up(descriptor) if descriptor.setup else torch.device(descriptor.device_type)
    if device.type != "cpu" and device_count(device.type, descriptor) == 0:
        raise CannotLoad(f"torch knows device type {device.type!r} but there is no such device")
    return device


def _set_up(descriptor: Descriptor) -> Any:
    import torch

    result = resolve(str(descriptor.setup))()
    _kept_alive.append(result)
    if isinstance(result, tuple):
        result = result[-1]
    device = result if isinstance(result, (str, torch.device)) else result.device
    return torch.device(device)


def settle_after_fork() -> None:
    """Renew PyTorch's CPU thread pool while this forked process has one thread.

    The first call of set_num_threads after a fork replaces the parent's pool, without a lock; the
    autograd engine makes it in one thread for each device at once, and a thread that comes between
    finds no pool and aborts the process.
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())


def tear_down(descriptor: Descriptor) -> None:
    """Call the descriptor's teardown with what its setup returned."""
    if descriptor.teardown and _kept_alive:
        resolve(descriptor.teardown)(_kept_alive.pop())


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


def check_torch_version(descriptor: Descriptor, version: str) -> None:
    """Raise CannotLoad if the descriptor is for other versions of torch."""
    if descriptor.torch and not version_in(descriptor.torch, version):
        raise CannotLoad(f"torch {version} is outside {descriptor.torch!r} of the descriptor")


def version_in(specifier: str, version: str) -> bool:
    """Whether a torch version satisfies a specifier such as ``>=2.11,<2.16``."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    return SpecifierSet(specifier).contains(Version(Version(version).base_version))


def prelude(descriptor: Descriptor, mode: str) -> str:
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
    early = [f"import {name}" for name in descriptor.import_before_torch]
    late = [f"import {name}" for name in descriptor.import_after_torch]
    order = (
        [*early, *late, "import torch"]
        if mode == "before_torch"
        else [*early, "import torch", *late]
    )
    source += "".join(f"{line}\n" for line in order)
    if descriptor.setup:
        module, _, function = descriptor.setup.partition(":")
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
