# SPDX-License-Identifier: BSD-3-Clause
"""C++ tests of drivers, built plainly or for one of the compiler's sanitizers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from suites import ROOT, one_at_a_time

# Sanitizer of the build (empty: none) -> what the environment has to say to its run time.
SANITIZERS = {
    "": {},
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1"},
    "thread": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}
#: For a test of each build; those for a sanitizer take minutes to compile.
BUILDS = [
    pytest.param(name, id=name or "plain", marks=[pytest.mark.nightly] if name else [])
    for name in SANITIZERS
]
# `make sanitizers` takes all; compiling those takes longer than most other tests together.
KERNELS = os.environ.get("PUONE_SANITIZED_KERNELS", "basic")
# What the HAL suite says of known answers then.
NOT_OFFERED = re.compile(r"skipped: not offered: the kernel \w+")
REPORTS = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


def build(sanitizer: str, folder_of: str = "test_cpp", target: str = "driver_tests") -> str:
    """Build the tests with that sanitizer, incrementally; the executable."""
    folder = _configured(sanitizer)
    with one_at_a_time(folder):
        _run(["cmake", "--build", str(folder), "--target", target])
    return str(folder / folder_of / target)


def runtime(name: str) -> str:
    """Where the compiler keeps one of its runtime libraries."""
    command = ["c++", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


# What a Python with a driver of the build for address,undefined needs. Python is not instrumented:
# the run time has to come first, and the C++ library early enough that its exceptions are
# intercepted. Leaks are the C++ tests' matter, for Python keeps what it has. Faults are left to the
# programs, some of which provoke them, and freed memory is soon reused, since some look at resident
# memory.
SANITIZED = {
    "LD_PRELOAD": " ".join(map(runtime, ["libasan.so", "libubsan.so", "libstdc++.so"])),
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:quarantine_size_mb=1"
    ":thread_local_quarantine_size_kb=64",
}


@cache
def _configured(sanitizer: str) -> Path:
    """The directory of a build with that sanitizer."""
    kind = sanitizer.replace(",", "-") or "plain"
    folder = ROOT / "build" / f"drivers-{kind}{'' if KERNELS == 'basic' else '-' + KERNELS}"
    options = ["-DPUONE_DRIVER_TESTS=ON", f"-DPUONE_SANITIZE={sanitizer}"]
    # The allocator's tests are the only ones that need torch.
    options += ["-DPUONE_ALLOCATOR_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    options += ["-DPUONE_KERNEL_LEVELS=baseline", f"-DPUONE_KERNELS={KERNELS}"]
    configure = ["cmake", "-S", str(ROOT / "csrc" / "drivers"), "-B", str(folder), "-G", "Ninja"]
    with one_at_a_time(folder):
        _run([*configure, *options])
    return folder


def _run(command: list[str]) -> None:
    # The progress line of `make` is for the ninja of the virtual environment; an older one that was
    # configured here refuses it.
    environment = {key: value for key, value in os.environ.items() if key != "NINJA_STATUS"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(command: list[str], environment: dict[str, str], at_least: int = 50) -> str:
    """Run the tests; what they wrote. Fails with it unless all of them passed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    done = subprocess.run(
        command,
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    ran = re.search(r"^(\d+) tests, 0 failed$", done.stdout, re.MULTILINE)
    assert ran is not None, done.stdout
    assert int(ran[1]) >= at_least, done.stdout
    return done.stdout
