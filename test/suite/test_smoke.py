# SPDX-License-Identifier: BSD-3-Clause
"""The smoke tier is small, and its failures say which side is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.compare import DifferentError
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.discovery import CHAPTERS, import_checks
from torch_conformance.checks import smoke
from torch_conformance.spec import catalogue, descriptor

ROOT = Path(__file__).resolve().parents[2]


def test_about_fifteen_checks_are_the_whole_tier() -> None:
    requirements = catalogue.load()
    assert {r.surface for r in requirements.values() if r.tier == "smoke"} == {"smoke"}
    checks: list[Check] = import_checks(CHAPTERS / "smoke.py")
    assert 12 <= len(checks) <= 18
    for check in checks:
        assert any(requirements[id].tier == "smoke" for id in check.requirements)


@pytest.mark.parametrize("error", [AssertionError("2 is not 3"), RuntimeError("no such kernel")])
def test_a_failure_names_the_side_the_cause_and_what_to_do(error: Exception) -> None:
    @smoke.blames(smoke.BACKEND, "Do this.")
    def body(dev: Device) -> None:
        raise error

    dev = Device(descriptor.find("cpu"))
    with pytest.raises(Exception, match=f"^backend wrong: .*{error}\nDo this.$") as raised:
        body(dev)
    assert isinstance(raised.value, AssertionError) == isinstance(error, AssertionError)
    assert dev.facts == {"blames": "backend"}


def test_a_failure_by_a_comparison_still_says_in_what_the_values_differ() -> None:
    @smoke.blames(smoke.BACKEND, "Do this.")
    def body(dev: Device) -> None:
        dev.assert_equal([1.0, 2.0], [1.0, 3.0])

    with pytest.raises(DifferentError, match=r"^backend wrong: [\s\S]*\nDo this\.$") as raised:
        body(Device(descriptor.find("cpu")))
    assert raised.value.mismatch is not None


def test_a_name_that_the_descriptor_misspells_is_the_descriptors_fault(tmp_path: Path) -> None:
    (tmp_path / "typo.yaml").write_text(
        "device_type: cpu\ncapabilities: {accelerator: false}\ndriver: platform.platfrom\n"
    )
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "torch_conformance.plugin",
                "-p",
                "no:cacheprovider",
            ),
            *(
                "--pyargs",
                "torch_conformance",
                "--backend-file=typo.yaml",
                "--tier=smoke",
                "--next",
            ),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((tmp_path / "build" / "conformance" / "typo.smoke.json").read_text())
    bad = {check["id"] for check in report["checks"] if check["outcome"] in ("fail", "error")}
    assert bad == {"smoke/descriptor_names"}
    assert (
        "first  smoke/descriptor_names: descriptor wrong: driver: platform.platfrom" in done.stdout
    )
