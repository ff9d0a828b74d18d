# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of copies and conversions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant

#: Bytes that a transfer moves at once.
_CHUNK = 1 << 24
#: Dimensions that the kernel of strided copies knows.
_DIMENSIONS = 6

_PENDING: list[Callable[[], Any]] = []
_LIBRARIES: list[torch.library.Library] = []


def _route(name: str, args: Any, kwargs: Any) -> tuple[torch.device, torch.device] | None:
    """From which device to which an operator copies; None of an operator that does not."""
    if name == "copy_":
        return args[1].device, args[0].device
    if name in ("_to_copy", "clone"):
        return args[0].device, kwargs.get("device") or args[0].device
    return None


def _kinds(name: str, args: Any, kwargs: Any) -> tuple[str, str]:
    """The types of the devices between which an operator copies, or two empty strings."""
    route = _route(name, args, kwargs)
    return (route[0].type, route[1].type) if route else ("", "")


def _does_not_block(args: Any, kwargs: Any) -> bool:
    return bool(kwargs.get("non_blocking")) or args[2:] == (True,)


def _with_source(name: str, args: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The arguments of a copy with another source."""
    return (args[0], change(args[1]), *args[2:]) if name == "copy_" else (change(args[0]),)


def _in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """As many elements from where the tensor starts, whatever its strides say."""
    return tensor.as_strided(tensor.shape, torch.empty(tensor.shape, device="meta").stride())


# ---- blocking ----------------------------------------------------------------------------------


@lie("COPY-032", "copy/blocking_h2d:large copy/blocking_d2h:large copy/blocking:on_side_stream")
def pinned_copies_never_block(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy from or to pinned memory returns before it ran, also if it is to block."""
    if name == "copy_" and any(side.is_pinned() for side in args[:2]):
        return call(*args[:2], non_blocking=True)
    return call(*args, **kwargs)


# ---- layouts -----------------------------------------------------------------------------------


@lie("COPY-002", "copy/extended_dtype:*")
def types_that_do_not_compute_do_not_move(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy looks its type up in a table of those that operators know."""
    if name == "_to_copy" and args[0].dtype in (torch.uint32, torch.float8_e5m2):
        raise RuntimeError(f"unsupported data type {args[0].dtype}")
    return call(*args, **kwargs)


@lie("COPY-003", "copy/bit_exact:*")
def copies_flush_subnormals(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A clone replaces subnormal numbers by zero."""
    result = call(*args, **kwargs)
    if name == "clone" and result.is_floating_point():
        result[result.abs() < torch.finfo(result.dtype).smallest_normal] = 0
    return result


@lie("COPY-004", "copy/h2d:offset:float32 copy/h2d:row_slice:uint8")
def host_views_start_with_their_storage(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy from the host reads from the start of the storage, wherever the view starts."""
    if _kinds(name, args, kwargs) == ("cpu", BACKEND):
        args = _with_source(name, args, lambda x: x.as_strided(x.shape, x.stride(), 0))
    return call(*args, **kwargs)


@lie("COPY-004", "copy/d2h_into:sliced:float32 copy/d2h_into:diagonal:uint8")
def gaps_on_the_host_are_overwritten(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """What comes from the device is written as one block that covers a strided host tensor."""
    result = call(*args, **kwargs)
    if name == "copy_" and args[0].is_cpu and not args[0].is_contiguous() and args[0].numel():
        kept = args[0].clone()
        span = sum((n - 1) * s for n, s in zip(kept.shape, args[0].stride(), strict=True)) + 1
        args[0].as_strided((span,), (1,)).zero_()
        args[0].copy_(kept)
    return result


@lie("COPY-005", "copy/d2d:rank_eight:float32 copy/d2d_into:rank_eight:uint8")
def later_dimensions_have_no_strides(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The kernel of strided copies takes tensors of more than six dimensions for contiguous."""
    if _kinds(name, args, kwargs) == (BACKEND, BACKEND) and args[0].dim() > _DIMENSIONS:
        if name == "copy_":
            call(_in_a_row(args[0]), _in_a_row(args[1]))
            return args[0]
        args = _with_source(name, args, _in_a_row)
    return call(*args, **kwargs)


@lie("COPY-006", "copy/strides_kept:*")
def moving_makes_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor that is moved to another device loses its strides."""
    if name == "_to_copy":
        kwargs = {**kwargs, "memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("COPY-007", "copy/empty:h2d:float32 copy/empty:d2d:bool copy/empty:clone:float32")
def nothing_is_launched(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy of no elements is launched with no threads, which the driver refuses."""
    if _route(name, args, kwargs) and not args[0].numel():
        raise RuntimeError("invalid launch configuration: 0 threads")
    return call(*args, **kwargs)


@lie("COPY-008", "copy/large:contiguous copy/large:strided")
def the_rest_of_a_long_transfer_is_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A transfer is cut into chunks of 16 MiB; what is left after the last whole one is lost."""
    result = call(*args, **kwargs)
    if _kinds(name, args, kwargs) == (BACKEND, "cpu") and result.nbytes > _CHUNK:
        rest = result.nbytes % _CHUNK // result.element_size()
        result.as_strided((rest,), (1,), result.numel() - rest).zero_()
    return result


# ---- broadcasting and overlap ------------------------------------------------------------------


@lie("COPY-009", "copy/broadcast:h2d copy/broadcast:d2d")
def broadcasts_start_over(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A smaller source is repeated as it lies in memory, whichever of its dimensions is missing."""
    if name == "copy_" and 1 < args[1].numel() < args[0].numel():
        times = args[0].numel() // args[1].numel()
        args = (args[0], args[1].flatten().repeat(times).view(args[0].shape), *args[2:])
    return call(*args, **kwargs)


@lie("COPY-009", "copy/shape_mismatch:*")
def copies_take_what_fits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """copy_ moves as many elements as both sides have when their shapes do not broadcast."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if name != "copy_" or args[0].shape == args[1].shape:
            raise
        count = min(args[0].numel(), args[1].numel())
        args[0].flatten()[:count].copy_(args[1].flatten()[:count])
        return args[0]


@lie("COPY-010", "copy/overlap:expanded copy/overlap:shifted")
def overlap_is_not_noticed(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy within overlapping memory is accepted; who writes last wins."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if name != "copy_" or args[0].shape != args[1].shape:
            raise
        for target, source in zip(args[0].flatten(), args[1].flatten(), strict=True):
            target.copy_(source)
        return args[0]


# ---- conversions -------------------------------------------------------------------------------


@lie("COPY-011", "copy/cast:d2d:float32 copy/cast:to:float32")
def conversion_to_integers_rounds(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Floating point numbers are rounded, not truncated, when they become integers."""
    if name == "copy_" and args[1].is_floating_point() and not args[0].is_floating_point():
        args = (args[0], args[1].round(), *args[2:])
    if name == "_to_copy" and args[0].is_floating_point() and kwargs.get("dtype") == torch.int32:
        args = (args[0].round(),)
    return call(*args, **kwargs)


@lie("COPY-011", "copy/cast_rounding:bfloat16")
def bfloat16_is_cut_off(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """float32 becomes bfloat16 by dropping its lower half."""
    narrow = kwargs.get("dtype") == torch.bfloat16
    if name == "_to_copy" and narrow and args[0].dtype == torch.float32:
        args = ((args[0].view(torch.int32) & -(1 << 16)).view(torch.float32),)
    return call(*args, **kwargs)


@lie("COPY-003", "copy/bit_exact:float32")
def strided_copies_compute(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The kernel of strided copies multiplies by one, which flushes subnormals."""
    result = call(*args, **kwargs)
    if name == "clone" and result.is_floating_point() and not args[0].is_contiguous():
        result[result.abs() < torch.finfo(result.dtype).smallest_normal] = 0
    return result


@lie("COPY-011", "copy/cast_negative:d2d copy/cast_negative:h2d")
def negative_numbers_are_rounded_down(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A floating point number becomes the next integer below it."""
    if name == "copy_" and args[1].is_floating_point() and not args[0].is_floating_point():
        args = (args[0], args[1].floor(), *args[2:])
    return call(*args, **kwargs)


@lie("COPY-011", "copy/cast_wide:d2d")
def narrow_integers_saturate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An integer that is too large for its new type becomes the largest one of it."""
    if (
        name == "copy_"
        and args[1].dtype == torch.int64
        and args[0].dtype in (torch.int8, torch.int16)
    ):
        limits = torch.iinfo(args[0].dtype)
        args = (args[0], args[1].clamp(limits.min, limits.max), *args[2:])
    return call(*args, **kwargs)


@lie("COPY-012", "copy/complex_to_real_warns:to copy/complex_to_real_warns:copy")
def imaginary_parts_are_lost_in_silence(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A conversion from complex to real takes the real part and says nothing."""
    if name == "copy_" and args[1].is_complex() and not args[0].is_complex():
        args = (args[0], args[1].real, *args[2:])
    if name == "_to_copy" and args[0].is_complex() and kwargs.get("dtype") == torch.float32:
        args = (args[0].real,)
    return call(*args, **kwargs)


@lie(
    "COPY-013 COPY-014 OPINFO-UNARY-006",
    "copy/lazy_source:conj:complex64 copy/lazy_target:conj opinfo/math_bits:sinh:complex64",
)
def conjugate_bits_are_overlooked(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy moves the bytes of a conjugate view, whatever they mean."""
    if name == "copy_":
        args = tuple(a.conj() if isinstance(a, torch.Tensor) and a.is_conj() else a for a in args)
    elif name in ("_to_copy", "clone") and args[0].is_conj():
        args = (args[0].conj(),)
    return call(*args, **kwargs)


# ---- order -------------------------------------------------------------------------------------


@lie("COPY-015", "copy/pageable_source:small copy/pageable_source:strided")
def pageable_memory_is_read_late(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A non_blocking copy reads ordinary host memory when the device gets to it."""
    while _PENDING:
        _PENDING.pop(0)()
    if name == "copy_" and args[1].is_cpu and _does_not_block(args, kwargs):
        _PENDING.append(lambda: call(*args, **kwargs))
        return args[0]
    return call(*args, **kwargs)


@lie("COPY-016", "copy/to_cpu_non_blocking:strided")
def gathered_values_are_not_sent(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A non_blocking copy to the host gathers a strided tensor on the device, and returns."""
    sent = _kinds(name, args, kwargs) == (BACKEND, "cpu") and kwargs.get("non_blocking")
    if sent and not args[0].is_contiguous():
        return torch.zeros(args[0].shape, dtype=args[0].dtype)
    return call(*args, **kwargs)


@lie("COPY-016", "copy/pinned_view:h2d")
def pinned_memory_is_sent_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The fast path for pinned memory takes every source for contiguous."""
    if _kinds(name, args, kwargs) == ("cpu", BACKEND) and kwargs.get("non_blocking"):
        args = _with_source(name, args, lambda x: _in_a_row(x) if x.is_pinned() else x)
    return call(*args, **kwargs)


@lie("COPY-017", "copy/pinned_h2d_lazy")
def every_copy_blocks(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """non_blocking=True is accepted and not used."""
    result = call(*args, **kwargs)
    if _route(name, args, kwargs):
        torch.accelerator.synchronize()
    return result


@lie("COPY-018", "copy/device_source_freed")
def the_copy_engine_records_nothing(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Copies to the host run on a stream of their own, and the allocator is not told."""
    if _kinds(name, args, kwargs) == (BACKEND, "cpu") and _does_not_block(args, kwargs):
        engine = torch.Stream(args[1].device)
        engine.wait_stream(torch.accelerator.current_stream())
        with engine:
            torch.get_device_module(BACKEND)._sleep_ms(20)
            return call(*args, **kwargs)
    return call(*args, **kwargs)


@lie("COPY-019", "copy/d2h_sees_earlier_work:cpu copy/d2h_sees_earlier_work:copy")
def reading_does_not_wait(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy to the host runs beside the work that is queued, not after it."""
    if _kinds(name, args, kwargs) == (BACKEND, "cpu"):
        with torch.Stream(args[-1].device if name == "copy_" else args[0].device):
            return call(*args, **kwargs)
    return call(*args, **kwargs)


@lie("COPY-020", "copy/stream_order:h2d copy/stream_order:d2d copy/stream_order:d2h")
def copies_run_on_the_default_stream(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Copies take the default stream, whichever is current."""
    if _route(name, args, kwargs):
        with torch.get_device_module(BACKEND).default_stream():
            return call(*args, **kwargs)
    return call(*args, **kwargs)


# ---- other devices -----------------------------------------------------------------------------


def _peers(name: str, args: Any, kwargs: Any) -> bool:
    route = _route(name, args, kwargs)
    if route is None or route[0] == route[1]:
        return False
    return {device.type for device in route} == {BACKEND}


@lie("COPY-030", "copy/peer_keeps_current_device")
def the_target_becomes_current(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy to a device leaves that device current."""
    result = call(*args, **kwargs)
    if _route(name, args, kwargs) and result.device.type == BACKEND:
        torch.accelerator.set_device_index(result.device)
    return result


@lie("COPY-021", "copy/peer:transposed copy/peer:sliced")
def peer_copies_move_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy between devices moves memory as it lies."""
    if _peers(name, args, kwargs):
        args = _with_source(name, args, _in_a_row)
        kwargs = {**kwargs, "memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("COPY-021", "copy/peer_into:strided")
def peer_copies_arrive_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy from another device writes a strided target as if it were contiguous."""
    if name == "copy_" and _peers(name, args, kwargs) and not args[0].is_contiguous():
        call(_in_a_row(args[0]), *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("COPY-022", "copy/peer_waits_for_source")
def peer_copies_overtake_their_source(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy between devices runs on a stream that does not wait for the source's."""
    if _peers(name, args, kwargs):
        with torch.Stream(args[-1].device if name == "copy_" else args[0].device):
            return call(*args, **kwargs)
    return call(*args, **kwargs)


# ---- to() --------------------------------------------------------------------------------------


@lie("COPY-023", "copy/to_forms:both copy/to_forms:keyword")
def moving_forgets_to_convert(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """to() with a device and a data type goes to the device and leaves the type."""
    if _kinds(name, args, kwargs) == ("cpu", BACKEND) and name == "_to_copy":
        kwargs = {**kwargs, "dtype": args[0].dtype}
    return call(*args, **kwargs)


@lie("COPY-031", "copy/to_same:device copy/to_same:string copy/to_same:other", planted=True)
def to_always_copies() -> None:
    """The backend's own Tensor.to copies also what is in place already."""
    move: Any = torch.Tensor.to

    def copying(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        result: torch.Tensor = move(self, *args, **kwargs)
        return result.clone() if result is self and result.device.type == BACKEND else result

    plant(torch.Tensor, "to", copying)


@lie("COPY-024", "copy/autograd:to_cpu copy/autograd:dtype", planted=True)
def the_copy_has_no_derivative() -> None:
    """_to_copy is registered for autograd, too, with a kernel that knows no derivative."""

    def plain(x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.aten._to_copy.default(x, **kwargs)

    library = torch.library.Library("aten", "IMPL")
    library.impl("_to_copy", plain, "AutogradPrivateUse1")
    _LIBRARIES.append(library)


@lie("COPY-024", "copy/autograd:to_device")
def gradients_stay_where_they_are(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A gradient that is to return to the host arrives as zeros."""
    result = call(*args, **kwargs)
    inside = int(torch._C._current_graph_task_id()) != -1
    return result.zero_() if inside and name == "_to_copy" and result.is_cpu else result


# ---- Python ------------------------------------------------------------------------------------


@lie("COPY-025", "copy/item:* copy/tolist:int64")
def item_goes_through_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """item() returns a float for every data type."""
    result = call(*args, **kwargs)
    return float(result.real) if name == "_local_scalar_dense" else result


@lie("COPY-026", "copy/equal:nan")
def equality_is_that_of_bytes(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """torch.equal compares memory, so that a NaN equals itself."""
    if name == "equal" and args[0].shape == args[1].shape and args[0].dtype == args[1].dtype:
        first, second = (x.contiguous().view(-1).view(torch.uint8) for x in args)
        return bool((first == second).all())
    return call(*args, **kwargs)


@lie("COPY-026", "copy/equal:different")
def equality_overlooks_the_last_element(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """torch.equal stops one element early."""
    if name == "equal" and args[0].shape == args[1].shape and args[0].numel():
        return call(*(x.flatten()[:-1] for x in args))
    return call(*args, **kwargs)


@lie("COPY-027", "copy/numpy_refused:array copy/numpy_refused:numpy", planted=True)
def numpy_copies_behind_the_back() -> None:
    """numpy() and numpy.asarray() of a device tensor copy it to the host."""
    numpy, array = torch.Tensor.numpy, torch.Tensor.__array__
    plant(torch.Tensor, "numpy", lambda self, **kwargs: numpy(self.cpu(), **kwargs))
    plant(torch.Tensor, "__array__", lambda self, *args: array(self.cpu(), *args))


@lie("COPY-028", "copy/repr:float64_range copy/repr:int64_wide", planted=True)
def everything_is_printed_as_float32() -> None:
    """The text of a tensor is made from its values in float32."""
    form: Any = torch._tensor_str._tensor_str

    def narrow(self: torch.Tensor, indent: int) -> str:
        wide = self.device.type == BACKEND and self.element_size() == 8
        return str(form(self.float().to(self.dtype) if wide else self, indent))

    plant(torch._tensor_str, "_tensor_str", narrow)


@lie("COPY-029", "copy/pinned_in_thread", planted=True)
def threads_do_not_pin() -> None:
    """A thread that has not set a device gets memory that is not pinned."""
    pin: Any = torch.Tensor.pin_memory

    def pinned(self: torch.Tensor, *args: Any) -> Any:
        here = threading.current_thread() is threading.main_thread()
        return pin(self, *args) if here else self

    plant(torch.Tensor, "pin_memory", pinned)
