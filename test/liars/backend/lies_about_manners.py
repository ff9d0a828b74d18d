# SPDX-License-Identifier: BSD-3-Clause
"""Gross failures: crashes, hangs, leaks, noise, and writes to memory that is not theirs."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from typing import Any

import torch
from lies import Call, lie

_ALLOCATIONS = ("empty.memory_format", "empty_strided")
_leaked: list[Any] = []


def _tensors(args: Any) -> list[torch.Tensor]:
    return [value for value in args if isinstance(value, torch.Tensor)]


@lie("MEM-004", "memory/zero_size:*", layer="gross")
def operators_crash_on_empty_tensors(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A kernel launched for no elements ends the process."""
    if name not in _ALLOCATIONS and any(not tensor.numel() for tensor in _tensors(args)):
        os.kill(os.getpid(), signal.SIGFPE)
    return call(*args, **kwargs)


@lie("STREAM-032", "stream/synchronize_device:*", planted=True, layer="gross")
def synchronize_hangs_with_a_side_stream() -> None:
    """Waiting for the device never returns when a stream besides the default one is current."""
    wait = torch.accelerator.synchronize

    def synchronize(device: Any = None, /) -> None:
        default = torch.get_device_module("puone").default_stream()
        while torch.accelerator.current_stream() != default:
            time.sleep(1)
        wait(device)

    torch.accelerator.synchronize = synchronize


@lie("REG-040", "registration/exit:live_tensors", planted=True, layer="gross")
def exit_aborts() -> None:
    """Static destructors abort at the end of every process."""
    atexit.register(os.abort)


@lie("REG-043", "registration/silent_use", layer="gross")
def operators_print(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every operator writes bytes that are no text, and lines that look like a report."""
    for stream in (1, 2):
        os.write(stream, b'\xff\xfe\x00{"outcome": "pass"}\n\x1b[2J' + name.encode() + b"\n")
    return call(*args, **kwargs)


@lie("FOOT-001", "footprint/bounds:*", layer="gross")
def the_last_vector_is_stored_whole(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Fills store four elements at a time, past the end of what they fill."""
    result = call(*args, **kwargs)
    if name in ("fill_.Scalar", "zero_") and result.dim() == 1 and result.numel() % 4:
        end = (result.numel() + 3) // 4 * 4
        room = result.untyped_storage().nbytes() // result.element_size() - result.storage_offset()
        whole = result.as_strided((min(end, room),), (1,))
        call(whole, *args[1:], **kwargs)
    return result


@lie("FOOT-002", "footprint/host_leak:*", layer="gross")
def operators_leak_a_megabyte(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every sum keeps a staging buffer of the host."""
    if name.startswith(("sum", "mm", "_to_copy")):
        _leaked.append(b"\x01" * (1 << 20))
    return call(*args, **kwargs)


@lie("MEM-018", "memory/cache:*", layer="gross")
def operators_leak_device_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every sum and product keeps a workspace on the device."""
    result = call(*args, **kwargs)
    if name.startswith(("sum", "mul", "add")):
        _leaked.append(call(*args, **kwargs))
    return result


@lie("FOOT-003", "footprint/far:*", layer="gross")
def far_offsets_wrap(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Offsets are computed in 32 bits: elements beyond 2^31 bytes come from the beginning."""
    far = [
        tensor.as_strided(tensor.shape, [0] * tensor.dim())
        if isinstance(tensor, torch.Tensor) and any(s >= 1 << 31 for s in tensor.stride())
        else tensor
        for tensor in args
    ]
    if name not in ("fill_.Scalar", "copy_"):
        return call(*args, **kwargs)
    call(*far, **kwargs)
    return args[0]


@lie("ERR-008", "error/printing:*", planted=True, layer="gross")
def tensors_cannot_be_printed() -> None:
    """repr() of a device tensor raises."""
    show = torch.Tensor.__repr__

    def fail(self: torch.Tensor, **options: Any) -> str:
        if self.device.type == "puone":
            raise RuntimeError("puone has no kernel for printing")
        return show(self, **options)

    # A defect that types forbid is a defect all the same.
    torch.Tensor.__repr__ = fail  # type: ignore[assignment, method-assign]  # the lie


@lie("REG-042", "registration/leaves_no_process", planted=True, layer="gross")
def a_helper_outlives_its_process() -> None:
    """A helper process is started and never told to end."""
    null = subprocess.DEVNULL
    program = [sys.executable, "-c", "import time; time.sleep(20)"]
    subprocess.Popen(program, start_new_session=True, stdin=null, stdout=null, stderr=null)
