# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite, run as a driver author runs it: on sim in several guises, and on the template."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sanitizers import KERNELS, NOT_OFFERED, SANITIZED, build
from suites import CUDA, LIBRARIES, NO_GPU, ROOT, SIM, needs_cuda_driver, run_pytest

TEMPLATE = LIBRARIES / "libpuone_template.so"
HOST = LIBRARIES / "libpuone_host.so"


KNOWN_ANSWERS = "src/hal_conformance/test_known_answers.py"  # as pytest names it
ALL = 300  # fewer tests than this means that collection went wrong
ONE_DEVICE = {
    "not there: at least two devices",
    "not there: devices 0 and 1 reach each other's memory",
}
NO_DEVICE = {"not there: at least one device", *ONE_DEVICE}
# sim exchanges nothing between processes but memory.
NOT_SIMULATED = frozenset({'not there: the extension "collective"'})


def run_suite(
    driver: Path, folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The finished process, and by test "passed", "skipped: reason" or "failed: reason"."""
    report = folder / "hal.xml"
    arguments = ["hal_conformance", f"--driver={driver}", "--tb=short", f"--junitxml={report}"]
    # Of our own drivers more is asked. The stand-in may take a minute for a kernel.
    strict = ["--should=fail", "--driver-deadline=120"]
    # Each test has a deadline of its own; all kernels under sanitizers take more than an hour.
    done = run_pytest([*arguments, *strict, *options], environment, timeout=7200)
    return done, _verdicts(report) if report.exists() else {}


def _verdicts(junit: Path) -> dict[str, str]:
    words = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        bad = [
            f"{words[child.tag]}: {child.get('message')}" for child in case if child.tag in words
        ]
        found[f"{case.get('classname')}.{case.get('name')}"] = bad[0] if bad else "passed"
    return found


def verdicts_without_failure(
    driver: Path, folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The verdicts of a run of the whole suite in which nothing failed."""
    done, verdicts = run_suite(driver, folder, *options, environment=environment)
    assert done.returncode == 0, done.stdout
    assert len(verdicts) > ALL
    return verdicts


@dataclass(frozen=True)
class Guise:
    """How a driver is set up, and the only reasons for which its tests may be skipped then.

    The known answers take longer than all other tests, and kernels do not depend on the guise: they
    run in one of them.
    """

    environment: dict[str, str] = field(default_factory=dict)
    skips: frozenset[str] = NOT_SIMULATED
    known_answers: bool = False

    @property
    def options(self) -> list[str]:
        return [] if self.known_answers else [f"--deselect={KNOWN_ANSWERS}"]


GUISES = {
    "as_it_is": Guise(known_answers=True),
    # The suite fills devices to the brim, which takes long with poison: the devices are small.
    "adversarial": Guise(
        {"PUONE_SIM_SEED": "20", "PUONE_SIM_POISON": "1", "PUONE_SIM_MEMORY": "64M"}
    ),
    "one_device": Guise({"PUONE_SIM_DEVICES": "1"}, NOT_SIMULATED | ONE_DEVICE),
    "no_device": Guise({"PUONE_SIM_DEVICES": "0"}, NOT_SIMULATED | NO_DEVICE),
}


def assert_satisfied(driver: Path, guise: Guise, folder: Path) -> None:
    """Every test passes, or is skipped for a reason that the guise has."""
    environment = guise.environment
    ended = verdicts_without_failure(driver, folder, *guise.options, environment=environment)
    assert any("known_answers" in name for name in ended) == guise.known_answers
    verdicts = list(ended.values())
    if "LD_PRELOAD" in environment and KERNELS != "all":  # the sanitized build has few kernels
        verdicts = [verdict for verdict in verdicts if not NOT_OFFERED.fullmatch(verdict)]
    assert set(verdicts) <= {"passed", *(f"skipped: {why}" for why in guise.skips)}


@pytest.mark.parametrize(
    "guise",
    [
        pytest.param(guise, id=name, marks=[] if name == "as_it_is" else [pytest.mark.nightly])
        for name, guise in GUISES.items()
    ],
)
def test_sim_satisfies_every_requirement(guise: Guise, tmp_path: Path) -> None:
    assert_satisfied(SIM, guise, tmp_path)


@pytest.mark.nightly
def test_sim_is_clean_under_sanitizers(tmp_path: Path) -> None:
    """A finding ends the test's process, which the suite reports as a failure of that test."""
    library = Path(build("address,undefined")).parents[1] / "lib" / SIM.name
    assert_satisfied(library, Guise(SANITIZED, known_answers=True), tmp_path)


def test_template_satisfies_what_applies_to_it(tmp_path: Path) -> None:
    """A driver without any capability: nothing fails, and every skip says what is missing."""
    verdicts = list(verdicts_without_failure(TEMPLATE, tmp_path).values())
    assert verdicts.count("passed") > 15
    reasons = {verdict for verdict in verdicts if verdict != "passed"}
    assert all(reason.startswith("skipped: not ") for reason in reasons), reasons


def assert_host_satisfies(*options: str) -> None:
    """What applies to the driver over host memory passes, but that the host cannot read it."""
    arguments = ["hal_conformance", f"--driver={HOST}", "--tb=short", *options]
    done = run_pytest(arguments)
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 15


@pytest.mark.parametrize("module", ["event", "memory"])
def test_the_driver_over_host_memory_orders_its_work(module: str) -> None:
    assert_host_satisfies("-k", f"test_{module}.py")


@pytest.mark.nightly
def test_the_driver_over_host_memory_satisfies_what_applies_to_it() -> None:
    assert_host_satisfies()


@pytest.mark.nightly
@needs_cuda_driver
def test_cuda_without_a_gpu_satisfies_what_applies_to_it(tmp_path: Path) -> None:
    verdicts = list(verdicts_without_failure(CUDA, tmp_path, environment=NO_GPU).values())
    reasons = {verdict for verdict in verdicts if verdict != "passed"}
    expected = ("skipped: not there: ", "skipped: not declared: capability VALIDATION")
    assert all(reason.startswith(expected) for reason in reasons), reasons
    assert verdicts.count("passed") > 25


def test_several_drivers_can_be_tested_in_one_run(tmp_path: Path) -> None:
    _, verdicts = run_suite(SIM, tmp_path, f"--driver={TEMPLATE}", "--requirement=HAL-005")
    assert {verdict for name, verdict in verdicts.items() if "libpuone_sim" in name} == {"passed"}
    assert any("libpuone_template" in name for name in verdicts)


def test_no_torch_is_needed(tmp_path: Path) -> None:
    """An import of torch anywhere in the suite would raise here."""
    blocked = "import sys, pytest; sys.modules['torch'] = None; sys.exit(pytest.main())"
    arguments = ["hal_conformance", f"--driver={SIM}", "--requirement=HAL-001"]
    done = run_pytest(arguments, launcher=("-c", blocked))
    assert done.returncode == 0, done.stdout + done.stderr


# ---- what a driver may do to the suite ----

NAIVE = Path(__file__).with_name("naive_driver.c")


def compile_driver(source: Path, library: Path, *options: str) -> None:
    command = ["cc", "-shared", "-fPIC", f"-I{ROOT / 'csrc'}", *options]
    subprocess.run([*command, str(source), "-o", str(library), "-ldl"], check=True)


DRIVER = """
#include "hal/hal.h"
#include <stdlib.h>
#include <unistd.h>
puone_status puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  (void)abi_major;
  (void)out;
  %s
  return PUONE_INTERNAL;
}
"""
MISDEEDS = {
    "crash": ("*(volatile int*)0 = 1;", "failed: crash: SIGSEGV"),
    "abort": ("abort();", "failed: crash: SIGABRT"),
    "exit": ("_exit(0);", "failed: exit status 0, before the test had a result"),
    "hang": ("for (;;) pause();", "failed: timeout: no end within 2 s"),
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_bad_driver_spoils_only_its_own_tests(misdeed: str, tmp_path: Path) -> None:
    deed, verdict = MISDEEDS[misdeed]
    source, library = tmp_path / "bad.c", tmp_path / "libbad.so"
    source.write_text(DRIVER % deed)
    compile_driver(source, library)
    options = (f"--driver={SIM}", "--requirement=HAL-003", "--driver-deadline=2")
    done, verdicts = run_suite(library, tmp_path, *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert {name.split("[")[1]: verdict for name, verdict in verdicts.items()} == {
        "libbad]": verdict,
        "libpuone_sim]": "passed",
    }


@pytest.fixture(scope="module")
def naive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that runs host functions on the calling thread."""
    library = tmp_path_factory.mktemp("naive") / "libnaive.so"
    compile_driver(NAIVE, library, f'-DTARGET="{SIM}"', "-DRUNS_AT_ONCE")
    return library


def test_a_driver_that_does_not_queue_fails_at_once_where_work_must_be_pending(
    naive: Path, tmp_path: Path
) -> None:
    ids = ("HAL-026", "HAL-081", "HAL-082", "HAL-084", "HAL-086", "HAL-089", "HAL-103")
    done, verdicts = run_suite(naive, tmp_path, *(f"--requirement={id}" for id in ids))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert not [verdict for verdict in verdicts.values() if "timeout" in verdict]
    at_once = [v for v in verdicts.values() if "fix HAL-089 first" in v]
    assert len(at_once) >= 10
    assert "libnaive fails tests of 7 must-level requirements" in done.stdout
    cause = "the driver runs work on the calling thread: fix HAL-089 first"
    assert f"{len(at_once):>5}  " in done.stdout.partition("causes of failure")[2]
    assert cause in done.stdout.partition("causes of failure")[2]
    assert "host functions run on the calling thread" in done.stdout


# ---- tests that share a process ----

COPIES = "--requirement=HAL-060"


def few_inits(folder: Path, number: int, *options: str) -> tuple[Path, Path]:
    """A driver that a process may initialise `number` times; the file that names the processes."""
    library, log = folder / "libfew.so", folder / "processes"
    given = [f'-DTARGET="{SIM}"', f"-DINITS={number}", f'-DLOG="{log}"']
    compile_driver(NAIVE, library, *given, *options)
    return library, log


def test_tests_share_a_process_as_long_as_they_pass(tmp_path: Path) -> None:
    library, log = few_inits(tmp_path, 1000)
    _, verdicts = run_suite(library, tmp_path, COPIES, "--share-process")
    assert len(verdicts) > 3 and set(verdicts.values()) == {"passed"}
    processes = log.read_text().split()
    assert len(processes) > 3
    assert len(set(processes)) <= 2  # and the one that finds out whether the driver queues work


@pytest.mark.parametrize("options", [(), ("-DHANGS",)], ids=["dies", "hangs"])
def test_one_that_does_not_pass_in_a_shared_process_is_judged_alone(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    library, log = few_inits(tmp_path, 3, *options)
    _, verdicts = run_suite(library, tmp_path, COPIES, "--share-process", "--driver-deadline=1")
    assert len(verdicts) > 3 and set(verdicts.values()) == {"passed"}
    assert len(set(log.read_text().split())) > 2


def test_a_shared_process_excuses_nothing(naive: Path, tmp_path: Path) -> None:
    ids = [f"--requirement={id}" for id in ("HAL-026", "HAL-081", "HAL-082", "HAL-089", "HAL-060")]
    apart, shared = (
        {name: re.sub(r"\d+", "N", verdict) for name, verdict in verdicts.items()}
        for _, verdicts in (
            run_suite(naive, tmp_path, *ids, *how) for how in ((), ("--share-process",))
        )
    )
    assert apart == shared
    assert {verdict.split(":")[0] for verdict in apart.values()} == {"passed", "failed"}


@pytest.mark.parametrize(("option", "code"), [("warn", 0), ("fail", 1)])
def test_should_level_requirements_are_red_only_on_request(
    tmp_path: Path, option: str, code: int
) -> None:
    """A driver whose device memory the host can access."""
    library = tmp_path / "libopen.so"
    compile_driver(NAIVE, library, f'-DTARGET="{SIM}"', "-DOPEN_MEMORY")
    options = ("--requirement=HAL-047", f"--should={option}", "-rx")
    done, _ = run_suite(library, tmp_path, *options)
    assert done.returncode == code, done.stdout
    assert "libopen fails tests of 1 should-level requirements" in done.stdout


def test_a_library_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    done, _ = run_suite(tmp_path / "libnothing.so", tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no such file" in done.stderr


def test_an_unknown_requirement_is_a_usage_error(tmp_path: Path) -> None:
    done, _ = run_suite(SIM, tmp_path, "--requirement=HAL-999")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "HAL-999" in done.stderr


def test_without_a_driver_the_suite_says_what_to_give() -> None:
    done = run_pytest(["hal_conformance"])
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--driver=PATH" in done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment in which another copy of the suite than the checkout's is installed."""
    site = tmp_path / "site"
    source = ROOT / "hal_conformance" / "src" / "hal_conformance"
    shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return {"PYTHONPATH": str(site)}


def test_an_installed_suite_runs_by_its_name(installed: dict[str, str]) -> None:
    arguments = ["--pyargs", "hal_conformance", f"--driver={SIM}", "--requirement=HAL-001"]
    done = run_pytest(arguments, installed)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_checkout_beside_an_installed_suite_says_which_to_run(installed: dict[str, str]) -> None:
    done = run_pytest(["hal_conformance", f"--driver={SIM}"], installed)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "run that one with `pytest --pyargs hal_conformance --driver=PATH`" in done.stderr


def test_a_run_over_a_backend_leaves_the_hal_suite_alone() -> None:
    done = run_pytest(["conformance", "--backend=cpu", "--check=device/count:*", "--collect-only"])
    assert done.returncode == 0, done.stdout
    assert "hal_conformance" not in done.stdout
