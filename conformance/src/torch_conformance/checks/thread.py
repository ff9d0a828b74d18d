# SPDX-License-Identifier: BSD-3-Clause
"""Threads and processes: concurrent use, backward from threads, fork, spawn, exit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, TensorDataset

from torch_conformance.authoring.api import (
    AT_ONCE,
    LATE_MS,
    Device,
    check,
    ends,
    footprint,
    in_thread,
    in_threads,
    while_held,
    why_ended,
)
from torch_conformance.authoring.backend import prelude

THREADS = 8
N = 2000


# ---- concurrent use --------------------------------------------------------------------------


def _allocate(dev: Device, seed: int) -> None:
    live = []
    for step in range(40):
        size = 1 + (seed * 7919 + step * 104729) % 5000
        value = float(seed * 100 + step)
        live.append((torch.full((size,), value, device=dev.device()), value))
        if len(live) > 5:
            x, wanted = live.pop(step % 5)
            dev.assert_equal(x, torch.full((x.numel(),), wanted))


def _compute(dev: Device, seed: int) -> None:
    x = torch.full((N,), float(seed), device=dev.device())
    for _ in range(20):
        x = x * 2 - seed
    dev.assert_equal(x, torch.full((N,), float(seed)))


def _copy(dev: Device, seed: int) -> None:
    values = torch.arange(float(N)) + seed
    for _ in range(20):
        dev.assert_equal(values.to(dev.device()).clone(), values)


def _train(dev: Device, seed: int) -> None:
    for _ in range(5):
        w = torch.full((64,), float(seed), device=dev.device(), requires_grad=True)
        (w * w).sum().backward()
        assert w.grad is not None
        dev.assert_equal(w.grad, torch.full((64,), 2.0 * seed))


_WORK: dict[str, Callable[[Device, int], None]] = {
    "allocate": _allocate,
    "compute": _compute,
    "copy": _copy,
    "backward": _train,
}


@check("thread/concurrent", "THREAD-001", cases=tuple(_WORK), needs=("threads",))
def threads_work_side_by_side(dev: Device, case: str) -> None:
    """Eight threads that allocate, compute, copy or run backward at once all get their results."""
    in_threads([partial(_WORK[case], dev, seed) for seed in range(1, THREADS + 1)])


@check("thread/mixed", "THREAD-001", needs=("threads",))
def threads_do_different_work_side_by_side(dev: Device) -> None:
    """Threads that do different work at once do not disturb each other."""
    works = [*_WORK.values()] * 2
    in_threads([partial(work, dev, seed) for seed, work in enumerate(works, start=1)])


@check("thread/own_device", "THREAD-002", needs=("threads", "multi_device"))
def threads_work_on_their_own_device(dev: Device) -> None:
    """Each thread computes on the device it made current."""

    def worker(seed: int) -> None:
        index = seed % dev.count
        with torch.accelerator.device_index(index):
            for step in range(20):
                x = torch.full((N,), float(seed), device=dev.type)
                assert x.device == dev.device(index)
                dev.assert_equal(x + step, torch.full((N,), float(seed + step)))

    in_threads([partial(worker, seed) for seed in range(THREADS)])


def _queue(dev: Device, stream: torch.Stream, seed: int) -> None:
    with stream:
        for step in range(30):
            x = torch.empty(N, device=dev.type).fill_(seed)
            x.fill_(seed + step)
            y = torch.empty_like(x).copy_(x)
            stream.synchronize()
            dev.assert_equal(y, torch.full((N,), float(seed + step)))


@check("thread/own_stream:own", "THREAD-003", needs=("threads", "streams"))
def threads_work_on_streams_of_their_own(dev: Device) -> None:
    """Threads that queue work on a stream each all get their results."""

    def worker(seed: int) -> None:
        _queue(dev, dev.stream(), seed)

    in_threads([partial(worker, seed) for seed in range(THREADS)])


@check("thread/own_stream:large", "THREAD-003", needs=("threads", "streams"))
def threads_queue_large_work_on_streams_of_their_own(dev: Device) -> None:
    """Work that fills a device, on several streams of each device at once, gives its results."""
    many = 300_000

    def worker(seed: int) -> None:
        with torch.accelerator.device_index(seed % dev.count), dev.stream(seed % dev.count):
            x = torch.arange(many, device=dev.type)
            sums = [((x + step) * seed).sum() for step in range(25)]
            expected = [seed * (many * (many - 1) // 2 + many * step) for step in range(25)]
            assert torch.stack(sums).tolist() == expected

    in_threads([partial(worker, seed) for seed in range(1, 5)])


@check("thread/own_stream:shared", "THREAD-003", needs=("threads", "streams"))
def threads_work_on_one_stream(dev: Device) -> None:
    """Threads that queue work on one and the same stream all get their results."""
    stream = dev.stream()
    in_threads([partial(_queue, dev, stream, seed) for seed in range(THREADS)])


class _Handoff(NamedTuple):
    """How a tensor passes from one thread to another."""

    waits_first: bool = False  # the producer waits for its work; otherwise the consumer does
    frees: bool = False  # the consumer drops the tensor before its work is done


_HANDOFFS = {
    "tensor": _Handoff(waits_first=True),
    "event": _Handoff(),
    "freed_there": _Handoff(frees=True),
}


@check(
    "thread/handoff",
    "THREAD-004",
    cases=_HANDOFFS,
    needs=("threads", "streams", "events", "delay"),
)
def work_is_handed_from_thread_to_thread(dev: Device, case: str) -> None:
    """A tensor made in one thread is used, waited for and freed in another."""
    handoff = _HANDOFFS[case]
    box: queue.Queue[tuple[torch.Tensor, torch.Event]] = queue.Queue()

    def produce() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x = torch.full((N,), -1.0, device=dev.device(0))
                if value == 0:
                    stream.synchronize()  # a stream that does not wait must find the -1
                    dev.delay(LATE_MS)
                x.fill_(value)
                if handoff.waits_first:
                    stream.synchronize()
                box.put((x, stream.record_event()))

    def consume() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x, event = box.get(timeout=30)
                if not handoff.waits_first:
                    stream.wait_event(event)
                    if dev.has("record_stream"):
                        x.record_stream(stream)
                y = torch.empty_like(x).copy_(x)
                if handoff.frees:
                    del x
                stream.synchronize()
                dev.assert_equal(y, torch.full((N,), float(value)))

    in_threads([produce, consume])


_STREAMS = {"one_stream": 1, "own_streams": 3}


@check(
    "thread/empty_cache",
    "THREAD-001",
    cases=_STREAMS,
    needs=("threads", "streams", "empty_cache"),
)
def the_cache_is_emptied_beside_other_threads(dev: Device, case: str) -> None:
    """Threads that allocate and free while another one empties the cache get their results."""
    ended = threading.Event()
    streams = [dev.stream(0) for _ in range(_STREAMS[case])]

    def use(seed: int) -> None:
        try:
            with streams[seed % len(streams)]:
                for step in range(30):
                    size = 1 + (seed * 7919 + step * 104729) % (1 << 20)
                    live = [torch.full((size >> k,), seed + k, device=dev.type) for k in range(3)]
                    for k, x in enumerate(live):
                        assert x[-1:].item() == seed + k if x.numel() else True
        finally:
            ended.set()

    def empty() -> None:
        while not ended.is_set():
            torch.accelerator.empty_cache()

    works: list[Callable[[], None]] = [*(partial(use, seed) for seed in range(1, 4)), empty]
    with torch.accelerator.device_index(0):
        in_threads(works)


@check("thread/free_elsewhere", "THREAD-005", needs=("threads", "memory_stats"))
def memory_freed_by_another_thread_comes_back(dev: Device) -> None:
    """Blocks allocated in one thread and freed in another are returned in full."""
    with torch.accelerator.device_index(0):
        torch.empty(1, device=dev.device(0))
        before = torch.accelerator.memory_allocated(0)
        for _ in range(10):
            box = in_thread(lambda: [torch.ones(N, device=dev.device(0)) for _ in range(10)])
            in_thread(box.clear)
        assert torch.accelerator.memory_allocated(0) == before


@check("thread/leak", "THREAD-006", needs=("threads",))
def threads_that_used_the_device_leave_nothing(dev: Device) -> None:
    """Hundreds of threads that used the device and ended leave no thread and no descriptor."""

    def batch(count: int) -> None:
        for _ in range(count):
            in_thread(lambda: torch.ones(8, device=dev.device()).sum().item())

    batch(20)
    before = footprint()
    batch(200)
    after = footprint()
    assert after.threads <= before.threads + 2, f"threads: {before.threads} -> {after.threads}"
    assert after.descriptors <= before.descriptors + 2, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


@check("thread/leak_memory", "THREAD-006", needs=("threads", "memory_stats"))
def threads_that_used_the_device_leave_no_memory(dev: Device) -> None:
    """What threads allocated on the device is free when they have ended."""
    eye = torch.eye(8, device=dev.device(0))

    def batch(count: int) -> None:
        for _ in range(count):
            in_thread(lambda: torch.ones(8, 8, device=dev.device(0)).mm(eye).sum().item())

    batch(2)
    before = torch.accelerator.memory_allocated(0)
    batch(20)
    after = torch.accelerator.memory_allocated(0)
    assert after <= before, f"{after - before} bytes are left of 20 threads"


# ---- the interpreter lock --------------------------------------------------------------------

_BLOCKING: dict[str, Callable[[Device, torch.Tensor, torch.Stream], Any]] = {
    "stream_synchronize": lambda dev, x, stream: stream.synchronize(),
    "device_synchronize": lambda dev, x, stream: torch.accelerator.synchronize(0),
    "module_synchronize": lambda dev, x, stream: dev.module.synchronize(0),
    "event_synchronize": lambda dev, x, stream: stream.record_event().synchronize(),
    "item": lambda dev, x, stream: x[0].item(),
    "to_cpu": lambda dev, x, stream: x.cpu(),
}


@check(
    "thread/interpreter_lock",
    "THREAD-007",
    cases=tuple(_BLOCKING),
    needs=("threads", "streams", "events", "delay"),
)
def other_threads_run_while_one_waits(dev: Device, case: str) -> None:
    """A thread that waits for the device lets other Python threads run."""
    x = torch.ones(N, device=dev.device(0))
    stream = dev.stream(0)
    dev.synchronize()
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.002):
            ticks += 1

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        for ms in (150.0, 1000.0):  # more time where the machine is busy
            with stream:
                dev.delay(ms)
                before = ticks
                _BLOCKING[case](dev, x, stream)
                seen = ticks - before
            if seen >= 5:
                return
    finally:
        stop.set()
        ticker.join()
    raise AssertionError(f"another thread ran {seen} times while this one waited a second")


# ---- beside a thread that waits ---------------------------------------------------------------


def _copy_in(dev: Device, stream: torch.Stream, x: torch.Tensor) -> None:
    x.copy_(torch.ones(N))


#: What a thread does on a stream of its own that nobody holds up, one after the other.
_MEANWHILE: dict[str, Callable[[Device, torch.Stream, torch.Tensor], object]] = {
    "query": lambda dev, stream, x: stream.query(),
    "launch": lambda dev, stream, x: x.fill_(1),
    "record": lambda dev, stream, x: stream.record_event().query(),
    "wait": lambda dev, stream, x: stream.synchronize(),
    "allocate": lambda dev, stream, x: torch.empty(_NEW, dtype=torch.uint8, device=x.device),
    "free": lambda dev, stream, x: x.clone(),
    "read": lambda dev, stream, x: x[0].item(),
    "copy_in": _copy_in,
    "wait_event": lambda dev, stream, x: stream.record_event().synchronize(),
    "create": lambda dev, stream, x: dev.stream(0),
}
#: Bytes that an allocator does not have at hand.
_NEW = 48 << 20


@check(
    "thread/beside_a_wait",
    "THREAD-018",
    cases=tuple(_BLOCKING),
    needs=("threads", "streams", "events", "delay"),
)
def a_waiting_thread_holds_up_no_other(dev: Device, case: str) -> None:
    """While a thread waits for a busy stream, another one queues, allocates, asks and waits."""
    held, own = dev.stream(0), dev.stream(0)
    x, y = (torch.ones(N, device=dev.device(0)) for _ in range(2))
    dev.synchronize()
    waiting: list[threading.Thread] = []

    def wait(begins: threading.Event) -> None:
        with held:
            begins.set()
            _BLOCKING[case](dev, y, held)

    def look() -> list[str]:
        begins = threading.Event()
        waiting.append(threading.Thread(target=wait, args=(begins,), daemon=True))
        waiting[-1].start()
        begins.wait(30)
        time.sleep(0.005)  # by now it waits
        late = []
        with own:
            for name, work in _MEANWHILE.items():
                work(dev, own, x)
                late += [name] if held.query() else []
        return late

    with held:
        late = while_held(dev, look)
    for thread in waiting:
        thread.join(30)
    assert not late, f"{late[0]} returned only after the stream that another thread waits for"


# ---- backward --------------------------------------------------------------------------------


def _nested(dev: Device, w: torch.Tensor) -> None:
    gradient = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)[0]
    dev.assert_close(gradient.detach(), torch.full((16,), 27.0))
    in_thread(lambda: (gradient / 3).sum().backward())


#: Ways to compute the gradient of the sum of squares of a tensor.
_BACKWARD: dict[str, Callable[[Device, torch.Tensor], Any]] = {
    "in_thread": lambda dev, w: in_thread(lambda: (w * w).sum().backward()),
    "forward_here": lambda dev, w: in_thread((w * w).sum().backward),
    "shared_graph": lambda dev, w: in_threads([(w * w).sum().div(2).backward for _ in range(2)]),
    "nested": _nested,
}


@check("thread/backward", "THREAD-008", cases=_BACKWARD, needs=("threads",))
def backward_runs_in_any_thread(dev: Device, case: str) -> None:
    """backward() works from any thread and leaves its gradients on the right device."""
    w = _threes(dev)
    _BACKWARD[case](dev, w)
    _verify_gradient(dev, w)


@check("thread/backward:device_kept", "THREAD-008", needs=("threads",))
def backward_keeps_the_current_device(dev: Device) -> None:
    """backward() of work on another device leaves the current device."""
    dev.require("multi_device")
    w = _threes(dev)
    with torch.accelerator.device_index(0):
        (w * w).sum().backward()
        assert torch.accelerator.current_device_index() == 0
    _verify_gradient(dev, w)


def _threes(dev: Device) -> torch.Tensor:
    last = dev.device(dev.count - 1) if dev.has("multi_device") else dev.device()
    return torch.full((16,), 3.0, device=last, requires_grad=True)


def _verify_gradient(dev: Device, w: torch.Tensor) -> None:
    assert w.grad is not None and w.grad.device == w.device
    dev.assert_close(w.grad, torch.full((16,), 6.0))


# ---- fork ------------------------------------------------------------------------------------

#: What the parent does before it forks, and whether it uses the device while its children do.
_FORK_FIRST: dict[str, tuple[str, bool]] = {
    "untouched": ("", True),
    "counted": (
        "torch.accelerator.is_available(); torch.accelerator.device_count()\n"
        "torch.get_device_module(D).is_available(); torch.get_device_module(D).device_count()\n"
        "torch.manual_seed(3)\n",
        False,
    ),
}
_FORK = """
import os, signal, torch
D = {type!r}
{first}
def use():
    x = torch.arange(4.0, device=D)
    assert (x + 1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a hang ends as SIGALRM
        status = 9
        try:
            use()
            status = 0
        finally:
            os._exit(status)
    children.append(child)
if {parent_too}: use()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [0, 0], codes
use()
print("both worked")
"""


@check("thread/fork_before_use", "THREAD-010", cases=_FORK_FIRST, needs=("fork",))
def children_forked_before_first_use_work(dev: Device, case: str) -> None:
    """Children forked before the device was used can use it, and so can the parent at once."""
    first, parent_too = _FORK_FIRST[case]
    done = dev.python(_FORK.format(type=dev.type, first=first, parent_too=parent_too))
    assert done.returncode == 0 and "both worked" in done.stdout, why_ended(done)


_IN_CHILD: dict[str, Callable[[Device, torch.Tensor], Any]] = {
    "allocate": lambda dev, x: torch.ones(4, device=dev.device()),
    "operate": lambda dev, x: x.add(1).cpu(),
    "fill": lambda dev, x: x.fill_(2).cpu(),
    "copy_in": lambda dev, x: torch.ones(4).to(dev.device()),
    "copy_out": lambda dev, x: x.cpu(),
    "set_device": lambda dev, x: dev.module.set_device(0),
}


@check(
    "thread/fork_after_use",
    "THREAD-011",
    cases=_IN_CHILD,
    needs=("fork", "accelerator"),
    isolate=True,
)
def children_forked_after_use_are_told(dev: Device, case: str) -> None:
    """In a child forked after use, the device works or raises RuntimeError: no hang, no crash."""
    _works_or_raises(dev, _IN_CHILD[case])


@check(
    "thread/fork_after_use:synchronize",
    "THREAD-011",
    needs=("fork", "accelerator"),
    isolate=True,
)
def children_forked_after_use_synchronize_or_raise(dev: Device) -> None:
    """In a child forked after use, synchronising returns or raises RuntimeError."""
    dev.require("synchronize")
    _works_or_raises(dev, lambda dev, x: torch.accelerator.synchronize(0))


def _works_or_raises(dev: Device, work: Callable[[Device, torch.Tensor], Any]) -> None:
    x = torch.ones(4, device=dev.device())
    dev.synchronize()

    def child() -> str:
        try:
            work(dev, x)
        except RuntimeError as error:
            return f"raised: {error}"
        return "worked"

    status, value = dev.fork(child, timeout=20.0)
    assert status == 0, f"the child ended with status {status}: {value}"
    if value.startswith("raised"):
        assert "fork" in value.lower(), f"the message does not say why: {value}"
    # The parent is unharmed.
    x.add_(1)
    dev.assert_equal(x, torch.full((4,), 2.0))


def _verify_in_child(dev: Device, child: Callable[[], Any]) -> None:
    """Fail unless `child` is true in a child forked after use, and the parent is unharmed."""
    x = torch.ones(4, device=dev.device())
    dev.synchronize()
    status, value = dev.fork(child, timeout=20.0)
    assert status == 0, f"the child ended with status {status}: {value}"
    assert value is True, value
    dev.assert_equal(x, torch.ones(4))


def _works_on_the_cpu() -> bool:
    return torch.ones(3).add(1).tolist() == [2.0, 2.0, 2.0]


def _uses(dev: Device) -> bool:
    try:
        return (torch.ones(2, device=dev.device()) + 1).cpu().tolist() == [2.0, 2.0]
    except RuntimeError:
        return False


@check("thread/fork_state:bad_fork_flag", "THREAD-012", needs=("fork", "accelerator"), isolate=True)
def bad_forks_know_what_they_are(dev: Device) -> None:
    """_is_in_bad_fork is true in a child exactly where the device does not work in it."""
    _verify_in_child(dev, lambda: dev.module._is_in_bad_fork() != _uses(dev))


@check("thread/fork_state:parent_flag", "THREAD-012", needs=("fork", "accelerator"), isolate=True)
def parents_are_not_in_a_bad_fork(dev: Device) -> None:
    """_is_in_bad_fork remains false in the parent of a child forked after use."""
    in_bad_fork = dev.module._is_in_bad_fork
    _verify_in_child(dev, _works_on_the_cpu)
    assert in_bad_fork() is False


@check("thread/fork_state:manual_seed", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_can_seed(dev: Device) -> None:
    """torch.manual_seed works in a child forked after use."""
    _verify_in_child(dev, lambda: torch.manual_seed(11) is not None)


@check("thread/fork_state:cpu_works", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_work_on_the_cpu(dev: Device) -> None:
    """CPU work gives its result in a child forked after use."""
    _verify_in_child(dev, _works_on_the_cpu)


@check("thread/fork_state:frees", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_can_free(dev: Device) -> None:
    """A child forked after use can free a tensor, and the parent keeps it."""
    box = [torch.ones(4, device=dev.device())]

    def child() -> bool:
        box.clear()
        return True

    _verify_in_child(dev, child)
    dev.assert_equal(box[0], torch.ones(4))


# ---- processes -------------------------------------------------------------------------------

_SPAWN = """
import torch, torch.multiprocessing
child = {child!r}
torch.ones(2, device={type!r}).sum().item()
context = torch.multiprocessing.get_context("spawn")
results = context.Queue()
process = context.Process(target=exec, args=(child, {{"results": results}}))
process.start()
process.join(50)
assert process.exitcode == 0, process.exitcode
value = results.get(timeout=5)
assert value == [1.0, 2.0, 3.0], value
print("spawned")
"""


@check("thread/spawn", "THREAD-013", needs=("accelerator",), deadline=180)
def spawned_processes_use_the_device(dev: Device) -> None:
    """A spawned process uses the device although its parent did before."""
    child = prelude(dev.descriptor, "load") + (
        f"import torch\nresults.put((torch.arange(3.0).to({dev.type!r}) + 1).tolist())\n"
    )
    done = dev.python(_SPAWN.format(child=child, type=dev.type))
    assert done.returncode == 0 and "spawned" in done.stdout, why_ended(done)


class _Loader(NamedTuple):
    """How a DataLoader brings batches to the device."""

    pinned: bool = False
    workers: int = 0
    non_blocking: bool = False


_LOADERS = {
    "plain": _Loader(),
    "pinned": _Loader(pinned=True),
    "pinned_non_blocking": _Loader(pinned=True, non_blocking=True),
    "workers": _Loader(workers=1),
    "workers_pinned": _Loader(workers=1, pinned=True),
}
_FORKED = {name: "fork" for name, loader in _LOADERS.items() if loader.workers}


@check("thread/data_loader", "THREAD-014", cases=_LOADERS, case_needs=_FORKED)
def data_loaders_feed_the_device(dev: Device, case: str) -> None:
    """A DataLoader, with worker processes or a pinning thread, feeds the device in order."""
    pinned, workers, non_blocking = _LOADERS[case]
    if pinned:
        dev.require("pinned_memory", "threads")
    torch.ones(1, device=dev.device()).item()  # in use before the workers are forked
    loader = DataLoader(
        TensorDataset(torch.arange(40.0).reshape(20, 2)),
        batch_size=5,
        pin_memory=pinned,
        num_workers=workers,
        timeout=30 if workers else 0,
    )
    seen = []
    for (batch,) in loader:
        assert batch.is_pinned() == pinned
        seen.append(batch.to(dev.device(), non_blocking=non_blocking))
    dev.assert_equal(torch.cat(seen), torch.arange(40.0).reshape(20, 2))


#: Programs that end while threads live, or after threads have ended.
_EXITS: dict[str, str] = {
    # A daemon thread that is *inside* torch when the interpreter ends aborts the process, on the
    # CPU as well (CPython before 3.14 unwinds it through C++ frames): that is not the backend's
    # fault.
    "daemon_waiting": (
        "import threading\n"
        "ready = threading.Event()\n"
        "def wait_for_ever():\n"
        "    x = torch.ones(256, device=D).fill_(1); y = x.clone()\n"
        "    ready.set(); threading.Event().wait()\n"
        "threading.Thread(target=wait_for_ever, daemon=True).start()\n"
        "assert ready.wait(30)\n"
    ),
    "only_in_thread": (
        "import threading\n"
        "kept = []\n"
        "def work(): kept.append(torch.ones(4, device=D, requires_grad=True)); "
        "(kept[0] * 2).sum().backward()\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
        "assert kept[0].grad.cpu().tolist() == [2.0] * 4\n"
    ),
}
#: Every thread calls every function for the first time, each in an order of its own. What the CPU
#: gives is the right result; an operator that the device does not have is missing in each thread.
_FIRST_OPERATORS = """
import sys, threading
sys.setswitchinterval(1e-5)
X = torch.linspace(0.125, 0.875, 24).reshape(4, 6)
NAMES = (
    "abs acos asin atan ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 floor frac isfinite "
    "lgamma log log10 log1p log2 logit neg reciprocal round rsqrt sigmoid sign sin sinh sqrt "
    "square tan tanh trunc sum mean prod amax amin argmax argmin median logcumsumexp cumsum "
    "cumprod std var norm all any count_nonzero nonzero unique msort t ravel tril triu "
    "diag trace fliplr rot90 relu selu celu softplus hardswish kthvalue mode nansum "
    "nan_to_num logaddexp hypot atan2 fmod remainder copysign nextafter heaviside maximum minimum "
    "mm cdist kron outer dot cross cov corrcoef histc bincount bucketize searchsorted vander "
    "matrix_power pinverse i0 sinc mvlgamma polygamma igamma igammac"
).split()
ARGUMENTS = {
    "mm": (X.t(),), "outer": (X[1],), "dot": (X[1],), "kthvalue": (2,), "cross": (X[:, :3],),
    "bucketize": (X[0],), "searchsorted": (X,), "matrix_power": (2,), "mvlgamma": (1,),
    "logcumsumexp": (1,), "cumsum": (1,), "cumprod": (0,), "cdist": (X,), "kron": (X[:2],),
} | {
    name: (X.flip(0),) for name in ("logaddexp hypot atan2 fmod remainder copysign nextafter "
    "heaviside maximum minimum igamma igammac").split()
}
FIRST = {"outer": X[0], "dot": X[0], "cross": X[:, :3], "vander": X[0], "matrix_power": X[:, :4],
         "bincount": torch.tensor([1, 0, 2, 1]), "searchsorted": X[0].sort().values}
def call(name, device):
    move = lambda v: v.to(device) if isinstance(v, torch.Tensor) else v
    arguments = [move(FIRST.get(name, X)), *map(move, ARGUMENTS.get(name, ()))]
    if name == "polygamma": arguments = [1, *arguments]
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    try:
        result = function(*arguments)
    except NotImplementedError:
        return None
    return [r.cpu() for r in (result if isinstance(result, tuple) else (result,))]
expected = {name: call(name, "cpu") for name in NAMES}
gate = threading.Barrier(6)
found = [{} for _ in range(6)]
def work(k):
    gate.wait(30)
    for turn in range(len(NAMES)):
        name = NAMES[(turn + k // 2 * 40) % len(NAMES)]
        found[k][name] = call(name, D)
threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
for t in threads: t.start()
for t in threads: t.join()
for name in NAMES:
    results = [mine[name] for mine in found]
    if all(r is None for r in results): continue
    for r in results:
        assert r is not None, f"{name} was missing in some threads only"
        for one, other in zip(r, expected[name]):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True), name
"""
#: Threads that allocate, draw, queue and take streams for the first time, on each device at once.
_FIRST_DEVICES = """
import sys, threading
sys.setswitchinterval(1e-5)
TYPE = torch.device(D).type
count = torch.accelerator.device_count()
gate = threading.Barrier(12)
right = []
def allocate(device, k):
    x = torch.full((1000 + k,), float(k), device=device)
    assert (x + 1).cpu().tolist() == [k + 1.0] * (1000 + k)
def draw(device, k):
    g = torch.Generator(device=device).manual_seed(3)
    first = torch.rand(100, device=device, generator=g)
    again = torch.rand(100, device=device, generator=g.manual_seed(3))
    assert torch.equal(first.cpu(), again.cpu())
def stream(device, k):
    try:
        own = torch.Stream(device)
    except (NotImplementedError, RuntimeError):
        return allocate(device, k)
    with own:
        x = torch.full((500,), float(k), device=device)
        y = x * 2
    own.synchronize()
    assert y.cpu().tolist() == [2.0 * k] * 500
def copy(device, k):
    values = torch.arange(3000.0) + k
    assert torch.equal(values.to(device).clone().cpu(), values)
WORKS = (allocate, draw, stream, copy)
def work(k):
    device = torch.device(TYPE, k % count)
    gate.wait(30)
    for turn in range(4): WORKS[(k // count + turn) % 4](device, k)
    right.append(k)
threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
for t in threads: t.start()
for t in threads: t.join()
assert sorted(right) == list(range(12)), right
"""
_PROGRAMS = _EXITS | {
    "first_operators": _FIRST_OPERATORS + AT_ONCE,
    "first_devices": _FIRST_DEVICES + AT_ONCE,
    "thread_outlives_main": (
        "import threading, time\n"
        "def late():\n"
        "    time.sleep(0.1)\n"
        "    assert (torch.ones(4, device=D) + 1).cpu().tolist() == [2.0] * 4\n"
        "    print('late work done', flush=True)\n"
        "threading.Thread(target=late).start()\n"
    ),
    "first_use_in_threads": (
        "import threading\n"
        "gate = threading.Barrier(8); good = []\n"
        "def work(k):\n"
        "    gate.wait(30)\n"
        "    x = torch.full((100,), float(k), device=D)\n"
        "    assert (x + 1).cpu().tolist() == [k + 1.0] * 100\n"
        "    good.append(k)\n"
        "threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "assert sorted(good) == list(range(8)), good\n"
    ),
    # The child leaves through the interpreter's own shutdown: exit hooks, live tensors and all.
    "bad_fork": (
        "import os, signal, sys\n"
        # PyTorch waits so long at a child's end for autograd threads that only the parent has.
        "os.environ['TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT'] = '0.1'\n"
        "x = torch.ones(8, device=D, requires_grad=True)\n"
        "(x * 2).sum().backward()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    sys.exit(7)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "assert status == 7, f'the child ended with {status}'\n"
        "assert x.grad.cpu().tolist() == [2.0] * 8\n"
    ),
}


@check("thread/exit", "THREAD-015", cases=_EXITS, needs=("threads", "accelerator"), deadline=180)
def processes_with_threads_exit_cleanly(dev: Device, case: str) -> None:
    """A process whose threads used the device, and may still live, exits with its own status."""
    _verify_exit(dev, case)


@check(
    "thread/exit:thread_outlives_main",
    "THREAD-015",
    needs=("threads", "accelerator"),
    deadline=180,
)
def threads_that_outlive_main_finish_their_work(dev: Device) -> None:
    """A thread that lives longer than the main one uses the device to its end."""
    output = _verify_exit(dev, "thread_outlives_main")
    assert "late work done" in output, output[-2000:]


def _verify_exit(dev: Device, program: str) -> str:
    """What a program wrote; fails unless it ended well and without an exception in a thread."""
    end = ends(dev, _PROGRAMS)[program]
    end.verify()
    assert "Exception in thread" not in end.output, end.output[-2000:]
    return end.output


@check("thread/fork_exit", "THREAD-017", needs=("fork", "accelerator"), deadline=180)
def bad_forks_leave_in_peace(dev: Device) -> None:
    """A child forked after use exits as any process does: with its own status and no error."""
    end = ends(dev, _PROGRAMS)["bad_fork"]
    end.verify()
    assert "Traceback" not in end.output and "Error" not in end.output, end.output[-2000:]


@check("thread/late_start", "THREAD-016", needs=("threads", "accelerator"), deadline=180)
def threads_started_before_first_use_work(dev: Device) -> None:
    """A process may use the device for the first time in several threads at once."""
    ends(dev, _PROGRAMS)["first_use_in_threads"].verify()


_FIRST_AT_ONCE = {"operators": "first_operators", "devices": "first_devices"}


@check(
    "thread/first_at_once",
    "THREAD-016",
    cases=_FIRST_AT_ONCE,
    needs=("threads", "accelerator"),
    deadline=180,
)
def many_things_are_used_for_the_first_time_at_once(dev: Device, case: str) -> None:
    """Threads that call many operators, or use many devices, for the first time get all results."""
    _verify_exit(dev, _FIRST_AT_ONCE[case])
