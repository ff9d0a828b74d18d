# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a check does to its process is booked on it, and on nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import harness
import jsonschema
import pytest
from processes import wait_until_gone

from torch_conformance import schemas

EXPECTED = {
    "planted/segfault": "crash",
    "planted/abort": "crash",
    "planted/exit": "crash",
    "planted/hang": "timeout",
    "planted/sys_exit": "error",
    "planted/interrupt": "error",
    "planted/wrong:first": "fail",
    "planted/wrong:second": "fail",
    "planted/assertion": "fail",
    "planted/noise": "pass",
    "planted/child": "pass",
    "planted/alone:a": "pass",
    "planted/alone:b": "pass",
    "planted/lacking": "unsupported",
    "planted/declines": "unsupported",
    **{f"planted/good:before_{i}": "pass" for i in range(20)},
    **{f"planted/last:after_{i}": "pass" for i in range(20)},
}


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """All planted checks in two workers."""
    return harness.run(
        tmp_path_factory.mktemp("torture"), harness.PLANTED, "--backend=cpu", "--workers=2"
    )


def test_every_check_has_its_own_outcome(torture: harness.Run) -> None:
    assert torture.outcomes == EXPECTED
    assert torture.code == 1


def test_a_death_is_told_by_its_status(torture: harness.Run) -> None:
    assert torture.check("planted/exit")["message"] == "exited with status 0"


def test_a_death_tells_the_innermost_frame(torture: harness.Run) -> None:
    messages = {
        id: torture.check(f"planted/{id}")["message"] for id in ("segfault", "abort", "hang")
    }
    assert messages["segfault"].startswith("SIGSEGV in string_at (ctypes/__init__.py:")
    assert messages["abort"].startswith("SIGABRT in aborts (planted/torture.py:")
    assert messages["hang"].startswith("silent for 2 s in hangs_with_the_gil (planted/torture.py:")


@pytest.fixture(scope="module")
def woken(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """All checks about hangs and the signal that asks where they are."""
    options = ("--backend=cpu", "--workers=1", "--rerun-limit=0")
    return harness.run(tmp_path_factory.mktemp("woken"), harness.WOKEN, *options)


def test_a_worker_that_its_end_woke_up_begins_no_other_check(woken: harness.Run) -> None:
    message = woken.check("woken/a_hang")["message"]
    assert message.startswith("silent for 1 s in hangs_until_a_signal (woken/woken.py:")
    assert woken.outcomes["woken/b_behind"] == "crash"
    assert (woken.report_file.parent / "marker").read_text() == "begun\n"


def test_a_worker_gets_the_time_to_tell_where_it_hangs(woken: harness.Run) -> None:
    message = woken.check("woken/c_slow")["message"]
    assert message.startswith("silent for 1 s in hangs_where_nothing_runs (woken/woken.py:")


def test_the_output_of_a_death_is_shown(torture: harness.Run) -> None:
    assert "about to read from address zero" in torture.text
    assert "in segfaults" in torture.text, "faulthandler's traceback is missing"
    assert "in hangs_with_the_gil" in torture.text, "where the hang is, is missing"


def test_a_failure_says_where_and_by_how_much(torture: harness.Run) -> None:
    message = torture.check("planted/wrong:first")["message"]
    assert message.startswith("1 of 3 elements differ; first at (2,): 3.0, expected 4.0")
    assert torture.check("planted/wrong:first")["mismatch"] == "some_values"
    assert "assert 41 == 42" in torture.check("planted/assertion")["message"]


def test_failures_of_one_cause_are_grouped(torture: harness.Run) -> None:
    lines = torture.text.splitlines()
    group = next(i for i, line in enumerate(lines) if "2  fail: wrong values" in line)
    assert lines[group].endswith("wrong values in some elements in planted/wrong")
    assert "planted/wrong:first and 1 more" in lines[group + 1]
    assert "1 of 3 elements differ; first at (2,): 3.0, expected 4.0" in lines[group + 2]


def test_every_failure_can_be_repeated_by_its_command(torture: harness.Run) -> None:
    repro = torture.check("planted/assertion")["repro"]
    assert repro.startswith("pytest ")
    assert repro.endswith("--backend=cpu --check planted/assertion")


def test_the_report_keeps_its_schema_and_its_sums(torture: harness.Run) -> None:
    report = torture.report
    jsonschema.validate(report, json.loads(schemas.REPORT.read_text()))
    assert report["complete"] is True
    outcomes = list(torture.outcomes.values())
    assert report["totals"] == {name: outcomes.count(name) for name in report["totals"]}
    assert sum(report["totals"].values()) == len(EXPECTED)


def test_junit_tells_the_same(torture: harness.Run) -> None:
    cases = {case.get("name"): case for case in torture.junit.iter("testcase")}
    assert set(cases) == set(EXPECTED)
    crash = cases["planted/segfault"].find("error")
    assert crash is not None
    assert crash.get("type") == "crash"
    assert len(list(torture.junit.iter("failure"))) == 3
    assert len(list(torture.junit.iter("skipped"))) == 2


def test_no_process_is_left_behind(torture: harness.Run) -> None:
    pid = int((torture.report_file.parent / "pids").read_text())
    assert not wait_until_gone({pid})


@pytest.mark.nightly
def test_isolation_by_check_and_fresh_interpreters_agree(tmp_path: Path) -> None:
    spawned = harness.descriptor(tmp_path, "device_type: cpu\nstart_method: spawn\nworkers: 2\n")
    options = ("--check=planted/s*", "--check=planted/w*", "--check=planted/alone*")
    forked = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--isolate=test", *options)
    first = forked.outcomes
    fresh = harness.run(tmp_path, harness.PLANTED, spawned, *options)
    assert first == {id: EXPECTED[id] for id in first}
    assert len(first) == 6
    assert fresh.outcomes == first
    assert "assert 41 == 42" not in fresh.text


def test_killing_the_runner_leaves_an_incomplete_report_and_no_worker(tmp_path: Path) -> None:
    options = ("--backend=cpu", "--workers=2")
    pids = tmp_path / "pids"
    with subprocess.Popen(
        harness.command(harness.SLOW, *options),
        cwd=tmp_path,
        env=harness.environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as runner:
        end = time.monotonic() + 120.0
        while not (pids.exists() and len(pids.read_text().split()) > 12):
            assert time.monotonic() < end, "the run did not get going"
            time.sleep(0.1)
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(report, json.loads(schemas.REPORT.read_text()))
    assert report["complete"] is False
    assert 0 < len(report["checks"]) < 60
    assert not wait_until_gone({int(pid) for pid in pids.read_text().split()})


def test_terminating_the_runner_ends_it_in_order(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with subprocess.Popen(
        harness.command(harness.SLOW, "--backend=cpu", "--workers=1"),
        cwd=tmp_path,
        env=harness.environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    ) as runner:
        end = time.monotonic() + 120.0
        while not (pids.exists() and len(pids.read_text().split()) > 2):
            assert time.monotonic() < end, "the run did not get going"
            time.sleep(0.1)
        runner.terminate()
        text, _ = runner.communicate(timeout=60)
    assert runner.returncode == 2
    assert "INCOMPLETE" in text
    assert json.loads((tmp_path / "report.json").read_text())["complete"] is False
    assert not wait_until_gone({int(pid) for pid in pids.read_text().split()})


def test_a_request_to_end_while_a_worker_is_forked_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(
        "import os, signal\n"
        "end = lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
        "os.register_at_fork(after_in_parent=end)\n"
    )
    options = ("-p", "ending", "--backend=cpu", "--workers=1", "--check=planted/good*")
    ended = harness.run(tmp_path, harness.PLANTED, *options)
    assert ended.code == 2
    assert "INCOMPLETE" in ended.text
    assert ended.report["complete"] is False


def test_a_device_on_which_the_smallest_computation_crashes_is_tested_all_the_same(
    tmp_path: Path,
) -> None:
    text = "device_type: cpu\ndevice: {setup: 'deadly_device:set_up'}\nworkers: 1\n"
    deadly = harness.run(tmp_path, harness.LOST, harness.descriptor(tmp_path, text))
    outcomes = deadly.outcomes
    assert outcomes.pop("lost/b_killer") == "crash"
    assert set(outcomes.values()) == {"pass"}
    assert deadly.report["complete"] is True


def test_a_lost_device_ends_the_run(tmp_path: Path) -> None:
    text = "device_type: cpu\ndevice: {setup: 'falling_device:set_up'}\nworkers: 1\n"
    lost = harness.run(tmp_path, harness.LOST, harness.descriptor(tmp_path, text))
    outcomes = lost.outcomes
    assert outcomes.pop("lost/a_good") == "pass"
    assert outcomes.pop("lost/b_killer") == "device_lost"
    assert set(outcomes.values()) == {"not_run"}
    assert len(outcomes) == 8
    assert "fell off the bus" in lost.check("lost/b_killer")["message"]
    assert lost.report["complete"] is False
    assert lost.code == 64


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_the_memory_limit_is_that_of_the_workers(tmp_path: Path, start: str) -> None:
    text = f"device_type: cpu\nstart_method: {start}\nworkers: 1\n"
    free = harness.run(tmp_path, harness.GREEDY, harness.descriptor(tmp_path, text))
    assert set(free.outcomes.values()) == {"pass"}
    text += f"memory_limit_mb: {64 << 10}\n"
    limited = harness.run(tmp_path, harness.GREEDY, harness.descriptor(tmp_path, text))
    assert limited.outcomes == {"greedy/takes:1g": "pass", "greedy/takes:256g": "error"}
    assert "Cannot allocate memory" in limited.check("greedy/takes:256g")["message"]


@pytest.mark.parametrize(
    ("more", "options"),
    [("", ("--workers=3", "--chunk=2")), ("", ("--workers=1",)), ("single_process: true\n", ())],
    ids=["three workers", "one worker", "single process"],
)
def test_no_check_runs_beside_one_that_fills_a_device(
    tmp_path: Path, more: str, options: tuple[str, ...]
) -> None:
    """Other processes may use the same device, as on a card: theirs is the memory that is gone."""
    text = "device_type: cpu\ncapabilities: {memory_limit: true}\n" + more
    run = harness.run(tmp_path, harness.FILLING, harness.descriptor(tmp_path, text), *options)
    assert set(run.outcomes.values()) == {"pass"}, run.text
    lines = [line.split() for line in (tmp_path / "marker").read_text().splitlines()]
    assert [name for name, _, _ in lines] == ["part"] * 7 + ["whole"] * 4
    whole = [(float(begin), float(end)) for name, begin, end in lines if name == "whole"]
    others = max(float(end) for name, _, end in lines if name == "part")
    assert others <= whole[0][0]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(whole))
