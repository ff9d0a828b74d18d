# SPDX-License-Identifier: BSD-3-Clause
"""The handle through which a check uses the device under test."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from torch_conformance.authoring import backend, compare
from torch_conformance.authoring.device_module import DeviceModule
from torch_conformance.authoring.journal import Journal
from torch_conformance.spec.capabilities import COSTLY, describe_broken
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.reason import MissingCapability, Reason, Stated, Unsupported

DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    "floating": (torch.float32, torch.float64, torch.float16, torch.bfloat16),
    "integral": (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    "complex": (torch.complex64, torch.complex128),
}
DTYPES["all"] = (*DTYPES["floating"], *DTYPES["integral"], *DTYPES["complex"], torch.bool)

# A delay lasts longer than asked for by this factor: an observation must not race with its end.
DELAY_MARGIN = 1.25


def _undeclared(capability: str) -> ValueError:
    return ValueError(
        f"{capability!r} is probed only if a check declares that it needs it: add it to "
        f"`needs` of @check"
    )


def _refuse_costly(capability: str) -> None:
    if capability in COSTLY:
        raise _undeclared(capability)


class Device:
    """One device type under test, as brought up in this process."""

    def __init__(
        self,
        descriptor: Descriptor,
        device: torch.device | str | None = None,
        capabilities: frozenset[str] = frozenset(),
        seed: int = 0,
    ) -> None:
        self.descriptor = descriptor
        self._device = torch.device(device or descriptor.device_type)
        self.type = self._device.type
        self.is_accelerator = self.type != "cpu"
        #: torch.<type> as it is, for checks that require its names; for others there is `module`.
        self.bare_module: Any = (
            backend.device_module(self.type, descriptor) if self.is_accelerator else None
        )
        #: torch.<type>; a check that needs a name that is missing is unsupported.
        self.module: Any = (
            DeviceModule(self.bare_module, self.type) if self.is_accelerator else None
        )
        self.count = backend.device_count(self.type, descriptor) if self.is_accelerator else 1
        self.capabilities = capabilities
        #: Broken capabilities, and what their probes saw.
        self.broken: Mapping[str, str] = {}
        self.seed = seed
        # torch initialises a device with its first tensor. Until then, whatever runs on streams,
        # torch.accelerator.synchronize waits for nothing.
        torch.empty(0, device=self._device)
        #: What is read to wait for a device: made once, because memory is counted.
        self._elements: dict[torch.device, torch.Tensor] = {}
        self._waits = self.is_accelerator
        self._can_synchronize = self.is_accelerator and self._synchronizes()
        self._can_read = self.is_accelerator and self._refusal_to_read() is None
        self.check_id = ""
        self.facts: dict[str, Any] = {}
        self._fallbacks: set[str] = set()
        #: The streams of the running check, if they have to be waited for one by one.
        self._made: list[torch.Stream] = []
        self.journal: Journal | None = None
        self._operations_per_ms: float | None = None

    # Bookkeeping, for the runner and for checks of many samples

    def begin(self, check_id: str) -> None:
        """Start the check of this id: what was noted for the one before is dropped."""
        self.check_id = check_id
        self.facts = {}
        self._fallbacks.clear()
        self._made.clear()
        if self.has("fallback_counter"):
            self._clear_fallbacks()

    def note(self, **facts: Any) -> None:
        """Add facts to the record of the running check: samples, evidence, repro."""
        self.facts |= facts

    # Devices, streams, events

    def device(self, index: int | None = None) -> torch.device:
        """The torch.device of `index`, or the default device of the type."""
        return self._device if index is None else torch.device(self.type, index)

    def synchronize(self, index: int | None = None) -> None:
        """Wait for all work of one device; without `index`, of every device.

        Where the backend cannot synchronise a device, the streams of the check are waited for, and
        one element is written and read: that waits for the work of the current stream, and raises
        its error. Where nothing can be read either, nothing is waited for.
        The chapters ask for synchronisation as a requirement; if it were missed here, every single
        check would fail for want of it.
        """
        if not self._waits:
            return
        if self._can_synchronize:
            for i in range(self.count) if index is None else (index,):
                self._wait(i)
        else:
            for stream in self._made:
                stream.synchronize()
            if self._can_read:
                for device in self._readable() if index is None else (self.device(index),):
                    self._read(device)

    def abandon(self) -> None:
        """Do not wait for the device again: an error that was expected has ended its use here.

        For isolated checks, whose process nobody uses after them.
        """
        self._waits = False

    def _wait(self, index: int) -> None:
        if self._is_current_accelerator():
            torch.accelerator.synchronize(index)
        else:
            self.module.synchronize(index)

    def _synchronizes(self) -> bool:
        """Whether waiting works; asked while the device has nothing to do."""
        if self._refusal_to_wait() is None:
            return True
        if self._refusal_to_wait() is None:  # an earlier error was raised late
            return True
        # A backend in its first days may have no copy: a device that is lost gives another error.
        refusal = self._refusal_to_read()
        return refusal is not None and not isinstance(refusal, NotImplementedError)

    def _refusal_to_wait(self) -> Exception | None:
        try:
            self._wait(self._device.index or 0)
        except Exception as error:
            return error
        return None

    def _refusal_to_read(self) -> Exception | None:
        try:
            self._read(self._device)
        except Exception as error:
            return error
        return None

    def _read(self, device: torch.device) -> None:
        if device not in self._elements:
            self._elements[device] = torch.zeros(1).to(device)
        # A backend may keep on the host what was read before, as long as nothing writes to it.
        self._elements[device].copy_(torch.zeros(1))
        self._elements[device].cpu()

    def _readable(self) -> list[torch.device]:
        """The device under test, and the others if they can be used."""
        if not self.has("multi_device"):
            return [self._device]
        return [self.device(index) for index in range(self.count)]

    def stream(self, index: int | None = None, priority: int = 0) -> torch.Stream:
        """A new stream on the device."""
        made = torch.Stream(self.device(index), priority=priority)
        if not self._can_synchronize:
            self._made.append(made)
        return made

    def event(self, timing: bool = False, blocking: bool = False) -> torch.Event:
        """A new event of the device type."""
        return torch.Event(self.device(), enable_timing=timing, blocking=blocking)

    def current_stream(self, index: int | None = None) -> torch.Stream:
        """The current stream of a device (of the current device without `index`)."""
        if self._is_current_accelerator():
            return torch.accelerator.current_stream(index)
        return self.module.current_stream(index)

    def default_stream(self, index: int = 0) -> torch.Stream:
        """The default stream of a device.

        Only the device module may have a function for it. Without it, this is the stream that is
        current in a thread that has set none.
        """
        if hasattr(self.bare_module, "default_stream"):
            default: torch.Stream = self.bare_module.default_stream(index)
            return default
        found: list[torch.Stream] = []
        thread = threading.Thread(target=lambda: found.append(self.current_stream(index)))
        thread.start()
        thread.join()
        if not found:
            self.unsupported("there is no current stream in a new thread")
        return found[0]

    def delay(self, ms: float) -> None:
        """Queue work that keeps the current stream busy for at least `ms`; return at once."""
        if self.descriptor.delay:
            backend.resolve(self.descriptor.delay)(ms)
        elif self.is_accelerator:
            self._busy(ms)
        else:
            self.unsupported(MissingCapability(names=("delay",)))

    def _busy(self, ms: float) -> None:
        size = 1024
        matrix = torch.zeros(size, size, device=self.device())
        result = torch.empty_like(matrix)

        def queue(count: int) -> None:
            for _ in range(count):
                torch.mm(matrix, matrix, out=result)

        if self._operations_per_ms is None:
            self._operations_per_ms = self._calibrate(queue)
        queue(int(ms * DELAY_MARGIN * self._operations_per_ms) + 1)

    def _calibrate(self, queue: Callable[[int], None]) -> float:
        queue(1)
        self.synchronize()
        count, elapsed = 1, 0.0
        while elapsed < 0.02:
            count *= 2
            begin = time.perf_counter()
            queue(count)
            self.synchronize()
            elapsed = time.perf_counter() - begin
        return count / (elapsed * 1e3)

    def _is_current_accelerator(self) -> bool:
        current = torch.accelerator.current_accelerator()
        return current is not None and current.type == self.type

    # Capabilities

    def has(self, capability: str) -> bool:
        """Whether the backend has a capability (see spec/capabilities.py).

        Raises ValueError for a costly one, which is only known where a check declares its need.
        """
        _refuse_costly(capability)
        return capability in self.capabilities

    def require(self, *capabilities: str) -> None:
        """End the check unless the backend has all the capabilities.

        It is unsupported if one is absent, and fails if one is broken.
        """
        for name in capabilities:
            _refuse_costly(name)
            if name in self.broken:
                raise AssertionError(describe_broken(name, self.broken[name]))
            if name not in self.capabilities:
                self.unsupported(MissingCapability(names=(name,)))

    def unsupported(self, reason: str | Reason) -> NoReturn:
        """End the check as unsupported, with the reason that goes into the report."""
        raise Unsupported(Stated(text=reason) if isinstance(reason, str) else reason)

    def factories_pin_for_cuda(self) -> bool:
        """Whether pin_memory=True gives memory that CUDA pinned: where torch has CUDA and a card.

        GetCPUAllocatorMaybePinned (ATen/EmptyTensor.cpp) asks CUDA first; Tensor.pin_memory() does
        not.
        """
        return self.type != "cuda" and torch.cuda.is_available()

    def require_factories_that_pin(self) -> None:
        """End the check as unsupported where pin_memory=True does not reach this backend."""
        if self.factories_pin_for_cuda():
            issue = "https://github.com/pytorch/pytorch/issues/14560"
            self.unsupported(f"pin_memory=True pins for CUDA where torch has it: {issue}")

    def dtypes(self, kind: str = "all") -> tuple[torch.dtype, ...]:
        """The dtypes the backend supports: floating, integral, complex or all."""
        optional = {torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128}
        return tuple(
            dtype
            for dtype in DTYPES[kind]
            if _name(dtype) not in self.descriptor.dtypes.unsupported
            and (dtype not in optional or self.has(_name(dtype)))
        )

    def fallback_counts(self) -> dict[str, int]:
        """How often each operator ran by CPU fallback; needs capability 'fallback_counter'."""
        self.require("fallback_counter")
        return dict(backend.resolve(str(self.descriptor.fallback_counts))())

    def reset_fallback_counts(self) -> None:
        """Set the fallback counts to zero, where the backend can."""
        self._fallbacks |= self.fallbacks()
        self._clear_fallbacks()

    def fallbacks(self) -> set[str]:
        """Operators that fell back since the check began, also before a reset by the check."""
        if not self.has("fallback_counter"):
            return set()
        return self._fallbacks | {name for name, n in self.fallback_counts().items() if n}

    def _clear_fallbacks(self) -> None:
        if self.descriptor.fallback_reset:
            backend.resolve(self.descriptor.fallback_reset)()

    def environment(self, key: str) -> Mapping[str, str]:
        """The environment that the descriptor names by a key, such as blocking_env.

        Without one the check is unsupported.
        """
        found: Mapping[str, str] = getattr(self.descriptor, key)
        if not found:
            self.unsupported(f"the descriptor has no {key}")
        return found

    @property
    def fault(self) -> Any:
        """The object that injects faults; needs capability 'fault_injection'."""
        self.require("fault_injection")
        return backend.resolve(str(self.descriptor.fault))

    def attach_backend_meta(self, tensor: torch.Tensor) -> None:
        """Give a tensor metadata of the backend; the descriptor names the callable."""
        if not self.descriptor.backend_meta:
            self.unsupported(MissingCapability(names=("backend_meta",)))
        backend.resolve(self.descriptor.backend_meta)(tensor)

    # Values

    def rng(self) -> torch.Generator:
        """A CPU generator whose seed depends on the check and on --seed only."""
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed}:{self.check_id}".encode()))

    def cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wait for the tensor's device and copy the tensor to the CPU."""
        if tensor.device.type == self.type:
            self.synchronize(tensor.device.index)
        return tensor.detach().cpu()

    def assert_equal(self, actual: Any, expected: Any) -> None:
        """Fail unless `actual` (on the device) has exactly the values of `expected`."""
        __tracebackhide__ = True
        self._assert(actual, expected, 0.0, 0.0)

    def assert_close(
        self, actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None
    ) -> None:
        """Fail unless `actual` is within tolerance of `expected` (by default that of its dtype)."""
        __tracebackhide__ = True
        default = self.tolerance(actual.dtype) if isinstance(actual, torch.Tensor) else (0.0, 0.0)
        self._assert(
            actual,
            expected,
            default[0] if rtol is None else rtol,
            default[1] if atol is None else atol,
        )

    def tolerance(self, dtype: torch.dtype) -> tuple[float, float]:
        """(rtol, atol) for a dtype: the descriptor's, else the suite's default."""
        return self.descriptor.tolerances.get(_name(dtype)) or compare.tolerance(dtype)

    def _assert(self, actual: Any, expected: Any, rtol: float, atol: float) -> None:
        __tracebackhide__ = True
        actual = self._to_cpu(actual)
        if isinstance(actual, torch.Tensor) and not isinstance(expected, torch.Tensor):
            actual = actual.tolist()
        compare.require_none(compare.difference(actual, expected, rtol=rtol, atol=atol))

    def _to_cpu(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.cpu(value)
        if isinstance(value, (list, tuple)):
            return [self._to_cpu(item) for item in value]
        return value

    # Other processes

    def python(
        self,
        code: str,
        *,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        timeout: float | None = None,
        backend: str = "load",
        between: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run `code` in a fresh interpreter and return its status and output.

        backend="load" first imports torch, runs `between` and imports the backend as the descriptor
        says, "before_torch" imports the backend first, "none" imports nothing. Autoload is as the
        descriptor says, unless `env` sets it; it is on for "none". A timeout raises AssertionError.
        """
        from torch_conformance.authoring import backend as loader

        environment = {k: v for k, v in os.environ.items() if k != loader.AUTOLOAD}
        environment |= self.descriptor.env
        if backend != "none":
            environment[loader.AUTOLOAD] = "1" if self.descriptor.autoload else "0"
        environment |= dict(env or {})
        limit = timeout or self.descriptor.deadlines.startup
        command = [
            sys.executable,
            "-c",
            loader.prelude(self.descriptor, backend, between) + code,
            *args,
        ]
        try:
            return subprocess.run(
                command, env=environment, capture_output=True, timeout=limit, errors="replace"
            )
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the fresh interpreter did not end within {limit:g} s") from None

    def fork(self, function: Callable[[], Any], timeout: float = 30.0) -> tuple[int, Any]:
        """Run `function` in a forked child; return (exit status, value).

        For checks that declare that they need `fork`. The status is 0, a negative signal number,
        or 1 with the traceback as value. A child that does not end in time is killed: its status
        is -SIGKILL and its value None. Raises ValueError where nobody knows that forks work.
        """
        if "fork" not in self.capabilities:
            raise _undeclared("fork")
        return run_forked(function, timeout)


class _Absent(NamedTuple):
    """What a forked child found out to be missing."""

    reason: Reason


def run_forked(function: Callable[[], Any], timeout: float = 30.0) -> tuple[int, Any]:
    """Run `function` in a forked child of this process; see Device.fork."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(function, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = _read_all(pipe.fileno(), time.monotonic() + timeout)
    if data is None:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    value = pickle.loads(data) if data else None
    if isinstance(value, _Absent):
        raise Unsupported(value.reason)
    return os.waitstatus_to_exitcode(status), value


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _child(function: Callable[[], Any], write: int) -> NoReturn:
    status = 0
    backend.settle_after_fork()
    try:
        value = function()
    except Unsupported as absent:
        value = _Absent(absent.reason)
    except BaseException:
        value, status = traceback.format_exc(), 1
    try:
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(value, pipe)
    finally:
        os._exit(status)


def _read_all(descriptor: int, end: float) -> bytes | None:
    """Everything up to end of file, or None if that does not come before the time `end`."""
    chunks: list[bytes] = []
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
