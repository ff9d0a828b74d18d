# SPDX-License-Identifier: BSD-3-Clause
"""The sim driver's C++ tests, plain, under the compiler's sanitizers and under valgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Sanitizer of the build (empty: none) -> what the environment has to say to its run time.
SANITIZERS = {
    "": {},
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1"},
    "thread": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}
REPORTS = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


def build(sanitizer: str, folder_of: str = "test_cpp", target: str = "driver_tests") -> str:
    """Build the tests with that sanitizer, incrementally; the executable."""
    folder = ROOT / "build" / ("drivers-" + (sanitizer.replace(",", "-") or "plain"))
    options = ["-DPUONE_DRIVER_TESTS=ON", f"-DPUONE_SANITIZE={sanitizer}"]
    # Kernels have tests of their own, through the backend and at every level.
    options += ["-DPUONE_KERNEL_LEVELS=baseline", "-DPUONE_KERNELS=basic"]
    configure = ["cmake", "-S", str(ROOT / "csrc" / "drivers"), "-B", str(folder), "-G", "Ninja"]
    for command in ([*configure, *options], ["cmake", "--build", str(folder), "--target", target]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return str(folder / folder_of / target)


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


@pytest.mark.parametrize("sanitizer", SANITIZERS, ids=lambda name: name or "plain")
def test_the_sim_driver_is_clean(sanitizer: str) -> None:
    output = run([build(sanitizer)], SANITIZERS[sanitizer])
    assert REPORTS.search(output) is None, output


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_the_sim_driver_is_clean_under_valgrind() -> None:
    # The process tests start this program again and fork while threads run: under valgrind the
    # children are valgrind's own processes, and lose the memory of the threads they do not have.
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--fair-sched=yes"]
    # It computes long doubles with 64 bits, and those of the random numbers' tests are the measure.
    skipped = ["--without", "test_process.cpp", "--without", "test_random.cpp"]
    tests = [build(""), *skipped]
    output = run([*command, *tests], {"PUONE_SIM_MEMORY": "256M"})
    assert "==" not in output, output


def test_a_planted_race_is_seen_by_the_thread_sanitizer() -> None:
    """Two streams that write one block without an event between them are a data race."""
    command = [build("thread"), "--child", "race"]
    environment = {**os.environ, **SANITIZERS["thread"]}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "ThreadSanitizer: data race" in done.stderr, done.stderr
