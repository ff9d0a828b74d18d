# SPDX-License-Identifier: BSD-3-Clause
"""What ptx_coverage.py says of a run: a kernel that was never launched does not go unnoticed."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from ptx_coverage import never_launched, read
from ptx_executor import needs_ptx
from ptx_kernels import answers_of, in_child

SUMMARY = Path(__file__).with_name("ptx_coverage.py")
FIRST, SECOND = "_ZN5puone5firstEv", "_ZN5puone6secondEl"
CODE = ".visible .entry {}()\n{{\nret;\n}}\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What a run leaves that launched the first of two kernels in two modules."""
    for module, name in (("a", FIRST), ("b", SECOND)):
        (tmp_path / f"{module}.ptx").write_text(CODE.format(name))
    (tmp_path / "a.1.1.entries").write_text(f"{FIRST}\n")
    (tmp_path / "kernels").write_text(f"{FIRST}\n{SECOND}\n")
    return tmp_path


def summary(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SUMMARY), str(directory), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_kernel_that_was_never_launched_is_named(directory: Path) -> None:
    done = summary(directory, "--all-entries")
    assert done.returncode == 1
    assert done.stderr == "never launched: puone::second(long)\n"
    assert "entries of kernels: 1 of 2 ran" in done.stdout


def test_a_kernel_of_a_module_that_nothing_loaded_counts(directory: Path) -> None:
    (directory / "b.ptx").unlink()
    done = summary(directory, "--all-entries")
    assert done.returncode == 1
    assert done.stderr == "never launched: puone::second(long)\n"
    assert "entries of kernels: 1 of 2 ran" in done.stdout


def test_each_module_has_its_own_kernels(directory: Path) -> None:
    """The same name in another module is other code."""
    (directory / "b.ptx").write_text(CODE.format(FIRST))
    (directory / "kernels").write_text(f"{FIRST}\n")
    assert summary(directory, "--all-entries").stderr == "never launched: puone::first()\n"


def test_a_whole_run_passes(directory: Path) -> None:
    (directory / "b.2.1.entries").write_text(f"{SECOND}\n")
    assert summary(directory, "--all-entries").returncode == 0


def test_part_of_a_run_may_leave_kernels_out(directory: Path) -> None:
    done = summary(directory)
    assert done.returncode == 0 and done.stderr == ""


def test_nothing_is_not_everything(tmp_path: Path) -> None:
    assert summary(tmp_path, "--all-entries").returncode == 1


@needs_ptx
def test_the_driver_names_its_kernels(tmp_path: Path) -> None:
    taken, wrong = in_child(
        partial(answers_of, "fill"), environment={"PUONE_PTX_COVERAGE": str(tmp_path)}
    )
    assert taken and not wrong
    modules = read(tmp_path)
    launched = {name for module in modules.values() for name in module.launched}
    left = never_launched(modules)
    assert launched and len(left) > 1000 and launched.isdisjoint(left)
    assert any("softmax" in name for name in left)
