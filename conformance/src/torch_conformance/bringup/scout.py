# SPDX-License-Identifier: BSD-3-Clause
"""A fresh interpreter that loads a backend and says what it found.

What is loaded may crash or hang: nothing of it comes into this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

from torch_conformance.authoring.backend import AUTOLOAD
from torch_conformance.bringup.loading import explained
from torch_conformance.bringup.packages import Candidate
from torch_conformance.running.process import ended
from torch_conformance.spec.outcome import CannotLoad, LoadProblem

#: Seconds that a child or a thread may take for the smallest computation.
PATIENCE = 20

_LOAD = """
import importlib, json, os, sys, threading, time
import torch
before = set(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else set()
modules, entry, setup = json.loads(sys.argv[1])
for name in modules:
    importlib.import_module(name)

def resolved(path):
    module, _, attributes = path.partition(":")
    found = importlib.import_module(module)
    for part in attributes.split("."):
        found = getattr(found, part)
    return found

called = False
if entry and ":" in entry and torch._C._get_privateuse1_backend_name() == "privateuseone":
    resolved(entry)()
    called = True
name = torch._C._get_privateuse1_backend_name()
device = name
if setup:
    kept = resolved(setup)()
    made = kept[-1] if isinstance(kept, tuple) else kept
    device = str(made if isinstance(made, (str, torch.device)) else made.device)
"""
_NAMES = """
print()
print(json.dumps({"privateuse1": name, "module": hasattr(torch, name), "called": called,
                  "device": device.partition(":")[0], "torch": torch.__version__}))
"""
_PROCESSES = """
device = sys.argv[2] if not setup else device
now = set(os.listdir("/proc/self/task")) if before else set()
found = {"started": len(now - before), "fork": None, "threads": None}

def works():
    return (torch.ones(2, device=device) + 1).cpu().tolist() == [2.0, 2.0]

def forked():
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if works() else 1)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    end, done = time.monotonic() + PATIENCE, (0, 0)
    while not done[0] and time.monotonic() < end:
        time.sleep(0.01)
        done = os.waitpid(child, os.WNOHANG)
    if not done[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
        return f"a forked child hangs when it uses the device (for {PATIENCE} s)"
    code = os.waitstatus_to_exitcode(done[1])
    return f"a forked child that uses the device ends with status {code}" if code else None

def threaded():
    said = []
    def use():
        try:
            said.append(None if works() else "a thread got a wrong result")
        except BaseException as error:
            said.append(f"a thread that uses the device gets {type(error).__name__}: {error}")
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return said[0] if said else f"a thread hangs when it uses the device (for {PATIENCE} s)"

if hasattr(os, "fork"):
    found["fork"] = forked()
if works():
    found["threads"] = threaded()
print()
print(json.dumps(found), flush=True)
os._exit(0)
"""


class Scouted(NamedTuple):
    """What a backend is called."""

    privateuse1: str
    module: bool
    """Whether there is `torch.<privateuse1>`."""
    called: bool
    """Whether importing was not enough: the device came with a call of the entry point."""
    device: str
    """The device type, also of what a setup has made."""
    torch: str


class Processes(NamedTuple):
    """What processes and threads can do with the device."""

    started: int
    """Threads that loading started."""
    fork: str | None
    """Why a child that is forked after loading cannot use the device."""
    threads: str | None
    """Why a second thread cannot use it."""


def scout(candidate: Candidate, setup: str | None, deadline: float) -> Scouted:
    """Load a backend, and say what it is called."""
    done = _run(_LOAD + _NAMES, candidate, setup, deadline)
    found = _last_line(done.stdout)
    if found is None:
        *_, said = done.stderr.strip().splitlines() or ["it wrote nothing"]
        raise CannotLoad(
            explained(
                f"{ended(done.returncode)} while loading {_named(candidate)}: {said}",
                LoadProblem.DIED,
            )
        )
    return Scouted(**found)


def processes(
    candidate: Candidate, setup: str | None, device: str, deadline: float
) -> Processes | None:
    """Load a backend, fork, and use threads; None if the device cannot even be used alone."""
    code = _LOAD + _PROCESSES.replace("PATIENCE", str(PATIENCE))
    try:
        found = _last_line(_run(code, candidate, setup, deadline + 2 * PATIENCE, device).stdout)
    except CannotLoad:
        return None
    return Processes(**found) if found else None


def _run(
    code: str, candidate: Candidate, setup: str | None, deadline: float, *arguments: str
) -> subprocess.CompletedProcess[str]:
    asked = json.dumps([candidate.modules, candidate.entry, setup])
    try:
        return subprocess.run(
            [sys.executable, "-c", code, asked, *arguments],
            env={**os.environ, AUTOLOAD: "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline,
        )
    except subprocess.TimeoutExpired:
        raise CannotLoad(
            f"importing {_named(candidate)} takes more than {deadline:g} s: if the device needs "
            "that long, give --deadline"
        ) from None


def _named(candidate: Candidate) -> str:
    return ", ".join(("torch", *candidate.modules))


def _last_line(output: str) -> dict[str, Any] | None:
    """The answer: the last line, if it is one."""
    *_, last = output.strip().splitlines() or [""]
    try:
        answer = json.loads(last)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
