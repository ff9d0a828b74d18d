# SPDX-License-Identifier: BSD-3-Clause
"""A seed repeats its schedule, and a command tries many."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import Python

#: Forty increments on one stream, forty reads on another one, and no wait.
RACE = """
import torch, torch_puone, sys, time
writer, reader = torch.Stream("puone"), torch.Stream("puone")
value = torch.zeros(1, device="puone")
torch.accelerator.synchronize()
seen = []
for turn in range(40):
    with writer: value.add_(1)
    if ORDERED: reader.wait_stream(writer)
    with reader: seen.append(value.clone())
    if ORDERED: writer.wait_stream(reader)
    PAUSE
torch.accelerator.synchronize()
print([int(x) for x in torch.cat(seen).cpu()])
"""


def race(ordered: bool = False, pause: str = "pass") -> str:
    return RACE.replace("ORDERED", str(ordered)).replace("PAUSE", pause)


def seen(python: Python, seed: int, code: str) -> str:
    done = python(code, env={"PUONE_DRIVER": "sim", "PUONE_SIM_SEED": str(seed)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_seed_repeats_its_schedule_whatever_the_host_takes(python: Python) -> None:
    first = seen(python, 7, race())
    assert seen(python, 7, race()) == first
    assert seen(python, 7, race(pause="time.sleep(0.002 * (turn % 3))")) == first


def test_seeds_have_different_schedules(python: Python) -> None:
    assert len({seen(python, seed, race()) for seed in range(4)}) == 4


def test_a_backward_pass_repeats_its_schedule(python: Python) -> None:
    code = """
import torch, torch_puone
torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
x = torch.ones(1, device="puone", requires_grad=True)
total = torch.zeros(1, device="puone")
watcher = torch.Stream("puone")
seen = []
for factor in range(20):
    (x * factor).sum().backward()
    with watcher: seen.append(x.grad.clone())
torch.accelerator.synchronize()
print(torch.cat(seen).tolist())
"""
    assert len({seen(python, 3, code) for _ in range(3)}) == 1


def test_a_device_whose_host_pauses_goes_on(python: Python) -> None:
    code = """
import time, torch, torch_puone
host = torch.zeros(1).pin_memory()
source = torch.ones(1, device="puone")
for _ in range(20):
    source.mul_(1)
host.copy_(source, non_blocking=True)
end = time.monotonic() + 60
while host.item() != 1 and time.monotonic() < end:
    time.sleep(0.01)
print(host.item())
"""
    assert {seen(python, seed, code) for seed in range(3)} == {"1.0\n"}


def schedules(
    tmp_path: Path, code: str, *options: str, arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "torch_puone.schedules", *options, "--", str(program), *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_names_the_seeds_under_which_a_race_shows(
    tmp_path: Path, python: Python
) -> None:
    done = schedules(tmp_path, race(), "4", "--same-output", "--first", "3")
    assert done.returncode == 1, done.stderr
    found = re.search(r"(\d) of 4 schedules failed: ([\d, ]+)\n", done.stdout)
    assert found, done.stdout
    assert {int(seed) for seed in found[2].split(", ")} <= {3, 4, 5, 6}
    assert "to repeat the first: PUONE_DRIVER=sim PYTHONHASHSEED=" in done.stdout


def test_what_is_said_repeats_the_first_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PUONE_DRIVER", "PUONE_SIM_SEED", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    code = """
import sys, torch, torch_puone
print(torch.puone.driver_info()["name"])
raise SystemExit(sys.argv[1:])
"""
    done = schedules(tmp_path, code, "1", arguments=("a b", "--", "$HOME"))
    assert "  ['a b', '--', '$HOME']" in done.stdout, done.stdout + done.stderr
    [said] = [line for line in done.stdout.splitlines() if line.startswith("to repeat the first: ")]
    command = said.partition(": ")[2].replace("python", sys.executable, 1)
    again = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (again.stdout, again.stderr) == ("sim\n", "['a b', '--', '$HOME']\n")
    assert {"PUONE_SIM_SEED=0", "PYTHONHASHSEED=0"} <= set(said.split())


def test_the_command_finds_nothing_in_an_ordered_program(tmp_path: Path) -> None:
    done = schedules(tmp_path, race(ordered=True), "3", "--same-output")
    assert (done.returncode, done.stdout) == (0, "all of 3 schedules succeeded\n"), done.stdout


@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        ("raise SystemExit('wrong')", (), "exit status 1\n  wrong"),
        ("import time; time.sleep(60)", ("--timeout", "0.3"), "took too long"),
    ],
)
def test_the_command_reports_how_a_run_failed(
    tmp_path: Path, code: str, options: tuple[str, ...], said: str
) -> None:
    done = schedules(tmp_path, code, "1", *options)
    assert done.returncode == 1
    assert f"seed 0: {said}" in done.stdout
