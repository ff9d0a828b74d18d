# SPDX-License-Identifier: BSD-3-Clause
"""Processes end well whatever their threads do, and begin well in any of them."""

from __future__ import annotations

from torch_conformance.authoring.api import (
    AT_ONCE,
    Device,
    check,
    ends,
)

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
