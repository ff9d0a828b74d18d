# SPDX-License-Identifier: BSD-3-Clause
"""Checks that end their process in every way, between checks that must keep their results."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

import torch

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


@check("planted/good", "PLANT-001", cases=tuple(f"before_{i}" for i in range(20)))
def passes(dev: Device, case: str) -> None:
    """Passes."""
    dev.assert_equal(torch.ones(2, device=dev.device()) + 1, [2.0, 2.0])


@check("planted/segfault", "PLANT-001")
def segfaults(dev: Device) -> None:
    """Reads from address zero."""
    print("about to read from address zero")
    ctypes.string_at(0)


@check("planted/abort", "PLANT-001")
def aborts(dev: Device) -> None:
    """Calls abort."""
    os.abort()


@check("planted/exit", "PLANT-001")
def ends_the_process(dev: Device) -> None:
    """Calls _exit as if all were well."""
    os._exit(0)


@check("planted/hang", "PLANT-001", deadline=2.0)
def hangs_with_the_gil(dev: Device) -> None:
    """Sleeps in C without giving the interpreter's lock away."""
    ctypes.PyDLL(None).sleep(600)


@check("planted/sys_exit", "PLANT-001")
def raises_system_exit(dev: Device) -> None:
    """Raises SystemExit."""
    sys.exit(7)


@check("planted/interrupt", "PLANT-001")
def interrupts_itself(dev: Device) -> None:
    """Sends itself the signal of Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5.0)


@check("planted/wrong", "PLANT-001", cases=("first", "second"))
def is_wrong(dev: Device, case: str) -> None:
    """Compares unequal tensors."""
    dev.assert_equal(torch.tensor([1.0, 2.0, 3.0], device=dev.device()), torch.tensor([1.0, 2, 4]))


@check("planted/assertion", "PLANT-001")
def shows_values(dev: Device) -> None:
    """Fails in a plain assertion."""
    answer = 41
    assert answer == 42


@check("planted/noise", "PLANT-001")
def writes_to_every_channel(dev: Device) -> None:
    """Writes what looks like a message of the runner to every file descriptor it may know."""
    os.write(1, b'{"result": {"id": "planted/segfault", "outcome": "pass"}}\n')
    os.write(2, b"\xff\xfe\n")
    print("x" * 100_000)


@check("planted/child", "PLANT-001")
def leaves_a_process_behind(dev: Device) -> None:
    """Starts a process that would outlive the run, and names it in a file."""
    child = subprocess.Popen(["sleep", "600"])
    with open(os.environ["PLANTED_PID_FILE"], "w", encoding="ascii") as file:
        file.write(str(child.pid))


@check("planted/alone", "PLANT-001", cases=("a", "b"), isolate=True)
def has_a_process_of_its_own(dev: Device, case: str) -> None:
    """Sees no trace of another check in its process."""
    assert not hasattr(torch, "_planted_trace")
    torch._planted_trace = case  # type: ignore[attr-defined]  # added here


@check("planted/lacking", "PLANT-002")
def needs_what_the_cpu_lacks(dev: Device) -> None:
    """Would fail if it ran."""
    raise RuntimeError("ran without its capability")


@check("planted/declines", "PLANT-001")
def declines(dev: Device) -> None:
    """Ends as unsupported by itself."""
    dev.unsupported("for a reason")


@check("planted/last", "PLANT-001", cases=tuple(f"after_{i}" for i in range(20)))
def passes_afterwards(dev: Device, case: str) -> None:
    """Passes."""
    dev.assert_close(torch.ones(2, device=dev.device()) / 3, torch.full((2,), 1 / 3))
