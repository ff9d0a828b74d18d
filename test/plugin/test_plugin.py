# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plugin: what it finds in the tests of a program, and what it leaves alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import runs
from runs import ROOT, Run

from pytest_puone.settings import Settings

PROGRAM = """
import os, time, warnings
import pytest, torch

# As many programs have it; it loads the driver while the tests are collected.
pytestmark = pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator")
COLLECTED_BY = os.getpid()
PLUGIN = pytest.mark.puone

def race():
    x = torch.zeros(1024, device="puone")
    torch.puone.synchronize()
    x.fill_(2)
    with torch.Stream("puone"):
        x.sum()

@PLUGIN(schedules=1)
def test_race():
    race()

@PLUGIN(sanitize=False)
def test_race_that_nobody_looks_for():
    race()

@pytest.fixture
def untidy():
    yield
    race()

@PLUGIN
def test_race_of_a_fixture(untidy):
    pass

@PLUGIN(schedules=2)
def test_ordered():
    x = torch.zeros(1024, device="puone").fill_(2)
    stream = torch.Stream("puone")
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        x.sum()

@PLUGIN
def test_late_error(puone_faults):
    x = torch.ones(3, device="puone")
    puone_faults.kernel_error_at(1)
    x + 1  # this line

@PLUGIN
def test_its_own_error_with_a_race():
    race()
    assert [1, 2] == [1, 3]

def test_handled_fault(puone_faults, puone_device):
    x = torch.ones(3, device=puone_device)
    with puone_faults.inject(kernel_error_at=1):
        y = x + 1
        with pytest.raises(torch.AcceleratorError):
            y.cpu()
    puone_faults.device_lost(1)
    with pytest.raises(torch.AcceleratorError):
        torch.ones(1, device="puone:1")

@PLUGIN(fallback="forbid")
def test_forbidden_fallback():
    torch.linalg.svd(torch.rand(2, 2, device="puone"))

def test_counted_fallback(puone_fallbacks):
    x = torch.rand(2, 2, device="puone")
    assert puone_fallbacks() == {}
    torch.linalg.svd(x)
    assert list(puone_fallbacks().values()) == [1]

@PLUGIN(devices=5, memory="8M", poison=True, latency_us=20_000)
def test_options():
    assert torch.accelerator.device_count() == 5
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 24, dtype=torch.uint8, device="puone:4")
    begin = time.perf_counter()
    torch.zeros(1, device="puone").item()
    assert time.perf_counter() - begin > 0.02

def test_in_the_process_of_pytest():
    assert os.getpid() == COLLECTED_BY
    assert torch.ones(3, device="puone").sum().item() == 3

@PLUGIN
def test_after_it_in_another_process(tmp_path):
    assert os.getpid() != COLLECTED_BY
    assert torch.ones(3, device="puone").sum().item() == 3
    (tmp_path / "file").write_text("written")
    warnings.warn("seen by the parent")

@PLUGIN
def test_crash():
    print("before the crash")
    import ctypes
    ctypes.string_at(torch.ones(3, device="puone").data_ptr(), 4)

@PLUGIN
def test_exit():
    os._exit(7)

@PLUGIN(timeout=0.5)
def test_hang():
    time.sleep(300)

@PLUGIN
@pytest.mark.xfail(strict=True)
def test_expected_race():
    race()

@PLUGIN
def test_skip():
    pytest.skip("for a reason")

@PLUGIN(memory="much")
def test_wrong_option():
    pass
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of all of the program's tests."""
    file = tmp_path_factory.mktemp("program") / "test_program.py"
    file.write_text(PROGRAM)
    return runs.run(file)


def test_a_race_fails_the_test_under_every_schedule_with_kernels_streams_and_lines(
    program: Run,
) -> None:
    assert set(program.outcomes("test_race")) == {"ordinary", "schedule0"}
    assert set(program.outcomes("test_race").values()) == {"failed"}
    text = program.tests["test_race[schedule0]"].text
    assert "write of out by kernel fill (aten::fill_) on the default stream of puone:0" in text
    assert re.search(r"read of in by kernel sum \(aten::sum\) on stream \d+ of puone:0", text)
    line = PROGRAM[: PROGRAM.index("    x.fill_(2)")].count("\n") + 1
    assert f'test_program.py", line {line}, in race' in text
    assert "wait_stream()" in text
    assert "/_pytest/" not in text and "pytest_puone" not in text


def test_a_program_that_orders_its_streams_passes_under_every_schedule(program: Run) -> None:
    outcomes = program.outcomes("test_ordered")
    assert outcomes == dict.fromkeys(["ordinary", "schedule0", "schedule1"], "passed")


def test_the_sanitizer_can_be_left_out(program: Run) -> None:
    assert program.tests["test_race_that_nobody_looks_for"].outcome == "passed"


def test_a_race_of_a_fixture_is_an_error_of_its_end(program: Run) -> None:
    test = program.tests["test_race_of_a_fixture"]
    assert test.outcome == "error" and "in untidy" in test.text


def test_an_expected_race_is_an_expected_failure(program: Run) -> None:
    assert program.tests["test_expected_race"].outcome == "skipped"  # as junit calls it


def test_a_test_that_fails_itself_has_the_finding_beside_its_own_error(program: Run) -> None:
    test = program.tests["test_its_own_error_with_a_race"]
    assert test.outcome == "failed" and "At index 1 diff: 2 != 3" in test.text
    assert "nothing orders these accesses" in program.output.split("puone call")[1]


def test_an_error_that_arrives_late_fails_its_own_test_with_the_line(program: Run) -> None:
    test = program.tests["test_late_error"]
    assert test.outcome == "failed" and "kernel add failed on puone:0" in test.text
    line = PROGRAM[: PROGRAM.index("# this line")].count("\n") + 1
    assert f'test_program.py", line {line}, in test_late_error' in test.text


def test_faults_are_injected_and_cleared(program: Run) -> None:
    assert program.tests["test_handled_fault"].outcome == "passed"


def test_a_forbidden_fallback_names_the_operators(program: Run) -> None:
    test = program.tests["test_forbidden_fallback"]
    assert test.outcome == "failed" and "aten::_linalg_svd" in test.text


@pytest.mark.parametrize(
    "name",
    [
        "test_counted_fallback",
        "test_options",
        "test_in_the_process_of_pytest",
        "test_after_it_in_another_process",
    ],
)
def test_a_test_with_what_it_asks_for_passes(program: Run, name: str) -> None:
    assert program.tests[name].outcome == "passed", program.tests[name].text


def test_a_crash_fails_only_its_own_test_and_keeps_its_output(program: Run) -> None:
    text = program.tests["test_crash"].text
    assert "killed by SIGSEGV" in text
    assert "before the crash" in program.output
    assert "host dereferenced device memory" in program.output
    assert "ended with status 7" in program.tests["test_exit"].text


def test_a_test_that_hangs_is_killed_and_shows_where(program: Run) -> None:
    assert "killed after 0.5 seconds" in program.tests["test_hang"].text
    line = PROGRAM[: PROGRAM.index("    time.sleep(300)")].count("\n") + 1
    assert f'test_program.py", line {line} in test_hang' in program.output


def test_the_parent_has_skips_and_warnings(program: Run) -> None:
    assert program.tests["test_skip"].outcome == "skipped"
    assert "UserWarning: seen by the parent" in program.output


def test_an_option_that_the_driver_refuses_fails_with_its_text(program: Run) -> None:
    test = program.tests["test_wrong_option"]
    assert test.outcome == "error" and "PUONE_SIM_MEMORY" in test.text


def test_an_option_runs_more_schedules_and_a_schedule_runs_alone(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("import pytest\n@pytest.mark.puone\ndef test_it(): pass\n")
    done = runs.run(file, "--puone-schedules=9", "-k", "schedule8 or ordinary")
    assert done.outcomes("test_it") == {"ordinary": "passed", "schedule8": "passed"}


def test_tests_that_use_the_device_when_they_are_collected_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        "import pytest, torch\nX = torch.ones(1, device='puone')\n"
        "@pytest.mark.puone\ndef test_it(): pass\n"
    )
    done = runs.run(file)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "puone was used while the tests were collected" in done.output


@pytest.mark.nightly
def test_a_unittest_has_no_schedules(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        "import pytest, unittest\n@pytest.mark.puone(schedules=1)\n"
        "class TestIt(unittest.TestCase):\n    def test_it(self): pass\n"
    )
    done = runs.run(file)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "a unittest.TestCase has no schedules" in done.output


def test_a_keyword_that_does_not_exist_is_an_error_with_those_that_do(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("import pytest\n@pytest.mark.puone(seeds=1)\ndef test_it(): pass\n")
    done = runs.run(file)
    assert done.status != 0
    assert "the marker puone has no keyword seeds; it has schedules, sanitize" in done.output


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"fallback": "no"}, "fallback must be 'allow' or 'forbid', not 'no'"),
        ({"devices": 0}, "devices must be a whole number from 1 to 64"),
        ({"schedules": 1.5}, "schedules must be a number of 0 or more"),
        ({"timeout": -1}, "timeout must be a number of 0 or more"),
    ],
)
def test_a_value_that_means_nothing_is_an_error(keywords: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Settings(**keywords)  # type: ignore[arg-type]


def test_a_run_without_such_tests_imports_neither_torch_nor_the_rest_of_the_plugin(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_it():\n"
        "    names = {n for n in sys.modules if n.partition('.')[0] in ('torch', 'torch_puone')}\n"
        "    assert not names and 'pytest_puone.running' not in sys.modules\n"
    )
    done = runs.run(tmp_path / "test_it.py", environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.status == 0, done.output


def test_pytest_finds_the_plugin_where_it_is_installed() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\npytest_puone = "pytest_puone"\n' in project
    assert '"reference_backend/pytest_puone",' in project


@pytest.mark.nightly
def test_it_runs_under_xdist(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        "import pytest, torch, warnings\n"
        "@pytest.mark.puone(schedules=2)\n"
        "def test_it():\n"
        "    warnings.warn('of a child')\n"
        "    assert torch.ones(2, device='puone').sum().item() == 2\n"
    )
    done = runs.run(file, "-n", "1")
    assert set(done.outcomes("test_it").values()) == {"passed"}, done.output
    assert "UserWarning: of a child" in done.output


@pytest.mark.nightly
def test_the_race_of_the_example_is_found_and_its_twin_passes(tmp_path: Path) -> None:
    for file in (ROOT / "examples" / "testing").glob("*.py"):
        os.symlink(file, tmp_path / file.name)
    done = runs.run(tmp_path, "--puone-schedules=1")
    outcomes = done.outcomes("test_the_mean_is_that_of_all_batches")
    assert {outcome for name, outcome in outcomes.items() if "right" in name} == {"passed"}
    assert {outcome for name, outcome in outcomes.items() if "racy" in name} == {"failed"}
    report = done.output
    assert "nothing orders these accesses to the same memory" in report
    assert "memory is reused while it is in use" in report
    assert "wait_stream()" in report and "record_stream()" in report


def test_the_example_runs_in_a_clone_that_is_not_built(tmp_path: Path) -> None:
    """With the package that is installed: that of the clone around it has no extension."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "examples/testing", tmp_path / "examples/testing")
    package = tmp_path / "reference_backend/torch_puone/__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("raise ImportError('not built')\n")
    command = [sys.executable, "-m", "pytest", "examples/testing", "--puone-schedules=0", "-k"]
    done = subprocess.run(
        [*command, "right", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
