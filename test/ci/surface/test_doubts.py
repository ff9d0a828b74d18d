# SPDX-License-Identifier: BSD-3-Clause
"""A finding that the compiler refutes is not a break; processes end with who waits for them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from processes import wait_until_gone

from torch_backend_ci.surface.check import opinion
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity
from torch_backend_ci.surface.probe import agreement

WAS = Declaration(Domain.CPP, "method", "c10::A::f", "allocator", "void f()", "x.h", 1)
FOUND = Finding(
    *(
        "virtual_removed",
        Severity.COMPILE_BREAK,
        "allocator",
        Domain.CPP,
        "c10::A::f",
        "It is gone.",
    ),
    before=WAS,
    after=None,
    concerns=("overriders",),
)


@pytest.mark.parametrize(
    ("probe", "rule", "severity"),
    [
        (agreement.DISAGREES, "virtual_removed", Severity.REBUILD),
        (agreement.AGREES, "virtual_removed", Severity.COMPILE_BREAK),
        (agreement.NOT_COVERED, "virtual_removed", Severity.COMPILE_BREAK),
        (agreement.DISAGREES, agreement.RULE, Severity.COMPILE_BREAK),
    ],
)
def test_the_severity_drops_where_the_compiler_disagrees(
    probe: str, rule: str, severity: Severity
) -> None:
    assert opinion._doubted(replace(FOUND, probe=probe, rule=rule)).severity is severity


PROGRAM = """
import sys, time
from pathlib import Path
from functools import partial
from torch_backend_ci.surface import snapshot

def work(file):
    Path(file).write_text(str(__import__("os").getpid()))
    time.sleep(600)

if __name__ == "__main__":
    list(snapshot.in_processes({"work": partial(work, sys.argv[1])}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's service is Linux's")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", tmp_path / "pid"
    program.write_text(PROGRAM)
    parent = subprocess.Popen([sys.executable, str(program), str(file)])
    try:
        worker = _eventually(lambda: int(file.read_text()) if file.is_file() else 0)
        parent.send_signal(signal.SIGTERM)
        parent.wait(60)
        assert wait_until_gone([worker]) == set()
    finally:
        parent.kill()


def _eventually(holds: object) -> int:
    assert callable(holds)
    for _ in range(1200):
        try:
            if value := holds():
                return int(value)
        except ValueError:  # the file is being written
            pass
        time.sleep(0.1)
    raise AssertionError("it never came to hold")
