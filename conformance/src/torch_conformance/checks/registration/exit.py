# SPDX-License-Identifier: BSD-3-Clause
"""A process that used the device ends cleanly, and leaves no other behind."""

from __future__ import annotations

import glob
import os
import signal
import time
import uuid

from torch_conformance.authoring.api import AT_ONCE, Device, check, ends, why_ended
from torch_conformance.checks.registration._programs import WORK

_BACKWARD = (
    "w = torch.ones(8, device=D, requires_grad=True)\n"
    "(w * 2).sum().backward()\n"
    "assert w.grad.cpu().tolist() == [2.0] * 8\n"
)
_REPEATED = {f"process {number}": _BACKWARD for number in range(5)}
_LEAVE_WITH_STREAMS = {
    "live_streams_and_events": (
        "s = torch.Stream(device=D); e = torch.Event(device=D)\n"
        "with s: x = torch.ones(8, device=D)\n"
        "e.record(s)\n"
        "waiting = torch.Stream(device=D); waiting.wait_event(e)\n"
    ),
    "work_queued": (
        "s = torch.Stream(device=D)\n"
        "with s:\n"
        "    x = torch.zeros(1 << 16, device=D)\n"
        "    for step in range(2000): x.fill_(step)\n"
        "y = torch.ones(1 << 16, device=D) * 2\n"
    ),
}
_LEAVE: dict[str, str] = {
    "live_tensors": (
        "import builtins\n"
        "builtins.keep = [torch.ones(1 << k, device=D) for k in range(12)]\n"
        "keep = [t + 1 for t in builtins.keep]\n"
        "class Cycle: pass\n"
        "c = Cycle(); c.me = c; c.tensor = torch.ones(3, device=D)\n"
    ),
    "at_exit_hook": (
        "import atexit\n"
        "x = torch.ones(8, device=D)\n"
        "def last():\n"
        "    assert (x + 1).cpu().tolist() == [2.0] * 8\n"
        "    print('hook ran')\n"
        "atexit.register(last)\n"
    ),
    "uncaught_exception": "x = torch.ones(8, device=D)\nraise KeyError('on purpose')\n",
    "own_status": "import sys; x = torch.ones(8, device=D); sys.exit(3)\n",
    "init": (
        "module = torch.get_device_module(D)\n"
        "for time in ('first', 'second'):\n"
        "    module.init()\n"
        "    assert module.is_initialized(), f'the {time} init() did not initialise the device'\n"
        "assert (torch.ones(8, device=D) + 1).cpu().tolist() == [2.0] * 8\n" + AT_ONCE
    ),
    **_LEAVE_WITH_STREAMS,
    **_REPEATED,
}


#: The exit status of each program without an exit hook.
_STATUS = {"live_tensors": 0, "uncaught_exception": 1, "own_status": 3}


@check("registration/exit", "REG-040", cases=_STATUS, needs=("accelerator",), deadline=180)
def process_exits_cleanly(dev: Device, case: str) -> None:
    """A process that used the device ends with its own exit status, whatever is still alive."""
    ends(dev, _LEAVE)[case].verify(status=_STATUS[case])


@check("registration/init", "REG-017", needs=("accelerator",), deadline=180)
def init_initialises_the_device(dev: Device) -> None:
    """is_initialized() is true after init() in a process that has not used the device."""
    ends(dev, _LEAVE)["init"].verify()


@check("registration/exit:at_exit_hook", "REG-044", needs=("accelerator",), deadline=180)
def exit_hooks_use_the_device(dev: Device) -> None:
    """A function that a program gave to atexit uses the device when the program exits."""
    end = ends(dev, _LEAVE)["at_exit_hook"]
    end.verify()
    assert "hook ran" in end.output, "the device was gone before the program's exit hooks ran"


@check(
    "registration/exit_streams",
    "REG-040",
    cases=tuple(_LEAVE_WITH_STREAMS),
    needs=("streams", "events"),
    deadline=180,
)
def process_exits_cleanly_with_streams(dev: Device, case: str) -> None:
    """A process ends cleanly with work still queued, and with live streams and events."""
    ends(dev, _LEAVE)[case].verify()


@check("registration/exit_repeated", "REG-041", needs=("accelerator",), deadline=180)
def process_exits_cleanly_every_time(dev: Device) -> None:
    """Five processes that ran backward, and so have autograd threads, all end cleanly."""
    for number in _REPEATED:
        ends(dev, _LEAVE)[number].verify()


#: Seconds in which helpers may notice that their process has ended.
_TIME_TO_LEAVE = 3.0


@check("registration/leaves_no_process", "REG-042", needs=("accelerator",))
def no_process_is_left_behind(dev: Device) -> None:
    """When a process that used the device has ended, so has everything it started."""
    if not os.path.isdir("/proc/self"):
        dev.unsupported("needs /proc to find processes")
    marker = f"CONFORMANCE_FAMILY={uuid.uuid4().hex}"
    name, _, value = marker.partition("=")
    done = dev.python(f"D = {dev.type!r}\n{WORK}", env={name: value})
    assert done.returncode == 0, why_ended(done)
    end = time.monotonic() + _TIME_TO_LEAVE
    while (left := _processes_with(marker)) and time.monotonic() < end:
        time.sleep(0.02)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left, f"{len(left)} processes outlived the one that used the device"


def _processes_with(marker: str) -> list[int]:
    """The processes that inherited an environment variable; zombies have none any more."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/environ", "rb") as environment:
                if marker.encode() in environment.read().split(b"\0"):
                    found.append(int(folder.rpartition("/")[2]))
        except OSError:
            pass  # It has ended, or is somebody else's.
    return found
