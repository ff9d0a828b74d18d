# SPDX-License-Identifier: BSD-3-Clause
"""Functions and classes of torch that take "cuda" and that no mode sees: what replaces them.

Each function here takes the real thing, the target and the notices, and returns what takes its
place while a scope is open.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from . import table
from .cuda_names import tensor_dtype
from .notices import NoEquivalent, Notices
from .stand_ins import stand_in
from .target import Target

Replace = Callable[[Any, Target, Notices], Any]


def _translated(
    what: str, args: tuple[Any, ...], kwargs: dict[str, Any], target: Target, notices: Notices
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with the target's device; a translation warns."""
    values = [target.translated(value) for value in args]
    named = {name: target.translated(value) for name, value in kwargs.items()}
    if values != list(args) or named != kwargs:
        notices.use(f'the device "cuda" given to {what}', f"write {table.TYPE}")
    return values, named


def method(real: Any, target: Target, notices: Notices) -> Any:
    """A method, such as a constructor, whose device arguments are translated for everyone."""
    what = real.__qualname__.removesuffix(".__init__")

    @functools.wraps(real)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        values, named = _translated(what, args, kwargs, target, notices)
        return real(self, *values, **named)

    return call


def function(real: Any, target: Target, notices: Notices) -> Any:
    """A function whose device arguments are translated if a user calls it."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not notices.from_user():
            return real(*args, **kwargs)
        values, named = _translated(real.__name__, args, kwargs, target, notices)
        return real(*values, **named)

    return call


def grad_scaler(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.amp.GradScaler.__init__`, whose default device is "cuda"."""

    @functools.wraps(real)
    def init(self: Any, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
        (device,), _ = _translated("GradScaler", (device,), {}, target, notices)
        real(self, device, *args, **kwargs)

    return init


def device_class(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.Generator`, `torch.Stream`, `torch.Event`."""

    def construct(*args: Any, **kwargs: Any) -> Any:
        values, named = _translated(real.__name__, args, kwargs, target, notices)
        return real(*values, **named)

    return stand_in(real, construct)


def cuda_method(real: Any, target: Target, notices: Notices) -> Any:
    """`Module.cuda` and `UntypedStorage.cuda`."""
    owner = real.__qualname__.partition(".")[0].removeprefix("_").removesuffix("Base")

    @functools.wraps(real)
    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        notices.use(f"{owner}.cuda()", f"write {table.moved(device)}")
        options = {"non_blocking": True} if non_blocking else {}
        return self.to(device=target.device(device), **options)

    return cuda


def is_cuda(real: property, target: Target, notices: Notices) -> property:
    """`PackedSequence.is_cuda`."""
    get = real.fget
    assert get is not None

    def getter(self: Any) -> bool:
        if not notices.from_user():
            return bool(get(self))
        notices.use("PackedSequence.is_cuda", f"write .data.device.type == {table.TYPE}")
        return bool(self.data.device.type == target.type)

    return property(getter)


def load(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.load`: tensors that were saved on a CUDA device are loaded to the target."""
    restore = torch.serialization.default_restore_location

    def to_target(storage: Any, location: str) -> Any:
        return restore(storage, target.translated(location))

    def placed(places: dict[str, Any], storage: Any, location: str) -> Any:
        return to_target(storage, places.get(location, location))

    @functools.wraps(real)
    def call(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        asked: Any = target.translated(map_location)
        if isinstance(asked, dict):
            asked = {key: target.translated(value) for key, value in asked.items()}
        if asked != map_location:
            notices.use('the device "cuda" given to load', f"write {table.TYPE}")
        if isinstance(asked, dict):
            asked = functools.partial(placed, asked)
        return real(f, to_target if asked is None else asked, *args, **kwargs)

    return call


def set_default_tensor_type(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.set_default_tensor_type` of a type of CUDA tensors."""

    @functools.wraps(real)
    def call(t: Any) -> None:
        dtype = tensor_dtype(t)
        if dtype is None:
            real(t)
            return
        notices.use(
            "set_default_tensor_type of CUDA",
            f"write torch.set_default_device({table.TYPE}) and torch.set_default_dtype(dtype)",
        )
        torch.set_default_dtype(dtype)
        torch.set_default_device(target.type)

    return call


def profile(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.profiler.profile.__init__`: the activity CUDA is the target's."""
    activity = torch.profiler.ProfilerActivity
    name = "XPU" if target.type == "xpu" else "PrivateUse1"
    theirs = getattr(activity, name) if target.type != "cpu" else activity.CPU

    @functools.wraps(real)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        asked = kwargs.get("activities")
        if asked is not None and activity.CUDA in (asked := list(asked)):
            row = table.find("torch.profiler.ProfilerActivity.CUDA")
            assert row is not None
            notices.use(row.name, row.advice)
            kwargs["activities"] = [theirs if one == activity.CUDA else one for one in asked]
        real(self, *args, **kwargs)

    return init


def autograd_profile(real: Any, target: Target, notices: Notices) -> Any:
    """`torch.autograd.profiler.profile.__init__`, which has an argument for CUDA."""

    @functools.wraps(real)
    def init(self: Any, *args: Any, use_cuda: bool = False, **kwargs: Any) -> None:
        if use_cuda:
            notices.use("profile(use_cuda=True)", f"write use_device={table.TYPE}")
            kwargs["use_device"] = None if target.type == "cpu" else target.type
        real(self, *args, **kwargs)

    return init


def process_group(real: Any, target: Target, notices: Notices) -> Any:
    """`init_process_group` and `new_group`: the target's backend for "nccl"."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        values = [_group_backend(value, target, notices) for value in args]
        if "backend" in kwargs:
            kwargs["backend"] = _group_backend(kwargs["backend"], target, notices)
        return real(*values, **kwargs)

    return call


def _group_backend(asked: Any, target: Target, notices: Notices) -> Any:
    """What takes the place of a backend's name such as "nccl" or "cpu:gloo,cuda:nccl".

    "gloo" also serves CUDA devices; the tensors of the target go to the target's backend.
    """
    backend = default_group_backend(target)
    if isinstance(asked, str) and asked.lower() == "gloo" and backend not in (None, "gloo"):
        return f"cpu:gloo,{target.type}:{backend}"
    if not isinstance(asked, str) or "nccl" not in asked.lower():
        return asked
    if backend is None:
        raise NoEquivalent(
            f'the process group backend "nccl" has no equivalent on {target.type}: no backend is '
            "registered for this device type"
        )
    notices.use(
        'the process group backend "nccl"',
        "leave the backend out, or write"
        f" torch.distributed.get_default_backend_for_device({table.DEVICE})",
    )
    parts = [part.strip() for part in asked.lower().split(",")]
    names = {"nccl": backend, "cuda:nccl": f"{target.type}:{backend}"}
    return ",".join(names.get(part, part) for part in parts)


def default_group_backend(target: Target) -> str | None:
    """The process group backend that is registered for the target; None if there is none."""
    return torch.distributed.Backend.default_device_backend_map.get(target.type)


def is_nccl_available(real: Any, target: Target, notices: Notices) -> Any:
    """Whether the target has what "nccl" becomes."""

    @functools.wraps(real)
    def call() -> bool:
        if not notices.from_user():
            return bool(real())
        notices.use(real.__name__, "write torch.distributed.is_available()")
        return default_group_backend(target) is not None

    return call
