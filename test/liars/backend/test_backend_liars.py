# SPDX-License-Identifier: BSD-3-Clause
"""The chapters must catch mistakes that a backend makes above its driver, as real ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lies import BACKEND, LIES, TRUTH

from conformance import catalogue, descriptor

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


#: Surfaces of which every requirement has a lie that breaks it.
PROVED = (
    "autocast",
    "autograd",
    "custom_operator",
    "func",
    "grad_scaler",
    "model",
    "module",
    "opinfo",
    "optimizer",
    "random",
)
SHARDS = max(2, os.cpu_count() or 1)


def started(shard: int) -> subprocess.Popen[str]:
    """The trials of one share of the lies, running."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "lies.py"), str(shard), str(SHARDS)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def trials() -> Any:
    """The verdict of the chapters on every lie and on the truth."""
    verdicts: dict[str, Any] = {TRUTH: {}}
    requirements: dict[str, Any] = {}
    for process in [started(shard) for shard in range(SHARDS)]:
        out, error = process.communicate(timeout=600)
        assert process.returncode == 0, error[-2000:]
        found = json.loads(out)
        verdicts[TRUTH] |= found["verdicts"].pop(TRUTH)
        verdicts |= found["verdicts"]
        requirements |= found["requirements"]
    return {"verdicts": verdicts, "requirements": requirements}


def test_the_honest_backend_passes(trials: Any) -> None:
    """What the lies are caught by does pass without them: otherwise a catch would prove nothing."""
    complaints = {k: v for k, v in trials["verdicts"][TRUTH].items() if v is not None}
    assert complaints == {}
    assert trials["verdicts"][TRUTH]


@pytest.mark.parametrize("name", LIES)
def test_the_chapters_catch(name: str, trials: Any) -> None:
    """At least one check of every requirement named by the lie fails under it."""
    caught = {
        requirement
        for check, complaint in trials["verdicts"][name].items()
        if complaint is not None
        for requirement in trials["requirements"].get(check, ())
    }
    missed = set(LIES[name].requirements) - caught
    assert not missed, f"{LIES[name].text} {trials['verdicts'][name]}"


def test_every_requirement_of_these_surfaces_has_a_lie() -> None:
    """But for what no backend can satisfy yet, and for what this one does not have."""
    told = {id for lie in LIES.values() for id in lie.requirements}
    entries = [entry for entry in catalogue.load().values() if entry.surface in PROVED]
    assert {entry.surface for entry in entries} == set(PROVED)
    lacking = {name for name, has in descriptor.find(BACKEND).capabilities.items() if not has}
    provable = [e for e in entries if not e.blocked_upstream and not lacking & set(e.needs)]
    assert {entry.id for entry in provable} - told == set()
