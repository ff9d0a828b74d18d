# SPDX-License-Identifier: BSD-3-Clause
"""Other plugins of pytest find in the reports of checks what they find in those of tests."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import pytest

# A plugin that keeps what every report has.
SPY = """
import json

def pytest_runtest_logreport(report):
    entry = {
        "id": report.nodeid.rpartition("::")[2],
        "when": report.when,
        "outcome": report.outcome,
        "keywords": list(report.keywords),
        "sections": report.sections,
        "properties": report.user_properties,
        "wasxfail": getattr(report, "wasxfail", None),
    }
    with open("reports.jsonl", "a") as file:
        print(json.dumps(entry), file=file)
"""
LISTED = """
xfail:
- {id: 'planted/wrong:first', reason: not yet, link: 'https://x', status: fail, expires: 2999-01-01}
"""
NAMES = ("wrong*", "segfault", "sys_exit", "lacking", "declines", "good:before_0")


@dataclass
class Spied:
    """A run, and the reports that a plugin saw."""

    run: harness.Run
    reports: list[dict[str, Any]]
    junit: ElementTree.Element

    def of(self, id: str, when: str = "call") -> dict[str, Any]:
        (found,) = (r for r in self.reports if r["id"] == f"planted/{id}" and r["when"] == when)
        return found


def spied(tmp_path: Path, *options: str) -> Spied:
    (tmp_path / "spy.py").write_text(SPY)
    (tmp_path / "expected.yaml").write_text(LISTED)
    run = harness.run(
        tmp_path,
        harness.PLANTED,
        *("-p", "spy", "--backend=cpu", "--workers=1", "--rerun-limit=0"),
        *("--expectations=expected.yaml", "--junitxml=pytest.xml", "-rA", "--show-capture=all"),
        *options,
    )
    lines = (tmp_path / "reports.jsonl").read_text().splitlines()
    junit = ElementTree.parse(tmp_path / "pytest.xml").getroot()
    return Spied(run, [json.loads(line) for line in lines], junit)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Spied:
    """A run in worker processes."""
    return spied(tmp_path_factory.mktemp("workers"), *(f"--check=planted/{n}" for n in NAMES))


def test_the_summary_lists_outcomes_under_the_categories_of_pytest(workers: Spied) -> None:
    text = workers.run.text
    assert re.search(r"^XFAIL torture\.py::cpu::planted/wrong:first - not yet", text, re.MULTILINE)
    assert re.search(r"^CRASH torture\.py::cpu::planted/segfault - SIGSEGV", text, re.MULTILINE)
    assert re.search(
        r"^FAIL torture\.py::cpu::planted/wrong:second - 1 of 3 elements", text, re.MULTILINE
    )
    assert re.search(r"^PASS torture\.py::cpu::planted/good", text, re.MULTILINE)
    reasons = re.findall(r"^SKIPPED \[1\] \S+torture\.py:\d+: (.*)", text, re.MULTILINE)
    assert sorted(reasons) == [
        "unsupported: for a reason",
        "unsupported: needs capability 'memory_limit'",
    ]
    assert re.search(r"3 failed, 1 passed, 2 skipped, 48 deselected, 1 xfailed", text)


def test_every_check_has_the_three_phases_of_a_test(workers: Spied) -> None:
    phases: dict[str, list[str]] = {}
    for report in workers.reports:
        phases.setdefault(report["id"], []).append(report["when"])
    assert set(map(tuple, phases.values())) == {("setup", "call", "teardown")}
    assert workers.of("wrong:first")["wasxfail"].startswith("not yet")
    assert workers.of("wrong:first")["outcome"] == "skipped"


def test_reports_have_keywords_and_properties(workers: Spied) -> None:
    crash, lacking = workers.of("segfault"), workers.of("lacking", "teardown")
    assert {"PLANT-001", "must", "smoke", "planted/segfault"} <= set(crash["keywords"])
    assert ["requirement", "PLANT-001"] in crash["properties"]
    assert ["outcome", "crash"] in crash["properties"]
    assert lacking["properties"] == [
        ["requirement", "PLANT-002"],
        ["outcome", "unsupported"],
        ["reason", "needs capability 'memory_limit'"],
    ]


def test_what_a_check_wrote_is_a_section_of_its_report(workers: Spied) -> None:
    ((name, text),) = workers.of("segfault")["sections"]
    assert name == "Captured stdout call"
    assert text.startswith("about to read from address zero")
    assert workers.run.text.count("- Captured stdout call -") == 1
    hidden = ElementTree.tostring(workers.junit, encoding="unicode")
    assert "about to read" not in hidden, "junit_logging is off"


def test_a_failure_names_its_requirement_and_where_it_is_written(workers: Spied) -> None:
    line = "PLANT-001: The runner MUST survive what a check does.  https://example.org/#here"
    assert workers.run.text.count(line) == 3  # the three that failed


def test_junit_of_pytest_says_in_a_line_what_is_wrong(workers: Spied) -> None:
    cases = {case.get("name"): case for case in workers.junit.iter("testcase")}
    failure = cases["planted/wrong:second"].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("1 of 3 elements differ")
    properties = {p.get("name"): p.get("value") for p in cases["planted/segfault"].iter("property")}
    assert properties["outcome"] == "crash"


def test_checks_in_one_process_are_captured_as_tests_are(tmp_path: Path) -> None:
    run = spied(tmp_path, "--isolate=none", "--check=planted/noise", "--check=planted/wrong*")
    assert [name for name, _ in run.of("wrong:second")["sections"]] == []
    assert {name for name, _ in run.of("noise")["sections"]} == {
        "Captured stdout call",
        "Captured stderr call",
    }
    assert run.run.outcomes == {
        "planted/noise": "pass",
        "planted/wrong:first": "xfail",
        "planted/wrong:second": "fail",
    }


def test_pdb_begins_where_a_check_failed(tmp_path: Path) -> None:
    options = ("--backend=cpu", "--isolate=none", "--pdb", "--check=planted/assertion")
    done = subprocess.run(
        harness.command(harness.PLANTED, *options),
        cwd=tmp_path,
        env=harness.environment(tmp_path),
        input="p 'the answer is', answer\nc\n",
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert "('the answer is', 41)" in done.stdout
    assert "1 failed" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--backend=cpu", "--pdb"), "--pdb needs --isolate=none"),
        ((), "name the backend to test: --backend=NAME"),
        (
            ("--backend=cpu", "--check=planted/seg"),
            "--check 'planted/seg' matches no check: did you mean planted/segfault?",
        ),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert text in run.text
    assert run.code == pytest.ExitCode.USAGE_ERROR


def test_the_ini_file_may_name_backend_and_expectations(tmp_path: Path) -> None:
    (tmp_path / "chip.yaml").write_text("device_type: cpu\n")
    (tmp_path / "expected.yaml").write_text(LISTED)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nconformance_backend_file = chip.yaml\nconformance_expectations = expected.yaml\n"
    )
    options = ("-c", "pytest.ini", "--strict-config", "--check=planted/wrong:first")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert run.report["run"]["backend"] == "chip"
    assert run.outcomes == {"planted/wrong:first": "xfail"}
    assert run.code == 0
