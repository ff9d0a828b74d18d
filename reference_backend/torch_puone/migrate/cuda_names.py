# SPDX-License-Identifier: BSD-3-Clause
"""What the names of `torch.cuda` are on another device, where more than a name differs.

Each function makes one of them for a target. Names that are not here are what the table says.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from .notices import NoEquivalent
from .stand_ins import stand_in
from .target import Target

# The real ones: within a scope their names in torch are substituted.
_Stream, _Event = torch.Stream, torch.Event

_TENSOR_TYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


def adapted(function: Callable[..., Any], target: Target) -> Callable[..., Any]:
    """A function of `torch.accelerator` or a device module that takes CUDA's device arguments."""
    by_position = _device_by_position(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [target.translated(value) for value in args]
        named = {name: target.translated(value) for name, value in kwargs.items()}
        if "device" in named and len(values) == by_position:
            values.append(named.pop("device"))
        return function(*values, **named)

    return call


def _device_by_position(function: Callable[..., Any]) -> int | None:
    """Where the device goes in a function that does not take it by the keyword `device`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    for place, parameter in enumerate(parameters):
        if parameter.name in ("device", "device_index"):
            only = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            return place if only or parameter.name != "device" else None
    return None


def _device(target: Target) -> Any:
    def device(device: Any) -> AbstractContextManager[Any]:
        if target.is_accelerator and hasattr(torch.accelerator, "device_index"):
            return torch.accelerator.device_index(target.index(device))
        if hasattr(target.module, "device"):
            return target.module.device(target.index(device))
        return contextlib.nullcontext()

    return device


def _stream(target: Target) -> Any:
    def stream(stream: Any) -> AbstractContextManager[Any]:
        if hasattr(target.module, "stream"):
            return target.module.stream(stream)
        return contextlib.nullcontext() if stream is None else stream

    return stream


def _stream_class(target: Target) -> Any:
    def construct(device: Any = None, priority: int = 0, **kwargs: Any) -> torch.Stream:
        return _Stream(target.device(device), priority=priority, **kwargs)

    return stand_in(_Stream, construct)


def _event_class(target: Target) -> Any:
    def construct(
        enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        return _Event(
            target.device(),
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )

    return stand_in(_Event, construct)


def _graph_class(target: Target) -> Any:
    """The class of graphs with CUDA's methods, by the usual name; else the neutral one."""
    vendors = getattr(target.module, f"{target.type.upper()}Graph", None)
    if vendors and hasattr(target.module, "graph"):
        return vendors
    return target.resolve("torch.accelerator.Graph")  # PyTorch 2.11 has none


def _graph(target: Target) -> Any:
    graph_class = _graph_class(target)
    if graph_class is None:
        return None

    @contextlib.contextmanager
    def neutral(
        cuda_graph: Any, pool: Any = None, stream: Any = None, **options: Any
    ) -> Iterator[None]:
        if pool is not None or options:
            raise NoEquivalent(
                f"torch.cuda.graph with a pool or options has no equivalent on {target.type}: "
                "torch.accelerator.Graph takes them"
            )
        with stream or _Stream(target.device()), cuda_graph:
            yield

    def graph(cuda_graph: Any, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
        is_vendors = graph_class is not target.resolve("torch.accelerator.Graph")
        make = target.module.graph if is_vendors else neutral
        return make(cuda_graph, *args, **kwargs)

    return graph


def _autocast(target: Target) -> Any:
    real = torch.amp.autocast_mode.autocast

    def construct(
        enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> torch.amp.autocast_mode.autocast:
        return real(target.type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    return stand_in(real, construct)


def _grad_scaler(target: Target) -> Any:
    real = torch.amp.GradScaler

    def construct(*args: Any, **kwargs: Any) -> torch.amp.GradScaler:
        return real(target.type, *args, **kwargs)

    return stand_in(real, construct)


def _custom_fwd(target: Target) -> Any:
    def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
        return torch.amp.custom_fwd(fwd, device_type=target.type, cast_inputs=cast_inputs)

    return custom_fwd


def _custom_bwd(target: Target) -> Any:
    def custom_bwd(bwd: Any = None) -> Any:
        return torch.amp.custom_bwd(bwd, device_type=target.type)

    return custom_bwd


def _out_of_memory(target: Target) -> Any:
    return torch.OutOfMemoryError


def _accelerator_error(target: Target) -> Any:
    return torch.AcceleratorError


def _tensor_class(name: str) -> Callable[[Target], Any]:
    def make(target: Target) -> Any:
        dtype = _TENSOR_TYPES[name]

        def construct(*args: Any, **kwargs: Any) -> torch.Tensor:
            tensor: torch.Tensor = getattr(torch, f"{name}Tensor")(*args, **kwargs)
            return tensor.to(target.type)

        def is_instance(value: Any) -> bool:
            return (
                isinstance(value, torch.Tensor)
                and value.dtype is dtype
                and value.device.type == target.type
            )

        made = stand_in(object, construct, is_instance)
        made.cuda_dtype = dtype  # type: ignore[attr-defined]  # the class was made above
        return made

    return make


def tensor_dtype(kind: Any) -> torch.dtype | None:
    """The dtype of `torch.cuda.FloatTensor` or "torch.cuda.FloatTensor"; None for other things."""
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        return _TENSOR_TYPES.get(kind.removeprefix("torch.cuda.").removesuffix("Tensor"))
    found = getattr(kind, "cuda_dtype", None) if isinstance(kind, type) else None
    return found if isinstance(found, torch.dtype) else None


_ranges = threading.local()


def _open_ranges() -> list[Any]:
    if not hasattr(_ranges, "open"):
        _ranges.open = []
    opened: list[Any] = _ranges.open
    return opened


def _range_push(target: Target) -> Any:
    def range_push(msg: str) -> int:
        opened = _open_ranges()
        opened.append(torch.profiler.record_function(msg))
        opened[-1].__enter__()
        return len(opened) - 1

    return range_push


def _range_pop(target: Target) -> Any:
    def range_pop() -> int:
        opened = _open_ranges()
        if not opened:
            return -1  # as nvtx does
        opened.pop().__exit__(None, None, None)
        return len(opened)

    return range_pop


def _range(target: Target) -> Any:
    return lambda msg, *args, **kwargs: torch.profiler.record_function(msg.format(*args, **kwargs))


def _mark(target: Target) -> Any:
    def mark(msg: str) -> None:
        with torch.profiler.record_function(msg):
            pass

    return mark


#: Name -> what makes it for a target; None if this torch cannot.
ADAPTERS: dict[str, Callable[[Target], Any]] = {
    "torch.cuda.device": _device,
    "torch.cuda.stream": _stream,
    "torch.cuda.Stream": _stream_class,
    "torch.cuda.Event": _event_class,
    "torch.cuda.CUDAGraph": _graph_class,
    "torch.cuda.graph": _graph,
    "torch.cuda.OutOfMemoryError": _out_of_memory,
    "torch.cuda.AcceleratorError": _accelerator_error,
    "torch.cuda.CudaError": _accelerator_error,
    "torch.cuda.amp.autocast": _autocast,
    "torch.cuda.amp.GradScaler": _grad_scaler,
    "torch.cuda.amp.custom_fwd": _custom_fwd,
    "torch.cuda.amp.custom_bwd": _custom_bwd,
    "torch.cuda.nvtx.range": _range,
    "torch.cuda.nvtx.range_push": _range_push,
    "torch.cuda.nvtx.range_pop": _range_pop,
    "torch.cuda.nvtx.mark": _mark,
    **{f"torch.cuda.{name}Tensor": _tensor_class(name) for name in _TENSOR_TYPES},
}
