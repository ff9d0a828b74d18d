# SPDX-License-Identifier: BSD-3-Clause
"""Steps of `make gpu` that crash, hang, lack something or break: the others are taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from made import MACHINE, SOURCE, a_row, a_run

from bench.gpu import command, machine
from bench.gpu.__main__ import unused
from bench.gpu.document import Results
from bench.gpu.outcome import Outcome, done, failed
from bench.gpu.result import Result, file_name
from bench.gpu.run import Run, Step, take, take_all
from bench.gpu.steps import benchmark, compiled, hal, parity, sanitizer
from torch_backend_ci import document


def python(code: str) -> Step:
    """A step whose only program is this code."""

    def act(run: Run) -> Outcome:
        ended = run.python("code", "-c", code)
        return done() if ended.code == 0 else failed(ended.why())

    return Step("code", "runs code", 20, act)


def started(run: Run, *steps: Step) -> None:
    """Begin the run's results."""
    run.result.start(MACHINE, SOURCE, {step.name: step.does for step in steps}, rehearsal=True)


def written(run: Run) -> dict[str, Any]:
    """What the results file says now, which must be valid at any time."""
    value: dict[str, Any] = json.loads(run.result.file.read_text())
    document.read(run.result.file, Results)
    return value


def test_a_step_that_ends_well_is_done(tmp_path: Path) -> None:
    assert take(a_run(tmp_path), python("print('well')")) == done()


def test_a_crash_is_named_with_the_last_words(tmp_path: Path) -> None:
    code = "import os; print('last words', flush=True); os.abort()"
    outcome = take(a_run(tmp_path), python(code))
    assert outcome.status == "failed"
    assert "SIGABRT" in outcome.reason and "last words" in outcome.reason


def test_reasons_name_no_folder_of_the_machine(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    code = f"print('{run.root}/csrc/a.cpp and {sys.prefix}/lib/b.py'); raise SystemExit(1)"
    outcome = take(run, python(code))
    assert "csrc/a.cpp and lib/b.py" in outcome.reason
    assert str(run.root) not in outcome.reason and sys.prefix not in outcome.reason


def test_a_hang_ends_at_the_deadline_with_all_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(pid)!r}, 'w').write(str(child.pid)); time.sleep(600)"
    )
    log = tmp_path / "log"
    monkeypatch.setattr(command, "GRACE", 0.2)
    ended = command.run([sys.executable, "-c", code], log, 3, os.environ, tmp_path)
    assert ended.timed_out and "no end within" in ended.why()
    child = Path("/proc") / pid.read_text()
    for _ in range(100):
        if not child.exists() or "\nState:\tZ" in (child / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child of the program lives on")


def test_a_program_that_is_not_there_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    ended = command.run(["/nowhere/tool"], tmp_path / "log", 5, {}, tmp_path)
    assert ended.code == 127 and "No such file" in ended.why()


def test_a_program_may_write_what_it_has_when_its_time_is_over(tmp_path: Path) -> None:
    code = (
        "import time\ntry:\n time.sleep(600)\nexcept KeyboardInterrupt:\n print('kept', flush=True)"
    )
    ended = command.run([sys.executable, "-c", code], tmp_path / "log", 2, os.environ, tmp_path)
    assert ended.timed_out and "kept" in ended.tail()


def test_the_others_are_taken_whatever_one_does(tmp_path: Path) -> None:
    def broken(run: Run) -> Outcome:
        raise RuntimeError("a mistake of ours")

    steps = (
        Step("breaks", "", 20, broken),
        Step("lacks", "", 20, lambda run: done(), ("no_such_module",)),
        Step("works", "", 20, lambda run: done(found=3)),
    )
    run = a_run(tmp_path)
    started(run, *steps)
    assert take_all(run, steps) is False
    breaks, lacks, works = written(run)["steps"]
    assert breaks["status"] == "failed" and "a mistake of ours" in breaks["reason"]
    assert lacks["status"] == "not run" and "no_such_module is missing" in lacks["reason"]
    assert works["status"] == "done" and works["data"] == {"found": 3}


def test_what_is_not_run_does_not_make_a_run_fail(tmp_path: Path) -> None:
    steps = (Step("lacks", "", 20, lambda run: done(), ("no_such_module",)),)
    run = a_run(tmp_path)
    started(run, *steps)
    assert take_all(run, steps) is True


def test_when_the_time_is_used_up_the_rest_says_so(tmp_path: Path) -> None:
    outcome = take(a_run(tmp_path, seconds=1), python("print()"))
    assert outcome == Outcome("not run", "the time is used up")


def test_results_are_there_after_every_step_and_every_measurement(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    seen: list[tuple[str, int]] = []

    def look(run: Run) -> Outcome:
        run.result.measured([a_row()] * (len(seen) + 1))
        value = written(run)
        seen.append((value["steps"][0]["status"], len(value["measurements"])))
        return done()

    steps = (Step("first", "", 20, look), Step("second", "", 20, look))
    started(run, *steps)
    assert written(run)["complete"] is False
    take_all(run, steps)
    assert seen == [("not run", 1), ("done", 2)]
    run.result.finish(12.0)
    assert written(run)["complete"] is True


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    assert benchmark.read(rows) == []
    rows.write_text('{"a": 1}\n{"a": ')
    assert benchmark.read(rows) == [{"a": 1}]


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "TOOL", "no-such-tool")
    assert sanitizer.sanitizer(a_run(tmp_path)) == Outcome("not run", "no-such-tool is missing")


def test_a_missing_driver_is_named_by_every_step_that_needs_it(tmp_path: Path) -> None:
    for step in (hal.hal, parity.parity, compiled.compiled, benchmark.benchmark):
        outcome = step(a_run(tmp_path))
        assert outcome.status == "not run" and "libnone.so is not there" in outcome.reason


def test_programs_see_no_setting_of_the_backend_but_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUONE_SIM_LATENCY_US", "1000")
    environment = a_run(tmp_path).environment()
    settings = {key: value for key, value in environment.items() if key.startswith("PUONE_")}
    assert settings == {"PUONE_DRIVER": "sim"}


def test_a_file_is_named_by_date_and_card() -> None:
    assert file_name("NVIDIA H200", datetime(2026, 11, 20)) == "2026-11-20-nvidia-h200.json"


def test_a_results_file_is_never_half_written(tmp_path: Path) -> None:
    result = Result(tmp_path / "a.json")
    result.start(MACHINE, SOURCE, {"one": "does"}, rehearsal=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.md"]


def test_a_measurement_replaces_no_other(tmp_path: Path) -> None:
    file = tmp_path / "2026-11-20-card.json"
    names = []
    for _ in range(3):
        names.append(unused(file).name)
        (tmp_path / names[-1]).touch()
    assert names == ["2026-11-20-card.json", "2026-11-20-card-2.json", "2026-11-20-card-3.json"]


def test_uncommitted_results_do_not_count_as_changes_of_the_source(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "code").write_text("1")
    git("add", "code")
    git("commit", "-m", "code")
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "new.json").write_text("{}")
    found = machine.source(tmp_path)
    assert len(found["commit"]) == 40 and found["dirty"] is False
    (tmp_path / "code").write_text("2")
    assert machine.source(tmp_path)["dirty"] is True


def test_outside_of_a_checkout_the_source_is_unknown(tmp_path: Path) -> None:
    assert machine.source(tmp_path) == {"commit": None, "dirty": None}
