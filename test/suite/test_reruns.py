# SPDX-License-Identifier: BSD-3-Clause
"""An unexpected result is run again alone in a fresh process; what differs is flaky, and red."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import harness
import jsonschema
import pytest
import synthetic

from torch_conformance import schemas
from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Judged, Options
from torch_conformance.judging.reruns import TIMEOUTS, Reruns
from torch_conformance.running.result import Result
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

EXPECTED = {
    "moody/passes_later": "flaky",
    "moody/dies_later": "flaky",
    "moody/dies_first": "flaky",
    "moody/always_fails": "fail",
    **{f"moody/passes:n{i}": "pass" for i in range(30)},
}


def pids(run: harness.Run, name: str) -> list[str]:
    """The processes in which a moody check ran."""
    return (run.report_file.parent / f"marker.{name}").read_text().split()


@pytest.fixture(scope="module")
def moody(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """All moody checks in two workers."""
    folder = tmp_path_factory.mktemp("moody")
    return harness.run(folder, harness.MOODY, "--backend=cpu", "--workers=2")


def test_another_outcome_is_flaky_and_the_same_stands(moody: harness.Run) -> None:
    assert moody.outcomes == EXPECTED
    assert moody.code == 1


def test_only_what_was_unexpected_runs_again_and_in_another_process(moody: harness.Run) -> None:
    assert all(len(pids(moody, f"n{i}")) == 1 for i in range(30))
    first, second = pids(moody, "always_fails")
    assert first != second
    assert second not in {pids(moody, f"n{i}")[0] for i in range(30)}


def test_both_attempts_are_in_the_report_in_junit_and_on_the_terminal(moody: harness.Run) -> None:
    attempts = moody.check("moody/dies_later")["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["fail", "crash"]
    assert [attempt["message"] for attempt in attempts] == ["not yet", "exited with status 3"]
    lines = ["attempt 1: fail not yet", "attempt 2: crash exited with status 3"]
    for line in lines:
        assert line in moody.text
    cases = {case.get("name"): case for case in moody.junit.iter("testcase")}
    node = cases["moody/dies_later"].find("error")
    assert node is not None and node.get("type") == "flaky" and node.text is not None
    assert node.text.splitlines()[:2] == lines
    assert "attempts" not in moody.check("moody/passes:n0")
    jsonschema.validate(moody.report, json.loads(schemas.REPORT.read_text()))


def test_an_unlisted_flaky_check_alone_makes_a_run_red(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.MOODY, "--backend=cpu", "--check=moody/passes_later")
    assert (run.outcomes, run.code) == ({"moody/passes_later": "flaky"}, 1)
    message = run.check("moody/passes_later")["message"]
    assert message == "fail, then pass when run again alone: not yet"
    assert f"    1  flaky: {message}" in run.text


def test_a_listed_flaky_check_is_green_and_runs_once(tmp_path: Path) -> None:
    listed = tmp_path / "expected.yaml"
    listed.write_text("flaky:\n- {id: moody/passes_later, reason: races, link: 'https://x'}\n")
    options = ("--backend=cpu", "--check=moody/passes_later", f"--expectations={listed}")
    run = harness.run(tmp_path, harness.MOODY, *options)
    assert (run.outcomes, run.code) == ({"moody/passes_later": "flaky"}, 0)
    assert len(pids(run, "passes_later")) == 1


def test_a_surprising_pass_is_run_again(tmp_path: Path) -> None:
    listed = tmp_path / "expected.yaml"
    entry = "reason: broken, link: 'https://x', status: crash, expires: 2999-01-01"
    listed.write_text(f"xfail:\n- {{id: 'moody/passes:n1', {entry}}}\n")
    options = ("--backend=cpu", "--check=moody/passes:n1", f"--expectations={listed}")
    run = harness.run(tmp_path, harness.MOODY, *options)
    assert run.outcomes == {"moody/passes:n1": "xpass"}
    assert len(pids(run, "n1")) == 2


@pytest.mark.parametrize("options", [("--isolate=test",), ("-n2",)], ids=["isolated", "xdist"])
def test_reruns_work_with_every_way_to_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = harness.run(tmp_path, harness.MOODY, "--backend=cpu", *options)
    assert run.outcomes == EXPECTED
    assert len(set(pids(run, "always_fails"))) == 2


@pytest.mark.parametrize("option", ["--isolate=none", "--rerun-limit=0"])
def test_reruns_can_be_off(tmp_path: Path, option: str) -> None:
    check = "--check=moody/always_fails"
    run = harness.run(tmp_path, harness.MOODY, "--backend=cpu", option, check)
    assert len(pids(run, "always_fails")) == 1
    assert "attempts" not in run.check("moody/always_fails")
    assert run.report["run"]["options"]["rerun_limit"] == 0


class Planted:
    """In the place of pool and judge: every check ends as its id says, alone as its end does."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, bool]] = []
        self.judged: list[Result] = []

    def run(self, checks: Iterable[Check], emit: Callable[[Result], None]) -> None:
        for check in checks:
            self.ran.append((check.id, check.isolate))
            _, first, message, *then = check.id.split(":")
            outcome = then[0] if then and check.isolate else first
            emit(Result(check.id, Outcome(outcome), message))

    def judge(self, check: Check, raw: Result) -> Judged:
        self.judged.append(raw)
        return synthetic.judged(raw)


def rerun(ids: list[str], limit: int) -> tuple[list[str], dict[str, CheckResult]]:
    """Which of the planted checks ran again, and all results."""
    planted = Planted()
    results: dict[str, CheckResult] = {}
    reruns = Reruns(planted, planted, Options(reruns=limit), lambda result: None)  # type: ignore[arg-type]  # stand-ins
    checks = [Check(id, (), lambda dev: None) for id in ids]
    reruns.run(checks, lambda judged: results.__setitem__(judged.result.id, judged.result))
    assert len(planted.judged) == len(planted.ran), "every raw result is judged once"
    return [id for id, alone in planted.ran if alone], results


def test_the_limit_is_spread_over_the_causes_in_the_order_of_the_checks() -> None:
    common = [f"c{i}:error:common" for i in range(100)]
    rare = [f"r{i}:error:rare" for i in range(3)]
    again, results = rerun([*common, *rare], limit=8)
    assert again == [*common[:5], *rare]
    assert len(results) == 103
    assert {id: len(result.attempts) for id, result in results.items()} == {
        **dict.fromkeys([*common, *rare], 1),
        **dict.fromkeys(again, 2),
    }


def test_few_failures_all_run_again_whatever_their_cause() -> None:
    ids = [f"c{i}:fail:common" for i in range(8)]
    assert rerun(ids, limit=8)[0] == ids


def test_a_backend_that_hangs_does_not_cost_its_deadlines_twice() -> None:
    ids = [f"c{i}:timeout:hangs" for i in range(20)]
    assert rerun(ids, limit=20)[0] == ids[:TIMEOUTS]


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ("fail", "fail"),
        ("pass", "flaky"),
        ("unsupported", "flaky"),
        ("not_run", "fail"),
        ("device_lost", "device_lost"),
    ],
)
def test_the_second_attempt_decides_unless_it_says_nothing(again: str, outcome: str) -> None:
    id = f"c:fail:wrong:{again}"
    result = rerun([id], limit=8)[1][id]
    assert result.outcome == outcome
    assert [attempt.outcome for attempt in result.attempts] == ["fail", again]
