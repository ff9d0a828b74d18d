# SPDX-License-Identifier: BSD-3-Clause
"""The suite runs on backends nobody has seen, and tells what it found, whatever they do."""

from __future__ import annotations

from pathlib import Path

import harness
import pytest

from torch_conformance.spec import descriptor

FOREIGN = harness.HERE / "foreign"


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """All strange checks in two workers."""
    folder = tmp_path_factory.mktemp("foreign")
    return harness.run(folder, FOREIGN, "--backend=cpu", "--workers=2", "--rerun-limit=0")


def test_odd_exceptions_are_errors_of_their_checks(strange: harness.Run) -> None:
    found = {id: o for id, o in strange.outcomes.items() if id.startswith("foreign/raises")}
    assert set(found.values()) == {"error"}
    assert len(found) == 11
    assert strange.report["complete"] is True


def test_odd_messages_are_told_as_far_as_they_can_be(strange: harness.Run) -> None:
    def message(case: str) -> str:
        return str(strange.check(f"foreign/raises:{case}")["message"])

    assert message("silent") == "Silent: (message cannot be printed)"
    assert message("deadly") == "Deadly: (message cannot be printed)"
    assert message("base") == "Base: lost its way"
    assert message("exit") == "SystemExit: 0"
    assert "温度" in message("unicode")
    assert r"\udcff" in message("surrogate")


def test_the_junit_file_can_be_read_whatever_was_raised(strange: harness.Run) -> None:
    names = {case.get("name") for case in strange.junit.iter("testcase")}
    assert set(strange.outcomes) <= names


def test_floods_and_processes_left_behind_harm_nobody(strange: harness.Run) -> None:
    quiet = {
        id: outcome
        for id, outcome in strange.outcomes.items()
        if id.startswith(("foreign/floods", "foreign/leaves", "foreign/last"))
    }
    assert set(quiet.values()) == {"pass"}
    assert len(quiet) == 11
    assert strange.check("foreign/output_closed")["message"] == "RuntimeError: after closing"


@pytest.mark.parametrize(
    ("keys", "outcomes"),
    [
        ("device: {setup: 'strange_backend:replaces_streams'}", {"pass"}),
        pytest.param(
            "device: {setup: 'strange_backend:hangs_at_exit'}\ndeadlines: {startup: 20}",
            {"pass"},
            marks=pytest.mark.nightly,  # it waits for its deadline
        ),
        ("device: {setup: 'strange_backend:closes_output'}", {"pass"}),
        ("module: strange_backend.Lazy", {"pass"}),
        ("fallback_counts: strange_backend.fallbacks", {"error"}),
        ("capabilities: {accelerator: true, streams: true, multi_device: true}", {"pass"}),
    ],
    ids=["streams", "exit", "output", "getattr", "counter", "claims"],
)
def test_a_strange_start_is_no_reason_not_to_test(
    tmp_path: Path, keys: str, outcomes: set[str]
) -> None:
    option = harness.descriptor(tmp_path, f"device_type: cpu\n{keys}\n")
    run = harness.run(tmp_path, FOREIGN, option, "--check=foreign/last*", "--workers=1")
    assert set(run.outcomes.values()) == outcomes, run.text
    assert run.report["complete"] is True


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("device: {setup: 'strange_backend:not_a_device'}", "AttributeError"),
        ("device: {setup: 'strange_backend:ends_quietly'}", "exited with status 0 while loading"),
        ("device: {setup: 'strange_backend:absent'}", "AttributeError"),
        ("import: {before_torch: [no_such_sdk]}", "No module named 'no_such_sdk'"),
    ],
    ids=["no_device", "exit", "no_setup", "no_sdk"],
)
def test_a_start_that_fails_is_told_in_one_line(tmp_path: Path, keys: str, reason: str) -> None:
    option = harness.descriptor(tmp_path, f"device_type: cpu\n{keys}\n")
    run = harness.run(tmp_path, FOREIGN, option, "--check=foreign/last*")
    assert run.code == 66
    assert reason in run.report["run"]["cannot_load"]
    assert "\n" not in run.report["run"]["cannot_load"]


def test_a_backend_without_a_device_says_why(tmp_path: Path) -> None:
    option = harness.descriptor(
        tmp_path,
        "device_type: puone\nimport: {after_torch: [torch_puone]}\nenv: {PUONE_SIM_ISA: newest}\n",
    )
    run = harness.run(tmp_path, FOREIGN, option, "--check=foreign/last*")
    assert run.code == 66
    assert "there is no such device; it raises RuntimeError: " in run.report["run"]["cannot_load"]
    assert "PUONE_SIM_ISA=newest is not valid: " in run.report["run"]["cannot_load"]


@pytest.mark.parametrize("name", ["cuda", "mps", "hpu"])
def test_a_device_type_of_torch_without_a_device_is_refused_in_one_line(
    name: str, tmp_path: Path
) -> None:
    import torch

    module = getattr(torch, name, None)
    if module is not None and module.is_available():
        pytest.skip(f"this machine has {name}")
    run = harness.run(tmp_path, FOREIGN, f"--backend={name}", "--check=foreign/last*")
    assert run.code == 66
    assert [line for line in run.text.splitlines() if "cannot be loaded: " in line]
    assert run.report["checks"] == []


def test_a_device_without_values_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text("description: x\ndevice_type: meta\n")
    with pytest.raises(descriptor.DescriptorError, match=r"nothing.yaml:2: .*holds no values"):
        descriptor.load(file)
    with pytest.raises(descriptor.DescriptorError, match="holds no values"):
        descriptor.find("meta")
