# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite on the cuda driver's own host code, over the stand-in in several guises.

The driver checks no arguments: the suite runs on it as it is, and with the validation layer around
it, which the odd driver "validation" adds.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from sanitizers import SANITIZED, build
from suites import FAKE_NVRTC, ODD, OVER_FAKE_NCCL, SIM, STANDIN, needs_standin, odd
from test_hal_suite import NO_DEVICE, ONE_DEVICE, Guise, assert_satisfied, run_suite

from hal_conformance import contract
from hal_conformance.driver import Driver
from hal_conformance.process import run_in_child

pytestmark = needs_standin

# No fault can be injected into a real device, and it does not say which work an error came from.
# The driver does not share memory between processes yet.
# Collectives have a test of their own.
NOT_THERE = frozenset(
    f'not there: the extension "{name}"' for name in ("collective", "fault", "ipc", "origin")
)
UNVALIDATED = NOT_THERE | {"not declared: capability VALIDATION", *ONE_DEVICE}
NVRTC = {"PUONE_CUDA_NVRTC": str(FAKE_NVRTC)}
# The suite fills devices to the brim.
SMALL = {**NVRTC, "PUONE_STANDIN_MEMORY": "64", "PUONE_CUDA_NCCL": "none"}
ONE = {**SMALL, "PUONE_STANDIN_DEVICES": "1"}
THREE = {**SMALL, "PUONE_STANDIN_DEVICES": "3"}
GUISES = {
    "adversarial": Guise({**THREE, "PUONE_STANDIN_SEED": "20"}, NOT_THERE),
    "no_device": Guise({**SMALL, "PUONE_STANDIN_DEVICES": "0"}, NOT_THERE | NO_DEVICE),
}


def test_a_driver_on_a_shared_runtime_is_known() -> None:
    """The runtime may keep a thread then, which is not the driver's."""
    shared = [Driver(str(path)).is_on_shared_runtime() for path in (STANDIN, SIM)]
    assert shared == [True, False]


@pytest.mark.nightly
@pytest.mark.parametrize("guise", GUISES.values(), ids=list(GUISES))
def test_the_cuda_driver_satisfies_every_requirement(guise: Guise, tmp_path: Path) -> None:
    environment = {**guise.environment, **odd("validation", STANDIN)}
    assert_satisfied(ODD, replace(guise, environment=environment), tmp_path)


def test_the_cuda_driver_satisfies_them_without_validation(tmp_path: Path) -> None:
    assert_satisfied(STANDIN, Guise({**ONE, "PUONE_STANDIN_SEED": "21"}, UNVALIDATED), tmp_path)


@pytest.mark.nightly
def test_the_cuda_drivers_kernels_give_the_known_answers(tmp_path: Path) -> None:
    environment = {**ONE, "PUONE_STANDIN_UNGUARDED": "1"}  # the other tests see who touches what
    options = ("-k", "known_answers", "--share-process")
    done, verdicts = run_suite(STANDIN, tmp_path, *options, environment=environment)
    assert done.returncode == 0, done.stdout
    assert len(verdicts) == len(contract.kernels()) and set(verdicts.values()) == {"passed"}


@pytest.mark.nightly
@pytest.mark.parametrize("is_validated", [False, True])
def test_the_cuda_drivers_collectives_satisfy_every_requirement(
    is_validated: bool, tmp_path: Path
) -> None:
    """Over the stand-in for NCCL."""
    driver = odd("validation", STANDIN) if is_validated else {}
    options = [f"--requirement=HAL-{number}" for number in range(190, 195)]
    done, verdicts = run_suite(
        ODD if is_validated else STANDIN,
        tmp_path,
        *options,
        environment={**THREE, **OVER_FAKE_NCCL, **driver},
    )
    assert done.returncode == 0, done.stdout
    assert set(verdicts.values()) == {"passed"}


WATCH_FORKS = """
#include <pthread.h>
int forks = 0;
static void before(void) { ++forks; }
void watch(void) { pthread_atfork(before, 0, 0); }
"""


def test_devices_are_counted_without_a_fork(tmp_path: Path) -> None:
    """Another thread may hold a lock that a forked child would need; a new process has none."""
    source, library = tmp_path / "forks.c", tmp_path / "libforks.so"
    source.write_text(WATCH_FORKS)
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)

    def count() -> bytes:
        watcher = ctypes.CDLL(str(library))
        watcher.watch()
        hal = Driver(STANDIN)
        hal.ok(hal.api.init())
        devices = hal.count()
        forks = ctypes.c_int.in_dll(watcher, "forks").value
        return f"{devices} devices, {forks} forks".encode()

    ending = run_in_child(count, 30)
    assert (str(ending), ending.payload) == ("exit status 0", b"2 devices, 0 forks")


@pytest.mark.nightly
def test_the_cuda_driver_is_clean_under_sanitizers(tmp_path: Path) -> None:
    """With one device. A finding ends the test's process: the suite books a failure."""
    built = Path(build("address,undefined", "lib", "puone_cuda_standin"))
    guise = Guise({**ONE, **SANITIZED}, UNVALIDATED, known_answers=True)
    assert_satisfied(built.parent / STANDIN.name, guise, tmp_path)
