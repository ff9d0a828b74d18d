# SPDX-License-Identifier: BSD-3-Clause
"""Ways to look at asynchronous work while it is in flight, and at what a process holds.

A delay keeps a stream busy for *at least* the time asked for, so whatever the host sees before that
time has passed, it sees while the work is pending. `while_held` measures that, and repeats with a
longer delay where the host was too slow: no check depends on how fast or noisy the machine is.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch

from torch_conformance.spec.capabilities import NO_STORAGE, NO_SYNCHRONIZE
from torch_conformance.spec.reason import MissingCapability, Stated, Unsupported

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

T = TypeVar("T")

#: Milliseconds for which a stream is held, one attempt after the other.
HOLD_MS = (120.0, 500.0, 2000.0)
#: Milliseconds by which a producer is late where only the order of results is observed.
LATE_MS = 80.0


def while_held(dev: Device, look: Callable[[], T]) -> T:
    """Hold the current stream and return what `look` saw before the hold could end.

    `look` may queue work; it must neither wait for the held stream nor depend on a former attempt.
    """
    for ms in HOLD_MS:
        begun = time.monotonic()
        dev.delay(ms)
        seen = look()
        if (time.monotonic() - begun) * 1000.0 < ms:
            return seen
        dev.synchronize()
    raise AssertionError(
        f"calls that must return at once took more than {HOLD_MS[-1]:.0f} ms while the stream was "
        "busy: one of them waits for the device"
    )


def becomes_true(predicate: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Poll `predicate` until it holds; False once `seconds` have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if predicate():
            return True
        time.sleep(0.002)
    return predicate()


def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a fresh thread; return its value or raise its exception here."""
    return in_threads([work])[0]


def in_threads(works: list[Callable[[], T]], seconds: float = 60.0) -> list[T]:
    """Run all of `works` at once, a thread each; return their values or raise the first error."""
    values: dict[int, T] = {}
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(index: int, work: Callable[[], T]) -> None:
        try:
            start.wait(seconds)
            values[index] = work()
        except BaseException as error:  # delivered to the caller below
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(index, work), daemon=True)
        for index, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    if errors:
        raise errors[0]
    assert len(values) == len(works), f"{len(works) - len(values)} threads hang"
    return [values[index] for index in range(len(works))]


def raised(work: Callable[[], Any], by: Callable[[], None] | None = None) -> Exception:
    """Run `work`, which must raise, and return the exception.

    With `by=dev.synchronize`, it may come as late as that: a device that is far away refuses wrong
    arguments when the call has returned.
    """
    try:
        value = work()
        if by is not None:
            by()
    except Unsupported:
        raise
    except Exception as error:  # which one is for the caller to judge
        if re.search(NO_SYNCHRONIZE, str(error)):
            raise Unsupported(MissingCapability(names=("synchronize",))) from None
        return error.with_traceback(None)  # a traceback would keep the frame's tensors alive
    raise AssertionError(f"nothing was raised; the call returned {type(value).__name__}")


def address(tensor: torch.Tensor) -> int | None:
    """What Tensor.data_ptr gives; None for a tensor without storage, which has no address."""
    try:
        return tensor.data_ptr()
    except RuntimeError as error:
        if re.search(NO_STORAGE, str(error)):
            return None
        raise


def apart(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors have memory of their own: not one storage, nor the same address.

    Where data_ptr() is 0 for every tensor, the storages alone tell.
    """
    storages = first.untyped_storage(), second.untyped_storage()
    if storages[0]._cdata == storages[1]._cdata:
        return False
    addresses = [storage.data_ptr() for storage in storages]
    return addresses[0] != addresses[1] or addresses[0] == 0


class Footprint(NamedTuple):
    """What a process holds of the operating system."""

    threads: int
    descriptors: int


def footprint() -> Footprint:
    """Threads and open file descriptors of this process (Linux)."""
    return Footprint(len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))


def resident_bytes() -> int:
    """Bytes of this process in memory; unsupported where there is no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        raise Unsupported(Stated(text="needs /proc to measure the process")) from None


class _Mallinfo2(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def heap_bytes() -> int:
    """What native code of this process has allocated and not freed; resident memory without glibc.

    Resident memory tells less: what is lost may come from pages that the process had already.
    """
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return resident_bytes()
    mallinfo2.restype = _Mallinfo2
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def words(text: str) -> set[str]:
    """Lower-case words of a message; underscores separate too."""
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def backend_meta(tensor: torch.Tensor) -> dict[str, bool]:
    """What the backend's hook would write beside this tensor into a file."""
    from torch._utils import get_tensor_metadata

    return {k: v for k, v in get_tensor_metadata(tensor).items() if k not in ("conj", "neg")}
