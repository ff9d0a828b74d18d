# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, devices and factories: a mode that PyTorch offers each of its functions first.

A mode belongs to a thread, and PyTorch leaves it out of backward passes. So what is written in
Python there, functions and the hooks of tensors, gets it back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import table
from .cuda_names import tensor_dtype
from .notices import Notices
from .target import Target

#: What users know functions by that have other names in PyTorch.
_NAMES = {"_parse_to": "Module.to"}


class CudaMode(TorchFunctionMode):
    """Translates device arguments, and the methods of tensors that have CUDA in their name."""

    def __init__(self, target: Target, notices: Notices) -> None:
        super().__init__()
        self._target = target
        self._notices = notices
        self._special: dict[Any, Callable[..., Any]] = {
            torch.Tensor.cuda: self._cuda,
            torch.Tensor.is_cuda.__get__: self._is_cuda,  # type: ignore[attr-defined]  # a getset
            torch.Tensor.type: self._type,
            torch.Tensor.register_hook: self._register_hook,
        }

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        special = self._special.get(func)
        if special is not None:
            return special(*args, **kwargs)
        translated = self._target.translated
        values = tuple(translated(value) for value in args)
        named = {name: translated(value) for name, value in kwargs.items()}
        if any(new is not old for new, old in zip(values, args, strict=True)) or any(
            new is not kwargs[name] for name, new in named.items()
        ):
            name = getattr(func, "__name__", "a function")
            name = _NAMES.get(name, name)
            self._notices.use(f'the device "cuda" given to {name}', f"write {table.TYPE}")
        return func(*values, **named)

    def _cuda(
        self,
        tensor: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        self._notices.use("Tensor.cuda()", f"write {table.moved(device)}")
        return tensor.to(
            self._target.device(device), non_blocking=non_blocking, memory_format=memory_format
        )

    def _is_cuda(self, tensor: torch.Tensor, owner: type | None = None) -> bool:
        if not self._notices.from_user():
            return tensor.is_cuda
        self._notices.use("Tensor.is_cuda", f"write .device.type == {table.TYPE}")
        return tensor.device.type == self._target.type

    def _type(
        self, tensor: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any
    ) -> Any:
        wanted = tensor_dtype(dtype)
        if wanted is None:
            return tensor.type(dtype, non_blocking, **kwargs)
        self._notices.use("Tensor.type() of CUDA", f"write .to({table.DEVICE}, dtype)")
        return tensor.to(self._target.type, wanted, non_blocking=non_blocking)

    def _register_hook(self, tensor: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> Any:
        def inside(gradient: torch.Tensor) -> Any:
            with self:
                return hook(gradient)

        return tensor.register_hook(inside)


def backward_function(real: Any, mode: TorchFunctionMode) -> Any:
    """`BackwardCFunction.apply`, which calls the backward of a function written in Python."""

    @functools.wraps(real)
    def apply(self: Any, *args: Any) -> Any:
        with mode:
            return real(self, *args)

    return apply
