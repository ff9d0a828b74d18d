# SPDX-License-Identifier: BSD-3-Clause
"""What the step that runs the suite asks for, and what it tells of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from made import a_run

from bench.gpu.command import Ended
from bench.gpu.run import Run
from bench.gpu.steps import conformance
from torch_conformance.pytest_plugin import closing

REPORT = {
    "complete": True,
    "totals": {"pass": 2, "fail": 1, "crash": 0},
    "run": {
        "driver": {"name": "cuda"},
        "capabilities": {
            "multi_device": {"value": False, "source": "probed"},
            "streams": {"value": True, "source": "declared"},
        },
    },
    "checks": [
        {"id": "stream/order:one", "outcome": "fail"},
        {"id": "stream/order:two", "outcome": "pass"},
    ],
}


def suite(
    monkeypatch: pytest.MonkeyPatch, code: int, report: dict[str, Any] | None, late: bool = False
) -> list[str]:
    """Let the suite end in this way; its command line, once it is run."""
    words: list[str] = []

    def python(self: Run, log: str, *arguments: str) -> Ended:
        words.extend(arguments)
        file = self.work / f"{log}.log"
        file.write_text("the end")
        if report:
            (self.work / f"{log}.json").write_text(json.dumps(report))
        return Ended(code, late, 60.0, file)

    monkeypatch.setattr(Run, "python", python)
    return words


def test_it_tells_what_was_counted_and_what_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(monkeypatch, 1, REPORT)
    outcome = conformance.core(a_run(tmp_path))
    assert str(outcome) == "failed: some checks failed: see conformance-core.json"
    assert outcome.data == {
        "complete": True,
        "outcomes": {"pass": 2, "fail": 1},
        "driver": "cuda",
        "probed": {"multi_device": "no"},
        "red": ["stream/order:one"],
    }


def test_a_run_that_is_cut_short_keeps_what_its_report_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(monkeypatch, 2, {**REPORT, "complete": False}, late=True)
    outcome = conformance.everything(a_run(tmp_path))
    assert outcome.status == "failed" and "no end within 60 s" in outcome.reason
    assert outcome.data["complete"] is False and outcome.data["red"] == ["stream/order:one"]


def test_every_exit_code_of_the_suite_has_a_meaning() -> None:
    ours = {closing.INCOMPLETE, closing.NOTHING_EXECUTED, closing.CANNOT_LOAD}
    of_pytest = set(pytest.ExitCode) - {pytest.ExitCode.OK}
    assert set(conformance.MEANING) == of_pytest | ours


def test_a_backend_that_cannot_be_loaded_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(monkeypatch, closing.CANNOT_LOAD, None)
    assert "the backend cannot be loaded" in conformance.core(a_run(tmp_path)).reason


def test_on_a_card_the_core_tier_comes_first_and_then_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = suite(monkeypatch, 0, REPORT)
    run = replace(a_run(tmp_path), rehearsal=False, cores=16)
    conformance.core(run)
    assert words[words.index("--tier") + 1] == "core"
    assert words[words.index("--workers") + 1] == "16"
    words.clear()
    conformance.everything(run)
    assert not {"--tier", "--check"} & set(words)


def test_what_depends_on_the_card_is_probed_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = suite(monkeypatch, 0, REPORT)
    conformance.core(a_run(tmp_path))
    (option,) = (word for word in words if word.startswith("--backend-file="))
    told = yaml.safe_load(Path(option.partition("=")[2]).read_text())
    ours = yaml.safe_load(
        (
            a_run(tmp_path).root / "conformance/src/torch_conformance/spec/backends/puone.yaml"
        ).read_text()
    )
    assert not set(conformance.PROBED) & set(told["capabilities"])
    assert set(ours["capabilities"]) - set(told["capabilities"]) == set(conformance.PROBED)
    assert "fault" not in told and told["module"] == ours["module"]
