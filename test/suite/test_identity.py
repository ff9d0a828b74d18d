# SPDX-License-Identifier: BSD-3-Clause
"""The report says what was tested: the driver behind the backend, and its devices."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nursery
import pytest
from harness import ROOT

CHECK = "device/count:*"


def run_of(tmp_path: Path, *options: str) -> dict[str, Any]:
    """The `run` part of the report of one small run."""
    file = tmp_path / "report.json"
    nursery.run_module(
        *("pytest", str(ROOT / "conformance"), f"--report={file}"),
        *("--check", CHECK, "-p", "no:cacheprovider", *options),
        cwd=tmp_path,
        env=os.environ,
        timeout=180,
    )
    run: dict[str, Any] = json.loads(file.read_text())["run"]
    return run


@pytest.mark.parametrize("options", [(), ("--isolate=none",), ("-n1",)], ids=" ".join)
def test_driver_and_devices_of_the_reference_backend_are_named(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    run = run_of(tmp_path, "--backend=puone", *options)
    assert run["driver"]["name"] == "sim"
    assert len(run["devices"]) == 2


def test_a_driver_that_cannot_be_told_is_an_error_in_the_report_and_not_of_the_run(
    tmp_path: Path,
) -> None:
    text = "device_type: puone\nimport: {after_torch: [torch_puone]}\ndriver: torch.nothing\n"
    (tmp_path / "vague.yaml").write_text(text)
    run = run_of(tmp_path, "--backend-file=vague.yaml")
    assert "nothing" in run["driver"]["error"]


def test_the_cpu_has_no_driver_and_one_device(tmp_path: Path) -> None:
    run = run_of(tmp_path, "--backend=cpu")
    assert run["driver"] is None
    assert len(run["devices"]) == 1
