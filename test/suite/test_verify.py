# SPDX-License-Identifier: BSD-3-Clause
"""--verify N finds checks that depend on order or schedule, --since REV those that changed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness
import jsonschema
import pytest
import synthetic

from torch_conformance import schemas
from torch_conformance.authoring.check import Check
from torch_conformance.judging import rounds
from torch_conformance.judging.judge import Judged, Verification
from torch_conformance.running.result import Result
from torch_conformance.selecting import changed
from torch_conformance.spec import descriptor
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

# The order of the two order checks differs between these seeds.
SEED, ROUNDS = 5, 4
RESTLESS = "device_type: cpu\nworkers: 1\nadversarial_env: {RESTLESS_SCHEDULE: '{seed}'}\n"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """All restless checks in some rounds."""
    folder = tmp_path_factory.mktemp("restless")
    options = (f"--verify={ROUNDS}", f"--verify-seed={SEED}")
    return harness.run(folder, harness.RESTLESS, harness.descriptor(folder, RESTLESS), *options)


def test_what_depends_on_order_or_schedule_is_flaky(verified: harness.Run) -> None:
    assert verified.outcomes == {
        "restless/order:leaves": "pass",
        "restless/order:minds": "flaky",
        "restless/schedule": "flaky",
        "restless/adverse": "fail",
        **{f"restless/calm:n{i}": "pass" for i in range(4)},
    }
    assert verified.code == 1
    jsonschema.validate(verified.report, json.loads(schemas.REPORT.read_text()))


def test_the_round_and_its_seed_are_named(verified: harness.Run) -> None:
    record = verified.check("restless/schedule")
    assert record["message"] == (
        "pass in round 1 (--verify-seed 5), fail in round 2 (--verify-seed 6): schedule 6"
    )
    attempts = [(a["round"], a["seed"], a["outcome"]) for a in record["attempts"]]
    assert attempts[:2] == [(1, 5, "pass"), (2, 6, "fail")]
    assert [f"round {i + 1} of 4, --verify-seed {SEED + i}" in verified.text for i in range(4)]
    assert "verified in 4 rounds, --verify-seed 5 to 8" in verified.text


def test_a_round_is_repeated_by_its_command(tmp_path: Path, verified: harness.Run) -> None:
    record = verified.check("restless/order:minds")
    seed = next(a["seed"] for a in record["attempts"] if a["outcome"] == "fail")
    alone, everything = record["repro"].splitlines()
    assert alone.endswith(f"--check restless/order:minds --verify 1 --verify-seed {seed}")
    options = shlex.split(everything)[1:]
    assert options[-4:] == ["--verify", "1", "--verify-seed", str(seed)]
    assert f"--verify={ROUNDS}" not in options
    repeated = harness.run(tmp_path, harness.RESTLESS, *options)
    assert repeated.outcomes["restless/order:minds"] == "fail"


def test_what_always_fails_is_repeated_under_its_schedule(verified: harness.Run) -> None:
    record = verified.check("restless/adverse")
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["fail"] * ROUNDS
    assert record["repro"].endswith(f"--check restless/adverse --verify 1 --verify-seed {SEED}")


def test_without_a_seed_one_is_drawn_and_told(tmp_path: Path) -> None:
    run = harness.run(
        tmp_path, harness.RESTLESS, "--backend=cpu", "--verify=1", "--check=restless/calm*"
    )
    assert run.code == 0
    seed = run.report["run"]["options"]["verify"]["seed"]
    assert re.search(rf"round 1 of 1, --verify-seed {seed}$", run.text, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--verify=0",), "above 0"),
        (("--verify-seed=1",), "needs --verify"),
        (("--verify=2", "-n2"), "--workers"),
        (("--verify=2", "--isolate=none"), "--isolate=none"),
        (("--since=no_such_revision",), "no revision 'no_such_revision'"),
        (("--since=--output=x",), "not a revision"),
    ],
)
def test_misuse_is_explained(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    run = harness.run(tmp_path, harness.RESTLESS, "--backend=cpu", *options)
    assert run.code == 4
    assert words in run.text


def test_the_order_is_that_of_the_seed() -> None:
    checks = [Check(f"a/c{i}", (), lambda dev: None) for i in range(20)]
    once = rounds.shuffled(checks, 1)
    assert rounds.shuffled(reversed(checks), 1) == once
    assert rounds.shuffled(checks, 2) != once
    assert set(once) == set(checks)


def test_the_seed_is_put_into_the_environment_of_a_copy() -> None:
    puone = descriptor.find("puone")
    assert rounds.adversarial(puone, 7).env == {**puone.env, "PUONE_SIM_SEED": "7"}
    assert "PUONE_SIM_SEED" not in puone.env


def test_the_command_line_of_a_round_is_that_of_the_run_without_its_rounds() -> None:
    arguments = ["conformance", "--verify", "3", "-x", "--verify-seed=4", "--check", "a/*"]
    assert rounds.without_rounds(arguments) == "pytest conformance -x --check 'a/*'"


class Planted:
    """In the place of pool and judge: a check ends in each round as its id says."""

    def __init__(self, round: int) -> None:
        self.round = round
        self.closed = False

    def run(self, checks: Iterable[Check], emit: Callable[[Result], None]) -> None:
        for check in checks:
            outcome = Outcome(check.id.split(":")[self.round])
            emit(Result(check.id, outcome, "" if outcome is Outcome.PASS else "m"))

    def close(self) -> None:
        self.closed = True

    @staticmethod
    def judge(check: Check, raw: Result) -> Judged:
        return synthetic.judged(raw)


@pytest.mark.parametrize(
    ("outcomes", "told_in_round", "expected"),
    [
        ("pass:pass:pass", 3, "pass"),
        ("fail:fail:fail", 3, "fail"),
        ("pass:crash:pass", 2, "flaky"),
        ("pass:pass:fail", 3, "flaky"),
        ("pass:not_run:pass", 3, "not_run"),
        ("pass:device_lost:not_run", 3, "device_lost"),
    ],
)
def test_the_rounds_come_to_one_result(outcomes: str, told_in_round: int, expected: str) -> None:
    pools: list[Planted] = []
    told: list[tuple[int, CheckResult]] = []

    def make_pool(seed: int) -> Any:
        pools.append(Planted(seed))
        return pools[-1]

    judge: Any = Planted
    noted: list[Any] = []
    asked = Verification(rounds=3, seed=0)
    all_rounds = rounds.Rounds(
        asked, make_pool, judge, lambda id, seed: f"{id} {seed}", lambda *round: None, noted.append
    )
    check = Check(outcomes, (), lambda dev: None)
    all_rounds.run([check], lambda judged: told.append((len(pools), judged.result)))
    assert [(round, result.outcome) for round, result in told] == [(told_in_round, expected)]
    assert len(pools) == 3 and all(pool.closed for pool in pools)
    assert bool(noted) == (expected in ("fail", "device_lost") and "pass:pass" not in outcomes)


OLD = """
import torch
LIMIT = 3

def helper(x):
    return x

@check("a/one", "A-001")
def one(dev):
    assert helper(1)

@check("a/two", "A-001", cases=("x",))
def two(dev, case):
    assert LIMIT
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", set()),
        ("    return x", "    # as it is\n    return  x", set()),
        ("helper(1)", "helper(2)", {"one"}),
        ('cases=("x",)', 'cases=("x", "y")', {"two"}),
        ("return x", "return x + 1", None),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("def two", "def second", {"second"}),
        ("import torch", "import (", None),
    ],
)
def test_a_check_has_changed_with_its_function_or_with_what_is_no_check(
    old: str, new: str, expected: set[str] | None
) -> None:
    assert changed.changed_functions(OLD, OLD.replace(old, new, 1)) == expected


def git(folder: Path, *arguments: str) -> None:
    """Run git as somebody."""
    who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_since_selects_the_checks_that_changed(tmp_path: Path) -> None:
    folder = tmp_path / "chapters"
    folder.mkdir()
    for file in harness.RESTLESS.rglob("*.*"):
        if file.suffix in (".py", ".yaml"):
            target = folder / file.relative_to(harness.RESTLESS)
            target.parent.mkdir(exist_ok=True)
            target.write_text(file.read_text())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    chapter = folder / "restless.py"
    source = chapter.read_text()
    chapter.write_text(source.replace("assert SCHEDULE not in", "assert 'X' not in"))
    run = harness.run(tmp_path, folder, "--backend=cpu", "--since=HEAD")
    assert run.outcomes == {"restless/adverse": "pass"}
    assert "--since=HEAD" in run.report["run"]["selection"]["differs_by"]
    chapter.write_text(source)
    assert harness.run(tmp_path, folder, "--backend=cpu", "--since=HEAD", "--co").code == 5
    (folder / "new.py").write_text(source.replace("restless/", "restless/new_"))
    listed = harness.run(tmp_path, folder, "--backend=cpu", "--since=HEAD", "--list")
    assert len(re.findall(r"^restless/new_", listed.text, re.MULTILINE)) == 8
    assert not re.findall(r"^restless/[^n]", listed.text, re.MULTILINE)
