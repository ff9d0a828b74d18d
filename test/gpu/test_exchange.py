# SPDX-License-Identifier: BSD-3-Clause
"""The exchange with torch.cuda, rehearsed: on a driver that shares its memory, with itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from suites import ROOT, STANDIN, needs_standin, odd

from bench.gpu.steps.exchange import ABSENT


def exchange(peer: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program that `make gpu` runs."""
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu.exchange", "--peer", peer, *options],
        cwd=ROOT,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_driver_that_shares_its_memory_exchanges_everything() -> None:
    done = exchange("puone", **odd("native_runtime"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(done.stdout.splitlines()[-1]).values()) == {"good"}


@needs_standin
def test_the_cuda_driver_exchanges_everything_over_the_stand_in() -> None:
    done = exchange("puone", PUONE_DRIVER=str(STANDIN))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(done.stdout.splitlines()[-1]).values()) == {"good"}


def test_what_is_wrong_is_named() -> None:
    done = exchange(
        "puone",
        "--delay=3000",  # whoever does not wait comes first, however busy this machine is
        **odd("forgetful_runtime"),
    )
    assert done.returncode == 1
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name for name, verdict in found.items() if verdict != "good"} == {
        "they_wait_for_us",
        "we_wait_for_them",
    }


def test_without_a_peer_nothing_is_exchanged() -> None:
    done = exchange("puone", PUONE_DRIVER="sim")
    assert (done.returncode, "driver sim does not support it" in done.stdout) == (ABSENT, True)
    done = exchange("cuda", PUONE_DRIVER="sim")
    assert (done.returncode, done.stdout) == (ABSENT, "torch.cuda is not available\n")
