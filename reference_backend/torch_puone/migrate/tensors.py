# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, devices and factories: a mode that PyTorch offers each of its functions first.

A mode belongs to a thread. PyTorch hands it on to the threads of a backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import table
from .cuda_names import tensor_dtype
from .notices import Notices
from .target import Target


class CudaMode(TorchFunctionMode):
    """Translates device arguments, and the methods of tensors that have CUDA in their name."""

    def __init__(self, target: Target, notices: Notices) -> None:
        super().__init__()
        self._target = target
        self._notices = notices
        self._special: dict[Any, Callable[..., Any]] = {
            torch.Tensor.cuda: self._cuda,
            torch.Tensor.is_cuda.__get__: self._is_cuda,  # type: ignore[attr-defined]
            torch.Tensor.type: self._type,
            torch.Tensor.backward: self._backward,
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
            self._notices.use(f'the device "cuda" given to {name}', f"write {table.TYPE}")
        return func(*values, **named)

    def _cuda(
        self,
        tensor: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        self._notices.use("Tensor.cuda()", f"write .to({table.DEVICE})")
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

    def _backward(
        self,
        tensor: torch.Tensor,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        # The function of a mode runs without it; hooks and functions written in Python need it.
        with self:
            torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)
