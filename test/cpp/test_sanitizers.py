# SPDX-License-Identifier: BSD-3-Clause
"""The sim driver's C++ tests, plain, under the compiler's sanitizers and under valgrind."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from sanitizers import BUILDS, REPORTS, SANITIZERS, build, run


@pytest.mark.parametrize("sanitizer", BUILDS)
def test_the_sim_driver_is_clean(sanitizer: str) -> None:
    output = run([build(sanitizer)], SANITIZERS[sanitizer])
    assert REPORTS.search(output) is None, output


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_the_sim_driver_is_clean_under_valgrind() -> None:
    # The process tests start this program again and fork while threads run: under valgrind the
    # children are valgrind's own processes, and lose the memory of the threads they do not have.
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--fair-sched=yes"]
    # It computes long doubles with 64 bits, and those of the random numbers' tests are the measure.
    skipped = ["test_ipc.cpp", "test_process.cpp", "test_random.cpp"]
    tests = [build(""), *(word for file in skipped for word in ("--without", file))]
    output = run([*command, *tests], {"PUONE_SIM_MEMORY": "256M"})
    assert "==" not in output, output


@pytest.mark.nightly
def test_a_planted_race_is_seen_by_the_thread_sanitizer() -> None:
    """Two streams that write one block without an event between them are a data race."""
    command = [build("thread"), "--child", "race"]
    environment = {**os.environ, **SANITIZERS["thread"]}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "ThreadSanitizer: data race" in done.stderr, done.stderr
