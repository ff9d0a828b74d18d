# SPDX-License-Identifier: BSD-3-Clause
"""Bringing a declared backend up in this process."""

from __future__ import annotations

import importlib
import os
from typing import Any

from torch_conformance.authoring.backend import device_count, first_line, resolve
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import CannotLoad, LoadProblem
from torch_conformance.spec.versions import version_in

# Objects returned by set-up callables: some backends tear the device down with their owner.
_kept_alive: list[Any] = []


def needs_fresh_process(descriptor: Descriptor) -> bool:
    """Whether workers cannot be forked from a parent that has imported torch already."""
    return (
        descriptor.start_method == "spawn"
        or bool(descriptor.imports.before_torch)
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
    for name in descriptor.imports.before_torch:
        importlib.import_module(name)
    import torch

    check_torch_version(descriptor, torch.__version__)
    if descriptor.autoload and not descriptor.imports.after_torch:
        # torch was imported with autoload off, so that only this process meets the backend.
        torch._import_device_backends()
    for name in descriptor.imports.after_torch:
        importlib.import_module(name)
    device = (
        _set_up(descriptor) if descriptor.device.setup else torch.device(descriptor.device_type)
    )
    if device.type != "cpu" and device_count(device.type, descriptor) == 0:
        raise CannotLoad(
            f"torch knows device type {device.type!r} but there is no such device{_said(device)}",
            LoadProblem.NO_DEVICE,
        )
    return device


def _said(device: Any) -> str:
    """What a backend without a device says when it is used: mostly why there is none."""
    import torch

    try:
        torch.empty(1, device=device)
    except Exception as error:
        return f"; it raises {type(error).__name__}: {first_line(error)}"
    return ""


def _set_up(descriptor: Descriptor) -> Any:
    import torch

    result = resolve(str(descriptor.device.setup))()
    _kept_alive.append(result)
    if isinstance(result, tuple):
        result = result[-1]
    device = result if isinstance(result, (str, torch.device)) else result.device
    return torch.device(device)


def tear_down(descriptor: Descriptor) -> None:
    """Call the descriptor's teardown with what its setup returned."""
    if descriptor.device.teardown and _kept_alive:
        resolve(descriptor.device.teardown)(_kept_alive.pop())


def check_torch_version(descriptor: Descriptor, version: str) -> None:
    """Raise CannotLoad if the descriptor is for other versions of torch."""
    if descriptor.torch and not version_in(descriptor.torch, version):
        raise CannotLoad(
            f"torch {version} is outside {descriptor.torch!r} of the descriptor",
            LoadProblem.WRONG_TORCH,
        )
