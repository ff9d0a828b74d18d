# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite run as a driver author runs it: on sim in several guises, and on the template."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hal_suite import SIM, TEMPLATE, run_suite

ALL = 300  # fewer tests than this means that collection went wrong
NO_DEVICE = "not there: at least one device"
ONE_DEVICE = {
    "not there: at least two devices",
    "not there: devices 0 and 1 reach each other's memory",
}


@dataclass(frozen=True)
class Guise:
    """A driver, how it is set up, and why tests may be skipped on it: for no other reason."""

    driver: Path
    environment: dict[str, str] = field(default_factory=dict)
    skips: frozenset[str] = frozenset()


GUISES = {
    "sim": Guise(SIM),
    "sim_adversarial": Guise(SIM, {"PUONE_SIM_SEED": "20", "PUONE_SIM_POISON": "1"}),
    "sim_one_device": Guise(SIM, {"PUONE_SIM_DEVICES": "1"}, frozenset(ONE_DEVICE)),
    "sim_no_device": Guise(SIM, {"PUONE_SIM_DEVICES": "0"}, frozenset({NO_DEVICE, *ONE_DEVICE})),
    "sim_small_memory": Guise(SIM, {"PUONE_SIM_MEMORY": "64M"}),
}


def outcomes(junit: Path) -> dict[str, str]:
    """Test name -> "passed", "failed: ..." or "skipped: ..."."""
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        verdict = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                verdict = f"failed: {child.get('message')}"
            elif child.tag == "skipped":
                verdict = f"skipped: {child.get('message')}"
        found[f"{case.get('classname')}.{case.get('name')}"] = verdict
    return found


@pytest.mark.parametrize("name", GUISES)
def test_sim_satisfies_every_requirement(name: str, tmp_path: Path) -> None:
    guise = GUISES[name]
    result = run_suite(guise.driver, tmp_path, guise.environment)
    assert result.returncode == 0, result.stdout
    found = outcomes(tmp_path / "hal.xml")
    assert len(found) > ALL
    skips = {verdict.removeprefix("skipped: ") for verdict in found.values() if verdict != "passed"}
    assert skips <= guise.skips


def test_template_satisfies_what_applies_to_it(tmp_path: Path) -> None:
    """A driver without any capability: nothing fails, and every skip says what is missing."""
    result = run_suite(TEMPLATE, tmp_path, {})
    assert result.returncode == 0, result.stdout
    found = outcomes(tmp_path / "hal.xml")
    passed = [name for name, verdict in found.items() if verdict == "passed"]
    assert len(found) > ALL
    assert len(passed) > 15
    for name, verdict in found.items():
        assert verdict == "passed" or verdict.startswith("skipped: not "), name


def test_several_drivers_can_be_tested_in_one_run(tmp_path: Path) -> None:
    selected = ("--requirement=HAL-005",)
    result = run_suite(SIM, tmp_path, {}, f"--driver={TEMPLATE}", *selected)
    assert result.returncode == 0, result.stdout
    names = list(outcomes(tmp_path / "hal.xml"))
    assert any("libpuone_sim" in name for name in names)
    assert any("libpuone_template" in name for name in names)


def test_a_library_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    result = run_suite(tmp_path / "libnothing.so", tmp_path, {})
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no such file" in result.stderr


def test_a_library_that_is_no_driver_fails_without_stopping_the_run(tmp_path: Path) -> None:
    library = tmp_path / "libjunk.so"
    library.write_bytes(b"junk")
    result = run_suite(library, tmp_path, {}, "--requirement=HAL-001", "--requirement=HAL-005")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "passed" not in result.stdout.splitlines()[-1]
