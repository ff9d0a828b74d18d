# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer on small programs: each mistake is found in one run, and nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEEDS = (None, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in ("1", "2")))
RACY: list[dict[str, Any]] = yaml.load((HERE / "racy.yaml").read_text(), yaml.CSafeLoader)
CORRECT: list[dict[str, Any]] = yaml.load((HERE / "correct.yaml").read_text(), yaml.CSafeLoader)


@cache
def results(file: str, seed: str | None) -> dict[str, list[dict[str, Any]]]:
    """The reports of each program of the file, under a schedule."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PUONE_")}
    environment |= {"PUONE_DRIVER": "sim"} | ({"PUONE_SIM_SEED": seed} if seed else {})
    done = subprocess.run(
        [sys.executable, HERE / "run_programs.py", HERE / file],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}" if seed else "in-order")
@pytest.mark.parametrize("program", RACY, ids=lambda program: str(program["name"]))
def test_the_mistake_is_found(program: dict[str, Any], seed: str | None) -> None:
    reports = results("racy.yaml", seed)[program["name"]]
    found = [[report["kind"], *report["operators"]] for report in reports]
    assert program["finds"] in found, "\n".join(report["text"] for report in reports)
    report = reports[found.index(program["finds"])]
    # Both places are in the program; of a backward pass the stack is the forward operator's.
    assert all(report["lines"]), report["text"]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}" if seed else "in-order")
@pytest.mark.parametrize("program", CORRECT, ids=lambda program: str(program["name"]))
def test_nothing_is_found(program: dict[str, Any], seed: str | None) -> None:
    reports = results("correct.yaml", seed)[program["name"]]
    assert reports == [], "\n".join(report["text"] for report in reports)


def test_there_are_sixty_programs_of_each_sort() -> None:
    for programs in (RACY, CORRECT):
        names = [program["name"] for program in programs]
        assert len(names) == len(set(names)) >= 60
