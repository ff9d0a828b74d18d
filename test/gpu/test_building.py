# SPDX-License-Identifier: BSD-3-Clause
"""The step that builds, with a cmake that does as it is told."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from made import a_run

from bench.gpu.run import Run
from bench.gpu.steps.build import build

CMAKE = """#!/bin/sh
echo "$*" >> {calls}
case "$*" in
  *"--target help"*) printf '%s\\n' {targets} ;;
  *-S*) exit {configure} ;;
  *--build*) echo compiling; exit {compile} ;;
esac
"""
EVERYTHING = ("_C: phony", "puone_sim: phony", "_distributed: phony", "puone_cuda: phony")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Of a machine with a GPU."""
    return replace(a_run(tmp_path), rehearsal=False)


def pretend(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    targets: tuple[str, ...] = EVERYTHING,
    configure: int = 0,
    compile: int = 0,
) -> Path:
    """Put this cmake, and a ninja, first on PATH; the file in which its calls are noted."""
    tools, calls = run.work / "tools", run.work / "calls"
    tools.mkdir()
    quoted = " ".join(f"'{target}'" for target in targets)
    text = CMAKE.format(calls=calls, targets=quoted, configure=configure, compile=compile)
    for name in ("cmake", "ninja"):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return calls


def test_it_builds_the_driver_beside_what_is_always_built(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pretend(run, monkeypatch)
    outcome = build(run)
    assert outcome.status == "done"
    assert outcome.data["targets"] == ["_C", "puone_sim", "_distributed", "puone_cuda"]
    last = calls.read_text().splitlines()[-1]
    # It goes on after an error.
    assert last.endswith("--target _C puone_sim _distributed puone_cuda -- -k 0")


def test_without_nvcc_the_rest_is_built_and_the_step_has_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pretend(run, monkeypatch, targets=EVERYTHING[:3])
    outcome = build(run)
    assert outcome.status == "failed" and "no target puone_cuda" in outcome.reason
    assert "--target _C puone_sim _distributed --" in calls.read_text()


def test_a_torch_without_distributed_is_built_without_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pretend(run, monkeypatch, targets=(*EVERYTHING[:2], EVERYTHING[3]))
    assert build(run).status == "done"
    assert "--target _C puone_sim puone_cuda --" in calls.read_text()


def test_a_compile_error_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(run, monkeypatch, compile=1)
    outcome = build(run)
    assert outcome.status == "failed" and "compiling" in outcome.reason


def test_a_configuration_that_fails_builds_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pretend(run, monkeypatch, configure=1)
    assert build(run).status == "failed"
    assert "--build" not in calls.read_text()


def test_without_cmake_it_is_not_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(run.work))
    assert str(build(run)) == "not run: cmake is missing"


def test_import_torch_finds_the_backend_although_nothing_is_installed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(run, monkeypatch)
    build(run)
    (found,) = metadata.distributions(path=[str(run.site)])
    (point,) = found.entry_points.select(group="torch.backends")
    assert (point.name, point.value) == ("puone", "torch_puone:_autoload")
