# SPDX-License-Identifier: BSD-3-Clause
"""The default selection on correct backends, under conditions that change nothing: `make controls`.

Whatever turns red is a false alarm. All of it takes two hours on 2 cores; `PYTEST_ARGS='-k load'`
tries one condition. Unusual backends are in core_tier.py, and the nightly workflow runs the suite
with each supported PyTorch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from suites import run_pytest
from test_truth_tellers import Verdict

#: Most seconds of one run: under load it takes many times what it takes alone.
LIMIT = 5400
#: The flags of this processor among them.
FLAGS = frozenset(Path("/proc/cpuinfo").read_text().split())
#: Without one of these it has no x86-64-v3, and no x86-64-v4.
V3, V4 = frozenset({"avx2", "fma"}), frozenset({"avx512f", "avx512bw", "avx512vl"})


@dataclass(frozen=True)
class Condition:
    """What is different from a plain run."""

    backend: str = "puone"
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    load: int = 0
    """Processes that keep a core busy each."""
    needs: frozenset[str] = frozenset()
    """Flags of the processor."""


def _sim(needs: frozenset[str] = frozenset(), **options: str) -> Condition:
    environment = {f"PUONE_SIM_{name}": value for name, value in options.items()}
    return Condition(environment=environment, needs=needs)


def _cpu(**environment: str) -> Condition:
    return Condition("cpu", environment=environment)


CONDITIONS = {
    "seed_1": Condition(options=("--seed=1",)),
    "seed_2": Condition(options=("--seed=2",)),
    "seed_3": Condition(options=("--seed=3",)),
    "load": Condition(load=10),
    "baseline": _sim(ISA="baseline"),
    "v3": _sim(V3, ISA="v3"),
    "v4": _sim(V4, ISA="v4"),
    "adversarial": _sim(SEED="1"),
    "poison": _sim(POISON="1"),
    "one_core": _sim(CORES="1"),
    "cpu": _cpu(),
    "cpu_seed": Condition("cpu", options=("--seed=1",)),
    # Of ATen's kernels, and of oneDNN's.
    "cpu_baseline": _cpu(ATEN_CPU_CAPABILITY="default", ONEDNN_MAX_CPU_ISA="SSE41"),
    "cpu_avx2": _cpu(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2"),
}


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(processes):
            one = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(one.wait)
            stack.callback(one.kill)
        yield


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_that_changes_nothing_makes_nothing_red(name: str, tmp_path: Path) -> None:
    condition = CONDITIONS[name]
    if missing := condition.needs - FLAGS:
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    report = tmp_path / "report.json"
    with _busy(condition.load):
        done = run_pytest(
            [
                "conformance",
                f"--backend={condition.backend}",
                f"--report={report}",
                *condition.options,
            ],
            condition.environment,
            timeout=LIMIT,
        )
    said = done.stdout + done.stderr
    assert report.exists(), said
    Verdict(done.returncode, said, json.loads(report.read_text())).assert_green(executed=10_000)
