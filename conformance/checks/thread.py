# SPDX-License-Identifier: BSD-3-Clause
"""Threads and processes: concurrent use, backward from threads, fork, spawn, exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from conformance.backend import prelude
from conformance.check import check
from conformance.departure import ends
from conformance.device import Device
from conformance.observe import LATE_MS, footprint, in_thread, in_threads

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


@check("thread/own_stream", "THREAD-003", cases=("own", "shared"), needs=("threads", "streams"))
def threads_work_on_streams(dev: Device, case: str) -> None:
    """Threads queue work on a stream each, or all on the same one, and nothing is lost."""
    shared = dev.stream()

    def worker(seed: int) -> None:
        stream = dev.stream() if case == "own" else shared
        with stream:
            for step in range(30):
                x = torch.empty(N, device=dev.type).fill_(seed)
                x.fill_(seed + step)
                y = torch.empty_like(x).copy_(x)
                stream.synchronize()
                dev.assert_equal(y, torch.full((N,), float(seed + step)))

    in_threads([partial(worker, seed) for seed in range(THREADS)])


@check(
    "thread/handoff",
    "THREAD-004",
    cases=("tensor", "event", "freed_there"),
    needs=("threads", "streams", "events", "delay"),
)
def work_is_handed_from_thread_to_thread(dev: Device, case: str) -> None:
    """A tensor made in one thread is used, waited for and freed in another."""
    box: queue.Queue[tuple[torch.Tensor, torch.Event]] = queue.Queue()

    def produce() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x = torch.full((N,), -1.0, device=dev.device(0))
                if value == 0:
                    stream.synchronize()  # whoever does not wait must find the -1
                    dev.delay(LATE_MS)
                x.fill_(value)
                if case == "tensor":
                    stream.synchronize()
                box.put((x, stream.record_event()))

    def consume() -> None:
        with dev.stream(0) as stream:
            for value in range(5):
                x, event = box.get(timeout=30)
                if case != "tensor":
                    stream.wait_event(event)
                    if dev.has("record_stream"):
                        x.record_stream(stream)
                y = torch.empty_like(x).copy_(x)
                if case == "freed_there":
                    del x
                stream.synchronize()
                dev.assert_equal(y, torch.full((N,), float(value)))

    in_threads([produce, consume])


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


# ---- backward --------------------------------------------------------------------------------


@check(
    "thread/backward",
    "THREAD-008",
    cases=("in_thread", "forward_here", "shared_graph", "device_kept", "nested"),
    needs=("threads",),
)
def backward_runs_in_any_thread(dev: Device, case: str) -> None:
    """backward() works from any thread and leaves its gradients on the right device."""
    last = dev.device(dev.count - 1) if dev.is_accelerator else dev.device()
    w = torch.full((16,), 3.0, device=last, requires_grad=True)
    if case == "in_thread":
        in_thread(lambda: (w * w).sum().backward())
    elif case == "forward_here":
        loss = (w * w).sum()
        in_thread(loss.backward)
    elif case == "shared_graph":
        half = [(w * w).sum() / 2 for _ in range(2)]
        in_threads([part.backward for part in half])
    elif case == "device_kept":
        dev.require("multi_device")
        with torch.accelerator.device_index(0):
            (w * w).sum().backward()
            assert torch.accelerator.current_device_index() == 0
    else:
        grad = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)[0]
        dev.assert_close(grad.detach(), torch.full((16,), 27.0))
        in_thread(lambda: (grad / 3).sum().backward())
    assert w.grad is not None and w.grad.device == w.device
    dev.assert_close(w.grad, torch.full((16,), 6.0))


# ---- fork ------------------------------------------------------------------------------------

_FORK_FIRST: dict[str, str] = {
    "untouched": "",
    "counted": (
        "torch.accelerator.is_available(); torch.accelerator.device_count()\n"
        "torch.get_device_module(D).is_available(); torch.get_device_module(D).device_count()\n"
        "torch.manual_seed(3)\n"
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


@check("thread/fork_before_use", "THREAD-010", cases=tuple(_FORK_FIRST), needs=("fork",))
def children_forked_before_first_use_work(dev: Device, case: str) -> None:
    """Children forked before the device was used can use it, and so can the parent at once."""
    done = dev.python(
        _FORK.format(type=dev.type, first=_FORK_FIRST[case], parent_too=case == "untouched")
    )
    assert done.returncode == 0 and "both worked" in done.stdout, done.stderr[-2000:]


_IN_CHILD: dict[str, Callable[[Device, torch.Tensor], Any]] = {
    "allocate": lambda dev, x: torch.ones(4, device=dev.device()),
    "operate": lambda dev, x: x.add(1).cpu(),
    "fill": lambda dev, x: x.fill_(2).cpu(),
    "copy_in": lambda dev, x: torch.ones(4).to(dev.device()),
    "copy_out": lambda dev, x: x.cpu(),
    "synchronize": lambda dev, x: torch.accelerator.synchronize(0),
    "set_device": lambda dev, x: dev.module.set_device(0),
}


@check(
    "thread/fork_after_use",
    "THREAD-011",
    cases=tuple(_IN_CHILD),
    needs=("fork", "accelerator"),
    isolate=True,
)
def children_forked_after_use_are_told(dev: Device, case: str) -> None:
    """In a child forked after use, the device works or raises RuntimeError: no hang, no crash."""
    if case == "synchronize":
        dev.require("synchronize")
    x = torch.ones(4, device=dev.device())
    dev.synchronize()

    def child() -> str:
        try:
            _IN_CHILD[case](dev, x)
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


@check(
    "thread/fork_state",
    "THREAD-012",
    cases=("bad_fork_flag", "parent_flag", "manual_seed", "cpu_works", "frees"),
    needs=("fork", "accelerator"),
    isolate=True,
)
def bad_forks_know_what_they_are(dev: Device, case: str) -> None:
    """_is_in_bad_fork tells the truth, and CPU work, seeding and freeing work in the child."""
    box = [torch.ones(4, device=dev.device())]
    dev.synchronize()

    def child() -> Any:
        if case == "bad_fork_flag":
            flag = dev.module._is_in_bad_fork()
            try:
                worked = (torch.ones(2, device=dev.device()) + 1).cpu().tolist() == [2.0, 2.0]
            except RuntimeError:
                worked = False
            return flag != worked
        if case == "manual_seed":
            torch.manual_seed(11)
            return True
        if case == "frees":
            box.clear()
            return True
        return torch.ones(3).add(1).tolist() == [2.0, 2.0, 2.0]

    status, value = dev.fork(child, timeout=20.0)
    assert status == 0, f"the child ended with status {status}: {value}"
    assert value is True, value
    if case == "parent_flag":
        assert dev.module._is_in_bad_fork() is False
    if case == "frees":
        dev.assert_equal(box[0], torch.ones(4))


#: The child leaves through the interpreter's own shutdown, exit hooks and all, with live tensors.
_FORK_AND_EXIT = {
    "child": (
        "import os, signal, sys\n"
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


@check("thread/fork_exit", "THREAD-012", needs=("fork", "accelerator"), deadline=180)
def bad_forks_leave_in_peace(dev: Device) -> None:
    """A child forked after use exits as any process does: with its own status and no error."""
    end = ends(dev, _FORK_AND_EXIT)["child"]
    end.verify()
    assert "Traceback" not in end.output and "Error" not in end.output, end.output[-2000:]


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
    assert done.returncode == 0 and "spawned" in done.stdout, done.stderr[-2000:]


@check(
    "thread/data_loader",
    "THREAD-014",
    cases=("plain", "pinned", "pinned_non_blocking", "workers", "workers_pinned"),
)
def data_loaders_feed_the_device(dev: Device, case: str) -> None:
    """A DataLoader, with worker processes or a pinning thread, feeds the device in order."""
    if "pinned" in case:
        dev.require("pinned_memory", "threads")
    if "workers" in case:
        dev.require("fork")
    torch.ones(1, device=dev.device()).item()  # in use before the workers are forked
    loader = DataLoader(
        TensorDataset(torch.arange(40.0).reshape(20, 2)),
        batch_size=5,
        pin_memory="pinned" in case,
        num_workers=1 if "workers" in case else 0,
        timeout=30 if "workers" in case else 0,
    )
    seen = []
    for (batch,) in loader:
        assert batch.is_pinned() == ("pinned" in case)
        seen.append(batch.to(dev.device(), non_blocking=case == "pinned_non_blocking"))
    dev.assert_equal(torch.cat(seen), torch.arange(40.0).reshape(20, 2))


_EXITS: dict[str, str] = {
    # A daemon thread that is *inside* torch when the interpreter ends aborts the process, on the
    # CPU as well (CPython before 3.14 unwinds it through C++ frames): that is no backend's fault.
    "daemon_waiting": (
        "import threading\n"
        "ready = threading.Event()\n"
        "def wait_for_ever():\n"
        "    x = torch.ones(256, device=D).fill_(1); y = x.clone()\n"
        "    ready.set(); threading.Event().wait()\n"
        "threading.Thread(target=wait_for_ever, daemon=True).start()\n"
        "assert ready.wait(30)\n"
    ),
    "thread_outlives_main": (
        "import threading, time\n"
        "def late():\n"
        "    time.sleep(0.1)\n"
        "    assert (torch.ones(4, device=D) + 1).cpu().tolist() == [2.0] * 4\n"
        "    print('late work done', flush=True)\n"
        "threading.Thread(target=late).start()\n"
    ),
    "only_in_thread": (
        "import threading\n"
        "kept = []\n"
        "def work(): kept.append(torch.ones(4, device=D, requires_grad=True)); "
        "(kept[0] * 2).sum().backward()\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
        "assert kept[0].grad.cpu().tolist() == [2.0] * 4\n"
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
}


@check(
    "thread/exit",
    "THREAD-015",
    cases=tuple(name for name in _EXITS if name != "first_use_in_threads"),
    needs=("threads", "accelerator"),
    deadline=180,
)
def processes_with_threads_exit_cleanly(dev: Device, case: str) -> None:
    """A process whose threads used the device, and may still live, exits with its own status."""
    end = ends(dev, _EXITS)[case]
    end.verify()
    assert "Exception in thread" not in end.output, end.output[-2000:]
    if case == "thread_outlives_main":
        assert "late work done" in end.output, end.output[-2000:]


@check("thread/late_start", "THREAD-016", needs=("threads", "accelerator"), deadline=180)
def threads_started_before_first_use_work(dev: Device) -> None:
    """A process may use the device for the first time in several threads at once."""
    ends(dev, _EXITS)["first_use_in_threads"].verify()
