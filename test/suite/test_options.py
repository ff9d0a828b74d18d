# SPDX-License-Identifier: BSD-3-Clause
"""Selection, sharding, xdist, and how a run that cannot be a result ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import harness
import pytest

from torch_conformance.pytest_plugin import suite

QUICK = ("--check=planted/good*", "--check=planted/wrong*", "--check=planted/segfault")


def listed(text: str) -> set[str]:
    """The check ids that --list printed."""
    words = (line.partition(" ")[0] for line in text.splitlines())
    return {word for word in words if word.startswith("planted/")}


def test_list_needs_no_backend_and_runs_nothing(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--list")
    assert run.code == 0
    assert len(listed(run.text)) == 55
    assert "planted/segfault  [PLANT-001 must smoke]  Reads from address zero." in run.text
    assert not run.report_file.exists()


def test_a_tier_contains_those_before_it_only(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--list", "--tier=smoke")
    assert len(listed(run.text)) == 54
    assert "planted/lacking" not in listed(run.text)


def test_the_gate_takes_one_dtype_of_each_operator(tmp_path: Path) -> None:
    options = (
        "conformance/src/torch_conformance/opinfo",
        "--list",
        "--check=opinfo/*",
        "--tier=pr",
    )
    done = subprocess.run(
        [*harness.command(harness.PLANTED, *options), "-p", "no:randomly"],
        cwd=harness.ROOT,
        env=harness.environment(tmp_path),
        capture_output=True,
        text=True,
    )
    ids = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("opinfo/")]
    assert "opinfo/forward:sinh:float32" in ids
    assert "opinfo/forward:gcd:int64" in ids
    assert "opinfo/forward:sinh:float64" not in ids
    assert len(ids) == len({id.rpartition(":")[0] for id in ids if id.count(":") == 2}) + sum(
        id.count(":") == 1 for id in ids
    )


@pytest.mark.parametrize(
    ("tier", "dtypes", "expected"),
    [
        (None, None, ("standard", ())),
        ("inference", None, ("standard", ())),
        ("pr", None, ("pr", ())),
        ("pr", "all", ("full", ())),
        (None, "pr", ("pr", ())),
        (None, "float32,int64", ("standard", ("float32", "int64"))),
    ],
)
def test_dtypes_are_chosen_by_tier_word_or_name(
    tier: str | None, dtypes: str | None, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert suite.selection(tier, dtypes) == expected


def test_shards_are_disjoint_and_complete(tmp_path: Path) -> None:
    shards = [
        listed(harness.run(tmp_path, harness.PLANTED, "--list", f"--shard={i}/3").text)
        for i in (1, 2, 3)
    ]
    assert sum(map(len, shards)) == len(set().union(*shards)) == 55
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.nightly
def test_xdist_gives_the_same_report(tmp_path: Path) -> None:
    alone = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", *QUICK).outcomes
    shared = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "-n2", *QUICK)
    assert shared.outcomes == alone
    assert shared.report["complete"] is True
    assert shared.report["run"]["capabilities"]["accelerator"]["value"] is False
    assert shared.code == 1
    assert len(alone) == 23


def test_two_backends_have_a_report_each(tmp_path: Path) -> None:
    second = harness.descriptor(tmp_path, "device_type: cpu\n")
    options = ("--backend=cpu", second, "--report={backend}.json", "--check=planted/good*")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert run.code == 0
    for name in ("cpu", "subject"):
        report = harness.Run(0, "", tmp_path / f"{name}.json")
        assert report.report["run"]["backend"] == name
        assert len(report.outcomes) == 20


def test_a_run_without_isolation_judges_alike(tmp_path: Path) -> None:
    options = ("--backend=cpu", "--isolate=none", "--check=planted/good*", "--check=planted/wrong*")
    outcomes = harness.run(tmp_path, harness.PLANTED, *options).outcomes
    assert {id.partition(":")[0]: outcome for id, outcome in outcomes.items()} == {
        "planted/good": "pass",
        "planted/wrong": "fail",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--backend=nosuch",), ("nosuch", "cpu", "puone", "--backend-file", "entry point")),
        ((), ("--backend=",)),
        (("--backend=cpu", "--check=planted/nothing"), ("planted/nothing", "--list")),
        (("--backend=cpu", "--check=pl*d/good"), ("only allowed at the end",)),
        (("--backend=cpu", "--shard=3/2"), ("3/2",)),
        (("--backend=cpu", "--shard-by=before.json"), ("--shard-by", "--shard I/N")),
        (
            ("--backend=cpu", "--shard=1/2", f"--shard-by={harness.ROOT / 'README.md'}"),
            ("--shard-by", "README.md: not JSON"),
        ),
        (("--backend=cpu", "--dtypes=float32,all"), ("--dtypes", "'all' stands alone")),
        (("--backend=cpu", "--backend-file=absent.yaml"), ("absent.yaml",)),
    ],
)
def test_misuse_is_explained(
    tmp_path: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert run.code == 4
    for word in words:
        assert word in run.text


@pytest.mark.parametrize(
    ("folder", "check", "other"),
    [
        ("opinfo", "opinfo/forward:abs:float32", "opinfo/gradient:abs:float32"),
        ("checks/operator/indexing.py", "operator/index:rows", "operator/linalg:qr"),
    ],
)
def test_expectations_of_files_that_are_not_looked_at_are_left_alone(
    tmp_path: Path, folder: str, check: str, other: str
) -> None:
    listed = tmp_path / "expected.yaml"
    entry = "reason: r, link: 'https://x', status: fail, expires: 2999-01-01"
    listed.write_text(f"xfail:\n- {{id: '{other}', {entry}}}\n")
    options = ("--backend=cpu", f"--check={check}", "--list")
    done = subprocess.run(
        [
            *harness.command(
                harness.PLANTED,
                f"conformance/src/torch_conformance/{folder}",
                *options,
                f"--expectations={listed}",
            )
        ],
        cwd=harness.ROOT,
        env=harness.environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert f"{check}  [" in done.stdout


def test_nothing_executed_is_a_failure(tmp_path: Path) -> None:
    run = harness.run(
        tmp_path,
        harness.PLANTED,
        "--backend=cpu",
        "--check=planted/lacking",
        "--check=planted/declines",
    )
    assert run.code == 65
    assert "NOTHING EXECUTED" in run.text
    assert set(run.outcomes.values()) == {"unsupported"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no driver found')", "RuntimeError: no driver found"),
        ("import no_such_sdk", "ModuleNotFoundError: No module named 'no_such_sdk'"),
        ("raise SystemExit('licence expired')", "SystemExit: licence expired"),
        ("import os; os.abort()", "SIGABRT while loading"),
        ("import time; time.sleep(600)", "did not load within 3 s"),
    ],
)
def test_a_backend_that_does_not_load_says_why(tmp_path: Path, source: str, reason: str) -> None:
    (tmp_path / "vendor_module.py").write_text(source)
    text = "device_type: cpu\nimport: {after_torch: [vendor_module]}\ndeadlines: {startup: 3}\n"
    run = harness.run(tmp_path, harness.PLANTED, harness.descriptor(tmp_path, text))
    assert run.code == 66
    assert reason in run.report["run"]["cannot_load"]
    assert f"backend subject cannot be loaded: {reason}" in run.text
    assert run.report["complete"] is False
    assert run.report["checks"] == []


def test_a_torch_outside_of_the_descriptors_range_is_not_tested(tmp_path: Path) -> None:
    option = harness.descriptor(tmp_path, "device_type: cpu\ntorch: '<2.0'\n")
    run = harness.run(tmp_path, harness.PLANTED, option)
    assert run.code == 66
    assert "is outside '<2.0'" in run.text


def test_the_plugin_alone_does_not_import_torch() -> None:
    code = "import sys, torch_conformance.plugin; sys.exit('torch' in sys.modules)"
    environment = harness.environment(Path())
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_a_device_for_one_process_is_never_used_by_two(tmp_path: Path) -> None:
    text = (
        "device_type: cpu\nsingle_process: true\nchunk: 7\ndevice:\n"
        "  setup: particular_device:Exclusive\n  teardown: particular_device:Exclusive.close\n"
    )
    options = (harness.descriptor(tmp_path, text), "--workers=4", *QUICK, "--check=planted/alone*")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    outcomes = list(run.outcomes.values())
    assert {name: outcomes.count(name) for name in set(outcomes)} == {
        "pass": 22,
        "fail": 2,
        "crash": 1,
    }
    assert "closed" in (tmp_path / "pids").read_text(), "the teardown was not called"


def test_workers_are_started_through_the_launcher(tmp_path: Path) -> None:
    text = "device_type: cpu\ndevice: {setup: 'particular_device:launched'}\n"
    plain = harness.descriptor(tmp_path, text)
    run = harness.run(tmp_path, harness.PLANTED, plain, "--check=planted/good*")
    assert (run.code, run.report["run"]["cannot_load"]) == (66, "RuntimeError: use the launcher")
    option = harness.descriptor(tmp_path, text + "launcher: [env, PLANTED_LAUNCHER=used]\n")
    run = harness.run(tmp_path, harness.PLANTED, option, "--check=planted/good*")
    assert set(run.outcomes.values()) == {"pass"}


@pytest.mark.nightly
def test_a_launcher_may_fork(tmp_path: Path) -> None:
    """Such as `timeout` and `srun`: the worker's parent is then not the runner."""
    option = harness.descriptor(
        tmp_path, "device_type: cpu\nlauncher: [sh, -c, '\"$@\"; exit $?', sh]\n"
    )
    checks = ("--check=planted/good:before_1", "--check=planted/hang")
    run = harness.run(tmp_path, harness.PLANTED, option, *checks)
    assert run.outcomes == {"planted/good:before_1": "pass", "planted/hang": "timeout"}
    hang = run.check("planted/hang")["message"]
    assert hang.startswith("silent for 2 s in hangs_with_the_gil (planted/torture.py:")
