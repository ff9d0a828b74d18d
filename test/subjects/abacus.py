# SPDX-License-Identifier: BSD-3-Clause
"""`abacus`: a PrivateUse1 backend in pure Python, on the CPU's memory and with the CPU's kernels.

One device, on which everything is done when it is called: no streams, no events, no generator, no
pinned memory, no statistics. A tensor of the device and one of the CPU may be two views of the same
memory; that is all there is to a kernel. What torch 2.13 does not let Python provide is missing: an
allocator behind torch.UntypedStorage, the resizing of one, and the setting of a device index.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = os.environ.get("ABACUS_NAME", "abacus")
_TASKS = Path("/proc/self/task")
CPU, CPU_KERNEL = torch.device("cpu"), torch._C.DispatchKey.CPU
# What DLPack calls PrivateUse1, and the place of the device type in DLManagedTensor.
DL_EXTENSION, DL_DEVICE_TYPE = 12, 8
TAKE_CPU_INDICES = ("index", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put")

aten = torch.ops.aten
address_of = ctypes.pythonapi.PyCapsule_GetPointer
address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Properties(NamedTuple):
    """What is known about the device."""

    name: str = "abacus on the CPU"
    total_memory: int = 1 << 32


class Module:
    """What is found as ``torch.abacus``."""

    initialized = False
    waiting: ClassVar[list[Callable[[], Any]]] = []

    @staticmethod
    def is_available() -> bool:
        return True

    @classmethod
    def is_initialized(cls) -> bool:
        return cls.initialized

    @classmethod
    def init(cls) -> None:
        cls.initialized = True
        while cls.waiting:
            cls.waiting.pop(0)()

    _lazy_init = init

    @classmethod
    def _lazy_call(cls, function: Callable[[], Any]) -> None:
        cls.waiting.append(function)
        if cls.initialized:
            cls.init()

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def set_device(device: Any) -> None:
        _require_device_0(device)

    @staticmethod
    def device(device: Any) -> contextlib.AbstractContextManager[None]:
        _require_device_0(device)
        return contextlib.nullcontext()

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Everything is done already."""
        _require_device_0(device)

    @staticmethod
    def get_device_properties(device: Any = None) -> Properties:
        _require_device_0(device)
        return Properties()

    @staticmethod
    def get_device_name(device: Any = None) -> str:
        _require_device_0(device)
        return Properties().name

    @staticmethod
    def get_device_capability(device: Any = None) -> tuple[int, int]:
        _require_device_0(device)
        return 1, 0

    @staticmethod
    def is_bf16_supported() -> bool:
        return True

    @staticmethod
    def manual_seed(seed: int) -> None:
        torch.default_generator.manual_seed(seed)

    manual_seed_all = manual_seed

    @staticmethod
    def get_rng_state(device: Any = None) -> torch.Tensor:
        _require_device_0(device)
        return torch.default_generator.get_state()

    @staticmethod
    def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
        _require_device_0(device)
        torch.default_generator.set_state(state)


def _on_cpu(tensor: torch.Tensor, storages: dict[int, Any]) -> torch.Tensor:
    """The CPU's view of a tensor; those of one storage share one, so that overlaps are noticed."""
    old = tensor.untyped_storage()
    storage = storages.get(old._cdata)
    if storage is None:
        storage = torch._C._construct_storage_from_data_pointer(old.data_ptr(), CPU, old.nbytes())
        storages[old._cdata] = storage
    view = torch.empty(0, dtype=tensor.dtype, device=CPU)
    view.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
    view = torch._conj(view) if tensor.is_conj() else view
    return torch._neg_view(view) if tensor.is_neg() else view


def _on_device(tensor: torch.Tensor) -> torch.Tensor:
    """The device's view of a CPU tensor, made by giving a DLPack capsule another label."""
    capsule = torch._C._to_dlpack(tensor.resolve_conj().resolve_neg())
    label = ctypes.c_int32.from_address(address_of(capsule, b"dltensor") + DL_DEVICE_TYPE)
    label.value = DL_EXTENSION
    result: torch.Tensor = torch._C._from_dlpack(capsule)
    return result


def _require_device_0(device: Any) -> None:
    index = device if isinstance(device, int) or device is None else torch.device(device).index
    if index not in (None, 0, -1):
        raise RuntimeError(f"device index {index} is out of range: {NAME} has one device")


# Memory and views


def _allocation(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def allocate(
        *size: Any, layout: Any = None, device: Any = None, pin_memory: Any = None, **options: Any
    ) -> torch.Tensor:
        _require_device_0(device)
        if pin_memory:
            raise RuntimeError(f"{NAME} has no pinned memory")
        if layout not in (None, torch.strided):
            raise NotImplementedError(f"{NAME} has strided tensors only, not {layout}")
        try:
            return _on_device(make(*size, device=CPU, **options))
        except RuntimeError as error:
            if "can't allocate memory" in str(error):
                raise torch.OutOfMemoryError(f"{NAME} out of memory: {error}") from None
            raise

    return allocate


def _device_agnostic(op: Any) -> Callable[..., torch.Tensor]:
    """A CPU kernel that only handles sizes, strides and storages, given tensors of the device."""

    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        result: torch.Tensor = op._op_dk(CPU_KERNEL, *args, **kwargs)
        return result

    return call


def _resize(tensor: torch.Tensor, size: Any, *, memory_format: Any = None) -> torch.Tensor:
    """Views made before keep the old memory: a storage cannot be resized from Python."""
    if memory_format in (None, torch.preserve_format):
        if tensor.size() == torch.Size(size):
            return tensor
        memory_format = None
    model = torch.empty(size, dtype=tensor.dtype, device="meta", memory_format=memory_format)
    return _reshape_memory(tensor, model.size(), model.stride(), model.untyped_storage().nbytes())


def _reshape_memory(tensor: torch.Tensor, size: Any, stride: Any, bytes: int) -> torch.Tensor:
    """Give a tensor another geometry, and more memory with the old contents if that needs it."""
    offset, storage = tensor.storage_offset(), tensor.untyped_storage()
    needed = offset * tensor.itemsize + bytes
    if bytes and needed > storage.nbytes():
        grown = torch.empty(needed, dtype=torch.uint8, device=NAME)
        old = torch.empty(0, dtype=torch.uint8, device=NAME)
        old.set_(storage, 0, (storage.nbytes(),), (1,))
        grown[: storage.nbytes()].copy_(old)
        storage = grown.untyped_storage()
    return tensor.set_(storage, offset, size, stride)


def _set_nothing(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.set_(torch.empty(0, device=NAME).untyped_storage(), 0, (0,), (1,))


def _copy(to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    storages: dict[int, Any] = {}
    inside = [_on_cpu(t, storages) if t.device.type == NAME else t for t in (to, source)]
    inside[0].copy_(inside[1])
    return to


# Everything else


@functools.cache
def _takes_tensor(op: Any) -> dict[int | str, bool]:
    """By position and by name: whether an argument is a tensor."""
    kinds = {}
    for position, argument in enumerate(op._schema.arguments):
        kind = argument.type
        kind = kind.getElementType() if kind.kind() == "OptionalType" else kind
        kinds[position] = kinds[argument.name] = kind.kind() == "TensorType"
    return kinds


@functools.cache
def _outputs(op: Any) -> tuple[str, ...]:
    """The names of the out= arguments."""
    arguments = op._schema.arguments
    return tuple(
        a.name for a in arguments if a.kwarg_only and a.alias_info and a.alias_info.is_write
    )


def _widest(value: Any) -> torch.Tensor:
    """A number that the dispatcher unpacked on its way to Python, as a tensor again."""
    dtypes = {float: torch.float64, complex: torch.complex128}
    return torch.tensor(value, dtype=dtypes.get(type(value)), device=CPU)


class Call:
    """One operator, computed by the CPU's kernel on the CPU's views of the tensors."""

    def __init__(self, op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.op = op
        self.storages: dict[int, Any] = {}
        self.views: dict[int, torch.Tensor] = {}
        self.originals: dict[int, torch.Tensor] = {}
        self.lenient = op._schema.name.removeprefix("aten::") in TAKE_CPU_INDICES
        takes_tensor = _takes_tensor(op)
        self.args = [self.enter(v, takes_tensor[i]) for i, v in enumerate(args)]
        self.kwargs = {name: self.enter(v, takes_tensor[name]) for name, v in kwargs.items()}

    def enter(self, value: Any, is_tensor: bool = False) -> Any:
        """An argument as the CPU's kernel takes it."""
        if isinstance(value, torch.Tensor):
            return self.enter_tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.enter, value))
        if is_tensor and isinstance(value, (bool, int, float, complex)):
            return _widest(value)
        return CPU if isinstance(value, torch.device) else value

    def enter_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """The CPU's view of a tensor of the device; others have to be numbers."""
        if tensor.device.type == NAME:
            # One view for each tensor: the CPU refuses to resize an output that is an input, too.
            view = self.views.get(id(tensor))
            if view is None:
                view = self.views[id(tensor)] = _on_cpu(tensor, self.storages)
                self.originals[id(view)] = tensor
            return view
        if tensor.dim() and not self.lenient:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {tensor.device}! (when calling {self.op})"
            )
        return tensor

    def leave(self, value: Any) -> Any:
        """A result as the caller gets it: an argument itself, or a tensor of the device."""
        if isinstance(value, torch.Tensor):
            known = self.originals.get(id(value))
            return _on_device(value) if known is None else known
        return type(value)(map(self.leave, value)) if isinstance(value, (list, tuple)) else value

    def run(self) -> Any:
        """Compute; outputs of the wrong size get their new one as the CPU gives it."""
        outputs = {name: self.kwargs[name] for name in _outputs(self.op)}
        try:
            results = self.op(*self.args, **self.kwargs)
        except RuntimeError as error:
            inputs = {_memory(arg) for arg in self.args if isinstance(arg, torch.Tensor)}
            shared = any(_memory(old) in inputs for old in outputs.values())
            if not outputs or shared or "not resizable" not in str(error):
                raise
            made = {name: torch.empty(0, dtype=old.dtype) for name, old in outputs.items()}
            self.op(*self.args, **self.kwargs | made)
            for name, old in outputs.items():
                _take(self.originals[id(old)], made[name]).copy_(made[name])
            results = tuple(outputs.values()) if len(outputs) > 1 else next(iter(outputs.values()))
            return self.leave(results)
        for view in outputs.values():
            _take(self.originals[id(view)], view)
        return self.leave(results)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _take(tensor: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    """Give an output the geometry that the CPU gave to its own, if that is another size."""
    if tensor.size() != model.size():
        bytes = torch.empty_like(model, device="meta").untyped_storage().nbytes()
        _reshape_memory(tensor, model.size(), model.stride(), bytes)
    return tensor


def _compute(op: Any, *args: Any, **kwargs: Any) -> Any:
    return Call(op, args, kwargs).run()


def _convolution_backward(
    grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, *rest: Any
) -> Any:
    *geometry, output_mask = rest
    bias = [weight.shape[1] * rest[-2] if rest[4] else weight.shape[0]]
    backward = aten.convolution_backward.default
    return _compute(backward, grad, input, weight, bias, *geometry, output_mask)


def _may_take_the_place_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Module.to keeps its parameters, which others share, where this is true."""
    return tensor.layout is torch.strided and other.layout is torch.strided


def _kaiser_window(*args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
    """PyTorch's own kernel looks for one in C++ that cannot be registered from Python."""
    _require_device_0(device)
    return _on_device(torch.kaiser_window(*args, device=CPU, **kwargs))


def register() -> list[torch.library.Library]:
    """Make the device known to torch; what is returned must be kept."""
    _setup_privateuseone_for_python_backend(None if NAME == "privateuseone" else NAME, Module())
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=False, for_module=False, for_packed_sequence=False, for_storage=True
    )
    memory, rest = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    kernels: dict[Any, Callable[..., Any]] = {
        aten.empty.memory_format: _allocation(torch.empty),
        aten.empty_strided.default: _allocation(torch.empty_strided),
        aten._efficientzerotensor.default: _allocation(torch.zeros),
        aten.copy_.default: _copy,
        aten.resize_.default: _resize,
        aten.set_.default: _set_nothing,
        aten._has_compatible_shallow_copy_type.default: _may_take_the_place_of,
        aten.addr.out: functools.partial(_compute, aten.addr.out),
        aten.convolution_overrideable.default: functools.partial(
            _compute, aten.convolution.default
        ),
        aten.convolution_backward_overrideable.default: _convolution_backward,
    }
    for op in (
        *(aten.as_strided.default, aten.view.default, aten._reshape_alias.default),
        *(aten.unfold.default, aten.view_as_real.default, aten.view_as_complex.default),
        *(aten.set_.source_Tensor, aten.set_.source_Storage, aten.is_set_to.default),
        aten.set_.source_Storage_storage_offset,
    ):
        kernels[op] = _device_agnostic(op)
    for overload in aten.kaiser_window.overloads():
        if "out" not in overload:
            kernels[getattr(aten.kaiser_window, overload)] = _kaiser_window
    for op, kernel in kernels.items():
        memory.impl(op, kernel, "PrivateUse1")
    rest.fallback(_compute, "PrivateUse1")
    return [memory, rest]


def _let_autograd_rest() -> None:
    """Give the threads of autograd the time to drop the Python objects of their last task.

    One that asks for the interpreter when that is gone ends the process with SIGABRT. A compiled
    backend waits for them with a task of its own; from Python they can only be given time.
    """
    if any(name.read_text().startswith("pt_autograd_") for name in _TASKS.glob("*/comm")):
        time.sleep(0.2)


_libraries = register()
atexit.register(_let_autograd_rest)
