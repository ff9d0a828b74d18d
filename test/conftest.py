# SPDX-License-Identifier: BSD-3-Clause
"""What the project's own tests share: fresh interpreters, and the places of things."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import nursery
import pytest
from interpreter import READ_AT_START, Python

from torch_conformance.pytest_plugin.garbage import not_collected

ROOT = Path(__file__).resolve().parents[1]

# The files whose tests take longest, longest first: each goes to one process, which must not begin
# with it when the others are about to end.
LONGEST = [
    "inductor/test_cases.py",
    "ptx/test_kernels.py",
    "ptx/test_far_addresses.py",
    "ptx/test_against_sim.py",
    "hal/test_hal_over_standin.py",
    "subjects/test_truth_tellers.py",
    "hal/test_hal_suite.py",
    "suite/test_isolation.py",
    "suite/test_bench.py",
    "liars/test_liars.py",
    "suite/test_options.py",
    "suite/test_foreign.py",
    "cpp/test_sanitizers.py",
    "reference_backend/test_compile.py",
    "suite/test_durations.py",
    "suite/test_pytest_options.py",
    "standin/test_standin.py",
    "suite/test_init.py",
    "suite/test_first_hour.py",
    "liars/test_standin_liars.py",
    "reference_backend/test_driver_choice.py",
    "suite/test_identity.py",
]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with not_collected():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of several, begin with the files that take longest."""
    if hasattr(config, "workerinput"):
        places = {ROOT / "test" / name: place for place, name in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


def _inherited() -> dict[str, str]:
    """What every program that a test starts inherits, and behaves by."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("PUONE_", "PYTHON"))
    }


BEFORE_IMPORTS = _inherited()


def pytest_collection_finish() -> None:
    """No module of tests changes the environment of the others by being imported."""
    if _inherited() != BEFORE_IMPORTS:
        changed = sorted({name for name, _ in _inherited().items() ^ BEFORE_IMPORTS.items()})
        raise pytest.UsageError(f"a module that was collected has changed {', '.join(changed)}")


@pytest.fixture(autouse=True)
def _keep_environment() -> Iterator[None]:
    before = _inherited()
    yield
    assert _inherited() == before


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is freed in the test, as that would move its counts of memory."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def python() -> Python:
    """Runs code in a process of its own. Backends are not autoloaded unless asked for."""

    def run(
        code: str,
        *,
        timeout: float = 60,
        fresh: bool = False,
        autoload: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        given = env or {}
        inherited = {key: value for key, value in os.environ.items() if key != "PUONE_DRIVER"}
        paths = [
            str(ROOT),
            str(ROOT / "reference_backend"),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
        environment = {
            **inherited,
            "PYTHONPATH": os.pathsep.join(paths),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if autoload else "0",
            **given,
        }
        if not (fresh or any(name.startswith(READ_AT_START) for name in given)):
            return nursery.run_code(code, cwd=Path.cwd(), env=environment, timeout=timeout)
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
