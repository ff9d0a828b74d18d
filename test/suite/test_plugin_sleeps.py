# SPDX-License-Identifier: BSD-3-Clause
"""Installed beside another project, the suite adds nothing to the runs of that project."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

# A project that has taken names of the suite's options, and counts what its runs import.
CONFTEST = """
import sys

def pytest_addoption(parser):
    for name in ("--backend", "--seed", "--list", "--driver", "--report"):
        parser.addoption(name, default="its own")
"""
TESTS = """
import sys

def test_options(pytestconfig):
    assert pytestconfig.getoption("--backend") == "its own"
    assert pytestconfig.getoption("--seed") == "4"
    assert not hasattr(pytestconfig.option, "checks_dir")

def test_markers(pytestconfig):
    assert not [m for m in pytestconfig.getini("markers") if m.startswith(("smoke", "must"))]

def test_imports():
    ours = ("torch_conformance", "hal_conformance")
    found = {name for name in sys.modules if name.partition(".")[0] in ours}
    assert found == {*ours, *(f"{name}.plugin" for name in ours)}
    assert "torch" not in sys.modules
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_project.py").write_text(TESTS)
    return tmp_path


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a directory, with the plugins that are installed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True)


def test_both_suites_are_installed_here() -> None:
    names = {point.name for point in entry_points(group="pytest11")}
    assert {"torch_conformance.plugin", "hal_conformance.plugin"} <= names


def test_a_project_with_options_of_the_same_names_runs(project: Path) -> None:
    done = run(project, "--seed", "4")
    assert done.returncode == 0, done.stdout + done.stderr


def test_keys_of_the_suite_in_an_ini_file_are_known_to_every_run(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nconformance_backend = mychip\n")
    done = run(project, "--seed", "4", "--strict-config")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_modules_that_it_does_import_import_nothing_more() -> None:
    """What such a run pays: two small modules of each suite; pytest has all else already."""
    code = """
import sys
import pytest
before = set(sys.modules)
import torch_conformance.plugin, hal_conformance.plugin
print(*sorted(name for name in set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "hal_conformance",
        "hal_conformance.plugin",
        "torch_conformance",
        "torch_conformance.plugin",
    ]


@pytest.mark.parametrize("name", ["torch_conformance", "conformance"])
def test_it_wakes_when_the_run_names_it(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, "--pyargs", name, "--backend=cpu", "--list", "--check=device/count:*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "device/count:" in done.stdout
    old = (
        "--pyargs conformance ends with version 0.3 of the suite: write --pyargs torch_conformance"
    )
    assert (old in done.stdout) == (name == "conformance")


def test_the_suite_of_drivers_wakes_when_the_run_names_it(tmp_path: Path) -> None:
    done = run(tmp_path, "--pyargs", "hal_conformance")
    assert "the HAL suite tests a driver library: give --driver=PATH" in done.stderr
