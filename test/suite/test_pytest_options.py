# SPDX-License-Identifier: BSD-3-Clause
"""pytest's own options do with checks what people know them to do with tests."""

from __future__ import annotations

import re
from pathlib import Path

import harness
import pytest

CACHE = ("--backend=cpu", "--workers=1", "-p", "cacheprovider")
# A crash, an error, a failure and a pass; the listed one passes, which is red.
SOME = tuple(
    f"--check=planted/{name}" for name in ("abort", "exit", "sys_exit", "wrong:first", "noise")
)


def xpassing(tmp_path: Path) -> str:
    """The option for expectations that planted/noise surprises."""
    file = tmp_path / "expected.yaml"
    entry = "reason: r, link: 'https://x', status: fail, expires: 2999-01-01"
    file.write_text(f"xfail:\n- {{id: planted/noise, {entry}}}\n")
    return f"--expectations={file}"


def test_lf_selects_what_was_red_however_it_ended(tmp_path: Path) -> None:
    listed = xpassing(tmp_path)
    good = "--check=planted/good*"
    first = harness.run(tmp_path, harness.PLANTED, *CACHE, listed, *SOME, good)
    red = {id for id, outcome in first.outcomes.items() if outcome != "pass"}
    assert red == {option.removeprefix("--check=") for option in SOME}
    again = harness.run(tmp_path, harness.PLANTED, *CACHE, listed, "--lf")
    assert set(again.outcomes) == red
    assert again.report["complete"] is True


@pytest.mark.nightly
def test_lf_forgets_what_has_been_mended(tmp_path: Path) -> None:
    check = "--check=moody/passes_later"
    broken = harness.run(tmp_path, harness.MOODY, *CACHE, check, "--rerun-limit=0")
    assert broken.outcomes == {"moody/passes_later": "fail"}
    assert harness.run(tmp_path, harness.MOODY, *CACHE, "--lf").outcomes == {
        "moody/passes_later": "pass"
    }
    assert len(harness.run(tmp_path, harness.MOODY, *CACHE, "--lf").outcomes) == 34


def order(run: harness.Run) -> list[str]:
    """The ids of the checks of a run with -v, in the order of their results."""
    return re.findall(r"::(planted/\S+) [A-Z]", run.text)


@pytest.mark.parametrize("option", ["--ff", pytest.param("--nf", marks=pytest.mark.nightly)])
def test_ff_and_nf_say_what_comes_first(tmp_path: Path, option: str) -> None:
    good, wrong = "--check=planted/good*", "--check=planted/wrong*"
    harness.run(tmp_path, harness.PLANTED, *CACHE, wrong if option == "--ff" else good)
    options = (*CACHE, option, good, wrong, "-v", "--rerun-limit=0")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert order(run)[:2] == ["planted/wrong:first", "planted/wrong:second"]
    assert len(order(run)) == 22


@pytest.mark.parametrize(
    ("option", "value", "count"),
    [
        ("-k", "PLANT-002", 1),
        ("-k", "must and not good and not last", 14),
        ("-m", "must and smoke", 54),
    ],
)
def test_keywords_and_marks_select_by_requirement_level_and_tier(
    tmp_path: Path, option: str, value: str, count: int
) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--co", "-q", option, value)
    assert run.code == 0
    assert len(re.findall(r"^torture.py::cpu::planted/", run.text, re.MULTILINE)) == count


def test_collect_only_shows_checks_and_runs_none(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--co")
    assert run.code == 0
    assert "<CheckItem planted/segfault>" in run.text
    assert not run.report_file.exists()


@pytest.mark.parametrize(
    ("option", "red"), [("-x", 1), ("--maxfail=2", 2), ("--exitfirst", 1)], ids=str
)
def test_a_run_that_stops_at_failures_stops_at_once_and_says_it_is_incomplete(
    tmp_path: Path, option: str, red: int
) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--workers=1", option)
    outcomes = list(run.outcomes.values())
    assert sum(outcomes.count(name) for name in ("fail", "error", "crash", "timeout")) == red
    # What a worker has been given is done before what failed runs again.
    assert outcomes.count("pass") <= 24
    assert run.report["complete"] is False
    assert f"stopping after {red} failures" in run.text
    assert "INCOMPLETE" in run.text
    assert run.code == 64


def test_what_stops_a_run_has_been_confirmed(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.MOODY, "--backend=cpu", "--workers=2", "-x")
    # Which of those that fail first it is depends on the workers; the others may have run once.
    confirmed = [c["id"] for c in run.report["checks"] if len(c.get("attempts", ())) == 2]
    assert len(confirmed) == 1


def test_durations_name_the_slowest_checks(tmp_path: Path) -> None:
    options = ("--backend=cpu", "--check=planted/hang", "--durations=3", "--rerun-limit=0")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert re.search(r"2\.\d+s call .*::cpu::planted/hang", run.text)


def test_quiet_shows_letters_and_verbose_a_line_for_each_with_the_percentage(
    tmp_path: Path,
) -> None:
    options = ("--backend=cpu", "--check=planted/good*", "--check=planted/wrong*")
    quiet = harness.run(tmp_path, harness.PLANTED, *options, "-q")
    assert re.search(r"^\.{20}FF +\[100%\]$", quiet.text, re.MULTILINE)
    verbose = harness.run(tmp_path, harness.PLANTED, *options, "-v")
    shares = [int(text) for text in re.findall(r"::planted/.*\[ *(\d+)%\]", verbose.text)]
    assert shares == [(i + 1) * 100 // 22 for i in range(22)]
    assert len(re.findall(r"::planted/wrong:\w+ FAIL ", verbose.text)) == 2


@pytest.mark.nightly
def test_results_of_xdist_select_the_next_run(tmp_path: Path) -> None:
    options = ("-n2", "--check=planted/wrong*", "--check=planted/good*")
    harness.run(tmp_path, harness.PLANTED, *CACHE, *options)
    again = harness.run(tmp_path, harness.PLANTED, *CACHE, "-n2", "--lf")
    assert again.outcomes == {"planted/wrong:first": "fail", "planted/wrong:second": "fail"}
