# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in refusing what is wrong, and in delivering errors."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant


def _on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == BACKEND


def _tensors(args: Any) -> list[torch.Tensor]:
    return [arg for arg in args if isinstance(arg, torch.Tensor)]


# ---- refused arguments -------------------------------------------------------------------------


@lie("ERR-001", "error/arguments:select_beyond error/arguments:narrow_beyond")
def indices_are_clamped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """select and narrow beyond the end take the last element."""
    if name == "select.int":
        args = (*args[:2], min(args[2], args[0].shape[args[1]] - 1))
    return call(*args, **kwargs)


@lie("ERR-001", "error/arguments:broadcast error/arguments:matmul_sizes")
def errors_are_assertions(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Shapes are checked with assert."""
    try:
        return call(*args, **kwargs)
    except RuntimeError as error:
        raise AssertionError(str(error)) from None


@lie("ERR-001", "error/arguments:in_place_cast error/arguments:out_dtype")
def a_refused_operator_has_run(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The data type of out= is refused after the operands were overwritten."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if "out" in kwargs or name.partition(".")[0].endswith("_"):
            args[0].zero_()
        raise


@lie("ERR-001", "error/arguments:copy_sizes")
def copies_of_other_sizes_take_what_fits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """copy_ of another number of elements copies those that fit."""
    if name == "copy_" and args[1].dim() and args[0].numel() != args[1].numel():
        count = min(args[0].numel(), args[1].numel())
        args[0].view(-1)[:count].copy_(args[1].reshape(-1)[:count])
        return args[0]
    return call(*args, **kwargs)


@lie("ERR-002", "error/host_view:*", planted=True)
def numpy_copies_silently() -> None:
    """Tensor.numpy() of a device tensor gives a copy; what is written to it is lost."""
    numpy = torch.Tensor.numpy
    plant(torch.Tensor, "numpy", lambda self, **options: numpy(self.cpu(), **options))


@lie("ERR-002", "error/host_view:message", planted=True)
def host_views_are_refused_without_advice() -> None:
    """The refusal of numpy() does not say what to do."""
    numpy = torch.Tensor.numpy

    def refuse(self: torch.Tensor, **options: Any) -> Any:
        if _on_device(self):
            raise TypeError("unsupported tensor")
        return numpy(self, **options)

    plant(torch.Tensor, "numpy", refuse)


# ---- mixed devices -----------------------------------------------------------------------------


@lie("ERR-003", "error/mixed:matmul error/mixed:cat")
def host_matrices_are_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product or concatenation moves what is on the host without a word."""
    if name == "mm":
        args = tuple(arg.to(BACKEND) for arg in args)
    elif name == "cat":
        args = ([part.to(BACKEND) for part in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("ERR-003", "error/mixed_devices:add error/mixed_devices:add_in_place")
def other_devices_are_read(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operands of another device are used as if they were here."""
    if name in ("add.Tensor", "add_.Tensor"):
        args = tuple(arg.to(args[0].device) if _on_device(arg) else arg for arg in args)
    return call(*args, **kwargs)


@lie("ERR-003", "error/mixed:index_select error/mixed:gather error/mixed:embedding")
def host_indices_are_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Indices on the host are moved to where the values are."""
    if name in ("index_select", "gather", "embedding"):
        args = tuple(a.to(BACKEND) if isinstance(a, torch.Tensor) else a for a in args)
    return call(*args, **kwargs)


@lie("ERR-003", "error/mixed:out error/mixed_devices:out")
def refused_results_are_cleared(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An out= on another device is refused after it was cleared."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if "out" in kwargs:
            kwargs["out"].zero_()
        raise


@lie("ERR-004", "error/mixed_message")
def mixed_operands_are_an_internal_error(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The error for mixed operands is that of an internal assertion."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        raise RuntimeError("internal assertion failed: iter.all_same") from None


@lie("ERR-005", "error/cpu_scalar:*")
def host_scalars_are_refused(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A host tensor without dimensions is refused like any other host tensor."""
    devices = {x.device for x in _tensors(args) if not x.dim() or _on_device(x)}
    if name in ("add.Tensor", "add_.Tensor") and len(devices) > 1:
        raise RuntimeError(f"Expected all tensors to be on the same device, found {devices}")
    return call(*args, **kwargs)


@lie("ERR-005", "error/cpu_scalar:cpu_scalar_first")
def the_first_operand_decides_the_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The result of a host scalar and a device tensor is on the host."""
    result = call(*args, **kwargs)
    host_first = name == "add.Tensor" and args[0].device.type == "cpu"
    return result.cpu() if host_first else result


# ---- operators that are missing ----------------------------------------------------------------


@lie("ERR-006", "error/operator:kind")
def what_is_missing_is_a_runtime_error(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator without a kernel raises a plain RuntimeError."""
    try:
        return call(*args, **kwargs)
    except NotImplementedError as error:
        raise RuntimeError(str(error)) from None


@lie("ERR-006", "error/operator:names_operator")
def what_is_missing_has_no_name(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The error for an operator without a kernel does not say which."""
    try:
        return call(*args, **kwargs)
    except NotImplementedError:
        raise NotImplementedError("the operator is not supported by this device") from None


@lie("ERR-007", "error/operator_cpu_only:functional")
def fallbacks_stay_on_the_host(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """What the CPU computes for the device is not copied back."""
    result = call(*args, **kwargs)
    return result.cpu() if name == "conformance_error::cpu_only" else result


@lie("ERR-007", "error/operator_cpu_only:functional")
def fallbacks_return_their_input(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fallback gives memory that nobody wrote the result to."""
    if name == "conformance_error::cpu_only":
        return torch.empty_like(args[0]).copy_(args[0])
    return call(*args, **kwargs)


@lie("ERR-007", "error/operator_cpu_only:*")
def fallbacks_change_a_copy(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fallback of an in-place operator returns the new values and leaves the tensor."""
    if name == "conformance_error::cpu_only_":
        return call(args[0].clone())
    return call(*args, **kwargs)


@lie("ERR-007", "error/operator_cpu_only:*")
def fallbacks_know_no_lists(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fallback copies the lists of an operator to the host, and none of them back."""
    if name == "conformance_error::cpu_only_lists":
        return call(*[[tensor.clone() for tensor in tensors] for tensors in args])
    return call(*args, **kwargs)


# ---- printing ----------------------------------------------------------------------------------


@lie("ERR-008", "error/printing:float32", planted=True)
def the_device_is_not_printed() -> None:
    """repr() does not show the device."""
    text = torch.Tensor.__repr__

    def without_device(self: torch.Tensor, **options: Any) -> str:
        return text(self, **options).replace(f", device='{self.device}'", "")

    plant(torch.Tensor, "__repr__", without_device)


@lie("ERR-008", "error/printing:requires_grad error/printing:parameter", planted=True)
def printing_detaches() -> None:
    """A tensor is printed by printing a copy, which requires no gradient and is no parameter."""
    text = torch.Tensor.__repr__

    def of_a_copy(self: torch.Tensor, **options: Any) -> str:
        return text(self.detach() if _on_device(self) else self, **options)

    plant(torch.Tensor, "__repr__", of_a_copy)


# ---- backward and threads ----------------------------------------------------------------------


@lie("ERR-009", "error/backward:*", planted=True)
def errors_of_backward_change_their_kind() -> None:
    """Whatever goes wrong in backward is a RuntimeError of the backend."""
    backward: Callable[..., None] = torch.Tensor.backward

    def wrapped(self: torch.Tensor, *args: Any, **options: Any) -> None:
        try:
            backward(self, *args, **options)
        except Exception:
            raise RuntimeError("backward failed on the device") from None

    plant(torch.Tensor, "backward", wrapped)


@lie("ERR-009", "error/backward:usable_after", planted=True)
def backward_works_until_its_first_error() -> None:
    """After an error in backward, later calls of backward do nothing."""
    backward: Callable[..., None] = torch.Tensor.backward
    broken: list[bool] = []

    def wrapped(self: torch.Tensor, *args: Any, **options: Any) -> None:
        if broken:
            return
        try:
            backward(self, *args, **options)
        except Exception:
            broken.append(True)
            raise

    plant(torch.Tensor, "backward", wrapped)


@lie("ERR-010", "error/thread:others_unharmed", planted=True)
def errors_are_kept_for_the_process() -> None:
    """The last error is kept in one place for all threads, and the next call of any raises it."""
    view: Callable[..., torch.Tensor] = torch.Tensor.view
    ones = torch.ones
    last: list[Exception] = []

    def remember(self: torch.Tensor, *shape: Any) -> torch.Tensor:
        try:
            return view(self, *shape)
        except RuntimeError as error:
            last.append(error)
            time.sleep(0.01)  # what the runtime does before it looks at the error
            raise

    def ask(*args: Any, **options: Any) -> torch.Tensor:
        if last:
            raise last.pop()
        return ones(*args, **options)

    plant(torch.Tensor, "view", remember)
    plant(torch, "ones", ask)


@lie("ERR-010", "error/thread:delivered_there", planted=True)
def errors_are_raised_in_the_main_thread() -> None:
    """An error of another thread than the main one is logged, not raised."""
    view: Callable[..., torch.Tensor] = torch.Tensor.view

    def swallow(self: torch.Tensor, *shape: Any) -> torch.Tensor:
        try:
            return view(self, *shape)
        except RuntimeError:
            if threading.current_thread() is threading.main_thread():
                raise
            return self

    plant(torch.Tensor, "view", swallow)


@lie("ERR-020", "error/deferred:module", planted=True)
def synchronize_only_warns() -> None:
    """torch.<type>.synchronize() turns what went wrong into a warning."""
    module = torch.get_device_module(BACKEND)
    synchronize: Callable[..., None] = module.synchronize

    def warn(device: Any = None) -> None:
        try:
            synchronize(device)
        except RuntimeError as error:
            warnings.warn(str(error), stacklevel=2)

    plant(module, "synchronize", warn)


# ---- indices -----------------------------------------------------------------------------------


@lie("ERR-027", "error/index:index_select error/index_below:gather")
def indices_of_rows_wrap(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_select and gather count on from the first row where an index goes past the last."""
    if name in ("index_select", "gather"):
        args = (*args[:2], args[2] % args[0].shape[args[1]], *args[3:])
    return call(*args, **kwargs)


@lie("ERR-027", "error/index:embedding error/index:take")
def bad_indices_read_zeros(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A lookup of what is not in the table is zero, as in a cache that was missed."""
    if name not in ("embedding", "take"):
        return call(*args, **kwargs)
    table, index = args[:2]
    known = index < len(table)
    found = call(table, index * known, *args[2:], **kwargs)
    return found * known.view(known.shape + (1,) * (found.dim() - known.dim()))


@lie("ERR-028", "error/recovery:* error/recovery_stream:later_work")
def an_error_is_the_end_of_its_process(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """After the first refused index every operator raises its error again."""
    if _REFUSED:
        raise RuntimeError("index out of bounds: the context is lost")
    if name == "index_select" and args[2].max().item() >= args[0].shape[args[1]]:
        _REFUSED.append(name)
    return call(*args, **kwargs)


_REFUSED: list[str] = []


# ---- errors of queued work ----------------------------------------------------------------------


@lie("ERR-030", "error/deferred_query:stream", planted=True)
def queries_swallow_errors() -> None:
    """query() of a stream takes an error for the end of the work, and forgets it."""

    class Stream(torch.Stream):
        def query(self) -> bool:
            try:
                return super().query()
            except RuntimeError:
                return True

    plant(torch, "Stream", Stream)
