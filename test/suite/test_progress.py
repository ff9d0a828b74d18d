# SPDX-License-Identifier: BSD-3-Clause
"""The progress of a run: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import harness
import pytest
import synthetic

from torch_conformance.pytest_plugin.progress import (
    LOG_INTERVAL,
    MAX_SHOWN,
    Estimate,
    Progress,
    clock,
    durations,
)


def on_a_terminal(tmp_path: Path, *options: str) -> str:
    """What a run writes when its output is a terminal of 100 columns."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        harness.command(harness.PLANTED, "--backend=cpu", "--workers=1", *options),
        cwd=tmp_path,
        env={**harness.environment(tmp_path), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ):
        os.close(terminal)
        text = b""
        try:
            while data := os.read(controller, 1 << 16):
                text += data
        except OSError:
            pass  # The other end is closed.
    os.close(controller)
    return text.decode()


def test_a_terminal_shows_a_live_line_and_failures_above_it(tmp_path: Path) -> None:
    text = on_a_terminal(tmp_path, "--check=planted/good*", "--check=planted/hang")
    looks = re.findall(r"\rcpu  (\d+)/21 +(\d+)%  (\d+) bad  ETA (\d+:\d\d)  (\S+) ", text)
    assert looks
    done = [int(look[0]) for look in looks]
    assert done == sorted(done)
    assert [int(look[1]) for look in looks] == [count * 100 // 21 for count in done]
    assert "timeout planted/hang: silent for 2 s" in text
    before, _, after = text.partition("FAILURES")
    assert "ETA" not in after
    assert "torture.py" not in before.partition("timeout planted/hang")[0], "pytest's own line"


@pytest.mark.parametrize("option", ["-q", "-v", "-oconsole_output_style=classic"])
def test_whoever_wants_less_or_more_gets_what_pytest_writes(tmp_path: Path, option: str) -> None:
    text = on_a_terminal(tmp_path, "--check=planted/good*", "--color=no", option)
    assert "ETA" not in text
    assert ("...................." in text) == (option != "-v")


class Reporter:
    """In the place of pytest's, on something that is no terminal."""

    isatty = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def ensure_newline(self) -> None:
        """Nothing to end."""

    def write_line(self, line: str, **markup: bool) -> None:
        """Keep the line."""
        self.lines.append(line)


def result(id: str, outcome: str) -> dict[str, Any]:
    """A result as it travels with a report of pytest."""
    made = synthetic.record("STREAM-001", outcome) | {"id": id}
    return made | {"message": "m"} if outcome == "fail" else made


def test_elsewhere_there_is_a_line_every_half_minute(tmp_path: Path) -> None:
    time = 0.0
    records: dict[str, Any] = {}
    report = SimpleNamespace(results=records, unexpected={"stream/n3"})
    session = SimpleNamespace(
        report=report,
        report_file=tmp_path / "none.json",
        selected={f"stream/n{i}" for i in range(100)},
        descriptor=SimpleNamespace(name="chip"),
    )
    reporter = Reporter()
    suite: Any = SimpleNamespace(sessions={"chip": session}, verify=None)
    progress = Progress(reporter, suite, now=lambda: time)
    progress.pytest_collection_finish()
    for i in range(70):
        record = result(f"stream/n{i}", "fail" if i == 3 else "pass")
        records[record["id"]] = record
        progress.pytest_runtest_logreport(SimpleNamespace(conformance=record, backend="chip"))
        time += 1.0
    assert LOG_INTERVAL == 30.0
    assert reporter.lines == [
        "fail stream/n3: m",
        "chip  31/100  31%  1 bad  ETA 1:07  stream/n30",
        "chip  61/100  61%  1 bad  ETA 0:38  stream/n60",
    ]


def test_only_the_first_failures_are_shown_at_once(tmp_path: Path) -> None:
    records: dict[str, Any] = {}
    session = SimpleNamespace(
        report=SimpleNamespace(results=records, unexpected=records),
        report_file=tmp_path / "none.json",
        selected={f"stream/n{i}" for i in range(100)},
        descriptor=SimpleNamespace(name="chip"),
    )
    reporter = Reporter()
    suite: Any = SimpleNamespace(sessions={"chip": session}, verify=None)
    progress = Progress(reporter, suite, now=lambda: 0.0)
    for i in range(100):
        record = result(f"stream/n{i}", "fail")
        records[record["id"]] = record
        progress.pytest_runtest_logreport(SimpleNamespace(conformance=record, backend="chip"))
    assert reporter.lines == [f"fail stream/n{i}: m" for i in range(MAX_SHOWN)]


def test_without_a_terminal_there_are_no_letters(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--check=planted/good*")
    assert "all passed: planted 20" in run.text
    assert "...." not in run.text


def test_the_estimate_knows_what_took_long_the_last_time() -> None:
    estimate = Estimate(["a", "b", "c"], {"a": 1.0, "b": 9.0, "c": 90.0})
    assert estimate.seconds_left(1.0) is None
    estimate.done("a")
    estimate.done("b")
    left = estimate.seconds_left(20.0)
    assert left is not None
    assert round(left) == 180


def test_checks_without_a_past_are_taken_for_usual_ones() -> None:
    estimate = Estimate(["a", "new"], {"a": 2.0, "gone": 100.0})
    estimate.done("a")
    left = estimate.seconds_left(5.0)
    assert left is not None
    assert round(left, 2) == 5.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checks": [{}]}', '{"checks": [3]}'])
def test_a_broken_report_is_no_past(tmp_path: Path, text: str) -> None:
    file = tmp_path / "report.json"
    file.write_text(text)
    assert durations(file) == {}


def test_clocks_have_hours_when_there_are_any() -> None:
    assert [clock(value) for value in (0.4, 59.6, 3599)] == ["0:00", "1:00", "59:59"]
    assert clock(3725) == "1:02:05"
