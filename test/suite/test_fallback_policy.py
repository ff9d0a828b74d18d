# SPDX-License-Identifier: BSD-3-Clause
"""What --fallback makes of operators that a backend ran on the CPU."""

from __future__ import annotations

from pathlib import Path

import harness
import pytest

COUNTING = (
    "device_type: cpu\n"
    "fallback_counts: counting_device.counts\nfallback_reset: counting_device.reset\n"
)


def run(tmp_path: Path, *options: str, text: str = COUNTING) -> harness.Run:
    """Run the checks that fall back against a backend that counts."""
    return harness.run(tmp_path, harness.RELIANT, harness.descriptor(tmp_path, text), *options)


def test_fallbacks_are_noted_with_the_check_that_caused_them(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert found.check("reliant/fallback")["outcome"] == "pass"
    assert found.check("reliant/fallback")["fallbacks"] == ["aten::cosh", "aten::sinh"]
    assert found.check("reliant/forgets")["fallbacks"] == ["aten::sinh"]
    assert "fallbacks" not in found.check("reliant/native")
    assert found.report["run"]["options"]["fallback"] == "allow"
    assert "aten::cosh" not in found.text


def test_a_warning_lists_the_operators_by_the_checks_that_used_them(tmp_path: Path) -> None:
    found = run(tmp_path, "--fallback=warn")
    lines = [line.split() for line in found.text.splitlines() if "aten::" in line]
    assert lines == [
        ["3", "aten::sinh", "reliant/fallback"],
        ["1", "aten::cosh", "reliant/fallback"],
    ]
    assert found.outcomes["reliant/fallback"] == "pass"


@pytest.mark.parametrize("isolation", ["chunk", "none"])
def test_a_forbidden_fallback_turns_a_pass_into_a_fail(tmp_path: Path, isolation: str) -> None:
    found = run(tmp_path, "--fallback=forbid", f"--isolate={isolation}")
    assert found.code == 1
    assert found.outcomes == {
        "reliant/native": "pass",
        "reliant/fallback": "fail",
        "reliant/forgets": "fail",
        "reliant/wrong": "fail",
    }
    message = found.check("reliant/fallback")["message"]
    assert message == "ran by CPU fallback: aten::cosh, aten::sinh"
    assert found.check("reliant/wrong")["message"] == "wrong in another way"
    assert "--fallback=forbid" in found.check("reliant/fallback")["repro"]


@pytest.mark.parametrize("policy", ["warn", "forbid"])
@pytest.mark.parametrize(
    "text", ["device_type: cpu\n", COUNTING + "capabilities: {fallback_counter: false}\n"]
)
def test_without_a_counter_nothing_is_judged(tmp_path: Path, policy: str, text: str) -> None:
    found = run(tmp_path, f"--fallback={policy}", text=text)
    assert found.code == 4
    assert f"--fallback={policy} needs capability 'fallback_counter'" in found.text
    assert "'fallback_counts'" in found.text
