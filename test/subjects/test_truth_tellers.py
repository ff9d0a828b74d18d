# SPDX-License-Identifier: BSD-3-Clause
"""Unusual but correct backends stay green, and what they lack is unsupported for the right reason.

The whole of it, every check of the core tier on every subject, is `make subjects`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nursery
import pytest

pytestmark = pytest.mark.nightly

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GREEN = {"pass", "unsupported", "blocked_upstream"}


@dataclass(frozen=True)
class Subject:
    """What is tried on a backend, how much of it runs at least, and what it is known to lack."""

    checks: str
    executed: int
    lacks: str


SUBJECTS = {
    "abacus": Subject(
        "registration/s* device/* view/* func/vmap* opinfo/inplace:a* opinfo/gradgrad:a*"
        " operator/attention_f*",
        300,
        "streams events generator pinned_memory storage_allocation storage_resize autocast",
    ),
    "one_stream": Subject("event/* copy/pinned* memory/* stream/*", 100, "streams events"),
    "single_device": Subject("device/* copy/peer* stream/*", 180, "multi_device peer_copy"),
    "float32_only": Subject(
        "copy/* error/* device/* opinfo/forward:ab* optimizer/hyperparameters_loop:*"
        " optimizer/differentiable:* optimizer/mixed:*",
        500,
        "float64 float16 bfloat16 complex64 complex128",
    ),
    "no_kernels": Subject(
        "copy/st* factory/v* operator/index:* operator/out:* random/uniform* stream/priority:*"
        " opinfo/out:a*",
        110,
        "delay autoload",
    ),
    "copies_and_fills": Subject("copy/st* operator/out_strided:*", 20, "delay autoload"),
    "core_operators": Subject(
        "factory/v* generator/cpu_untouched:* operator/out:* autograd/gradcheck:* module/inf*",
        200,
        "autoload",
    ),
    "padded": Subject("memory/* serialization/* view/s*", 250, "autoload"),
    "slow": Subject("stream/* event/* error/*", 290, "autoload"),
    "handles": Subject("memory/a* memory/n* factory/a* view/s*", 80, "addresses"),
    "opaque": Subject(
        "view/* factory/* opinfo/inplace:a* opinfo/out:a*", 500, "storages addresses"
    ),
    "plain_module": Subject(
        "generator/* event/* stream/d* thread/f* error/* registration/s* opinfo/forward:bern*",
        500,
        "synchronize",
    ),
    "uncounted": Subject("opinfo/forward:a* operator/out:*", 50, "fallback_counter"),
    "threaded": Subject("registration/import* serialization/sharing*", 10, "fork"),
}


@dataclass
class Verdict:
    """How a run ended and what it reported."""

    code: int
    text: str
    report: dict[str, Any]

    def outcomes(self) -> dict[str, str]:
        """Outcome by check id."""
        return {check["id"]: check["outcome"] for check in self.report["checks"]}

    def assert_green(self, executed: int) -> None:
        """Nothing is red, and enough was executed."""
        outcomes = self.outcomes()
        assert {id: outcome for id, outcome in outcomes.items() if outcome not in GREEN} == {}
        assert self.code == 0, self.text[-4000:]
        assert list(outcomes.values()).count("pass") >= executed


def judge(name: str, folder: Path, *options: str) -> Verdict:
    """A run of the suite against one subject."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "reference_backend", HERE)))
    done = nursery.run_module(
        *("pytest", "-p", "no:cacheprovider", "-q", str(ROOT / "conformance")),
        *(f"--backend-file={HERE / name}.yaml", "--report=report.json", *options),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        timeout=1500,
    )
    report = folder / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return Verdict(done.returncode, done.stdout + done.stderr, json.loads(report.read_text()))


def test_observed_paths_are_those_that_a_count_of_fallbacks_shows(tmp_path: Path) -> None:
    paths = []
    for name in ("core_operators", "uncounted"):
        (tmp_path / name).mkdir()
        verdict = judge(
            name,
            tmp_path / name,
            "--dtypes=pr",
            "--check=opinfo/forward:nn_*",
            "--check=opinfo/forward:a*",
        )
        paths.append({check["id"]: check["evidence"] for check in verdict.report["checks"]})
    counted, observed = paths
    wrong = {id: (path, observed[id]) for id, path in counted.items() if observed[id] != path}
    assert len(counted) >= 40
    assert len(wrong) * 100 <= len(counted), wrong


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_correct_backend_stays_green(name: str, tmp_path: Path) -> None:
    subject = SUBJECTS[name]
    selection = (f"--check={pattern}" for pattern in subject.checks.split())
    verdict = judge(name, tmp_path, "--dtypes=pr", *selection)
    verdict.assert_green(subject.executed)
    capabilities = verdict.report["run"]["capabilities"]
    missing = {name for name, entry in capabilities.items() if not entry["value"]}
    assert set(subject.lacks.split()) <= missing
