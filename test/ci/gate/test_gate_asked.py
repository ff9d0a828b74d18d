# SPDX-License-Identifier: BSD-3-Clause
"""A configuration that has run another torch, backend or driver than it must is never green."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest
import synthetic
from gating import Gate, content, records

from torch_backend_ci.checkout import ROOT
from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import asked, policy
from torch_backend_ci.gate.verdict import Outcome
from torch_backend_ci.pin import file as pins
from torch_backend_ci.pin.model import Torch
from torch_conformance.results import junit, reader

POLICIES = sorted((ROOT / "ci" / "gate").glob("*.yaml"))
LANE = "development-sim"
OTHER = "0" * 40
Run = dict[str, Any]


def torch_of(pin: str) -> Torch:
    torch = pins.read(pin).torch
    assert torch is not None
    return torch


RIGHT = torch_of("development")
TORCHES = {
    "the pinned one": {"version": RIGHT.version, "git": RIGHT.git_version},
    "its build for CPUs": {"version": f"{RIGHT.version}+cpu", "git": RIGHT.git_version},
    "another version": {"version": "2.13.1", "git": RIGHT.git_version},
    "that of another pin": {"version": torch_of("newest").version, "git": OTHER},
    "another commit of the version": {"version": RIGHT.version, "git": OTHER},
    "no commit": {"version": RIGHT.version, "git": None},
    "another commit and version": {"version": "2.14.0", "git": OTHER},
}
RIGHT_TORCHES = ("the pinned one", "its build for CPUs")
BACKENDS = ("puone", "cpu", "puone_driver")
DRIVERS: dict[str, dict[str, Any] | None] = {
    "sim": {"name": "sim"},
    "cuda": {"name": "cuda"},
    "none": None,
    "without a name": {"path": "sim"},
    "a name that is not text": {"name": ["sim"]},
}
FORMS = ("one report", "shards", "JUnit")
BASELINES = ("of the same", "none")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    made = Gate(tmp_path)
    made.policy.write_text(
        f"lanes: {{{LANE}: {{required: true, pin: development, backend: puone, driver: sim}}}}\n"
        "without_baseline: note\nmay_differ: [backend]\n"
    )
    return made


def hand_in(gate: Gate, form: str, **run: Any) -> None:
    """The run to judge, in one of the forms that the gate takes."""
    files = gate.after(lane=LANE, shards=2 if form == "shards" else 1, **run)
    if form == "JUnit":
        run_ = reader.load(files[0])
        text = junit.junit(run_.run.backend, run_.run.started, run_.checks)
        files[0].with_suffix(".xml").write_text(text)
        files[0].unlink()


@pytest.mark.parametrize("torch", TORCHES)
def test_only_a_run_of_the_right_torch_backend_and_driver_is_green(gate: Gate, torch: str) -> None:
    wrong = []
    for backend, driver, form, before in itertools.product(BACKENDS, DRIVERS, FORMS, BASELINES):
        run: Run = {"torch": TORCHES[torch], "backend": backend, "driver": DRIVERS[driver]}
        for folder in (gate.baseline, gate.candidate / LANE):
            for old in folder.glob("*"):
                old.unlink()
        if before == "of the same":
            gate.before(lane=LANE, **run)
        hand_in(gate, form, **run)
        status, made = gate.run("--merged", str(gate.root / "merged"))
        right = torch in RIGHT_TORCHES and (backend, driver) == ("puone", "sim")
        right &= form != "JUnit"  # which tells neither
        kept = (gate.root / "merged" / f"{LANE}.json.gz").exists()
        (gate.root / "merged" / f"{LANE}.json.gz").unlink(missing_ok=True)
        told = [said for lane in made.lanes for said in lane.problems]
        expected = (Exit.OK, Outcome.OK, True) if right else (2, Outcome.INFRASTRUCTURE, False)
        if (status, made.outcome, kept) != expected or bool(told) == right:
            wrong.append((backend, driver, form, before, status, told))
    assert not wrong


@pytest.mark.parametrize(
    "lanes", list(itertools.product(("development", "oldest", "newest"), repeat=3))
)
def test_reports_that_came_to_each_others_configuration_are_not_green(
    gate: Gate, lanes: tuple[str, ...]
) -> None:
    pinned = ("development", "oldest", "newest")
    asks = "".join(
        f"  {pin}-sim: {{required: true, pin: {pin}, backend: puone, driver: sim}}\n"
        for pin in pinned
    )
    gate.policy.write_text(f"lanes:\n{asks}without_baseline: note\n")
    for place, has_run in zip(pinned, lanes, strict=True):
        torch = torch_of(has_run)
        said = {"version": torch.version, "git": torch.git_version}
        gate.after(lane=f"{place}-sim", torch=said, backend="puone", driver={"name": "sim"})
    status, made = gate.run(baseline=False)
    right = [place == has_run for place, has_run in zip(pinned, lanes, strict=True)]
    assert status == (Exit.OK if all(right) else Exit.UNUSABLE)
    assert [lane.outcome is Outcome.OK for lane in made.lanes] == right


def test_a_shard_of_another_torch_is_found_among_right_ones(gate: Gate) -> None:
    run: Run = {"backend": "puone", "driver": {"name": "sim"}}
    files = gate.after(lane=LANE, shards=3, torch=TORCHES["the pinned one"], **run)
    wrong = content(records(), torch=TORCHES["another version"], **run)
    synthetic.write(files[1], synthetic.shards(wrong, 3)[1])
    assert "torch is 2.13.1, pin development asks for 2.13.0" in gate.refused()


def test_the_headline_says_why_there_is_no_usable_result(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(gate, "one report", torch=TORCHES["no commit"], backend="cpu", driver=None)
    gate.run()
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "infrastructure: No usable result on development-sim: the commit of torch is unknown, pin "
        f"development asks for {RIGHT.git_version[:12]}."
    )


def test_the_headline_names_what_was_lost(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    run: Run = {"torch": TORCHES["the pinned one"], "backend": "puone", "driver": {"name": "sim"}}
    gate.before(lane=LANE, **run)
    gate.after(lane=LANE, without=synthetic.check_id("COPY-001"), **run)
    assert gate.run()[0] == Exit.UNUSABLE
    said = "checks of the run before that have no result now: 1: copy/copy_001:c0"
    assert capsys.readouterr().out.startswith(
        f"infrastructure: No usable result on development-sim: {said}."
    )


def test_a_pin_without_a_version_makes_its_configuration_unusable(gate: Gate) -> None:
    gate.policy.write_text(gate.policy.read_text().replace("pin: development", "pin: nightly"))
    gate.after(lane=LANE, backend="puone", driver={"name": "sim"})
    assert "pin nightly has no version: nobody has looked" in gate.refused()


def test_the_command_line_may_ask_for_more_and_for_a_descriptor(gate: Gate) -> None:
    gate.policy.write_text(f"lanes: {{{LANE}: {{required: true}}}}\nwithout_baseline: note\n")
    descriptor = gate.root / "mychip.yaml"
    descriptor.write_text("device_type: mychip\n")
    digest = hashlib.sha256(descriptor.read_bytes()).hexdigest()
    asks = (
        *("--ask", f"{LANE}.pin=development"),
        *("--ask", f"{LANE}.descriptor={descriptor}"),
    )
    right = {"file": "mychip.yaml", "sha256": digest}
    gate.after(lane=LANE, torch=TORCHES["the pinned one"], descriptor=right)
    assert gate.run(*asks)[0] == Exit.OK
    gate.after(lane=LANE, torch=TORCHES["the pinned one"], descriptor=right | {"sha256": "0" * 64})
    assert "descriptor is 000000000000" in gate.refused(*asks)
    gate.after(lane=LANE, torch=TORCHES["another version"], descriptor=right)
    assert "torch is 2.13.1, pin development asks for 2.13.0" in gate.refused(*asks)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "pin=development",
        f"{LANE}.pin",
        f"{LANE}.pin=",
        f"{LANE}.torch=2.13.0",
        "unheard-of.pin=development",
        f"{LANE}.pin=unheard-of",
        f"{LANE}.pin=../../secrets",
        f"{LANE}.descriptor=/nowhere.yaml",
        f"{LANE}.descriptor=/dev/zero",
    ],
)
def test_a_word_that_asks_for_nothing_known_is_refused(gate: Gate, word: str) -> None:
    gate.after(lane=LANE)
    words = ["gate", "--candidate", str(gate.candidate), "--policy", str(gate.policy)]
    assert main([*words, "--ask", word]) == Exit.UNUSABLE


def test_a_policy_asks_for_a_pin_or_a_version(gate: Gate) -> None:
    gate.policy.write_text(
        f"lanes: {{{LANE}: {{required: true, pin: development, torch: 2.13.0}}}}\n"
    )
    words = ["gate", "--candidate", str(gate.candidate), "--policy", str(gate.policy)]
    assert main(words) == Exit.UNUSABLE


@pytest.mark.parametrize(
    "path", [p for p in POLICIES if p.stem not in ("vendor", "foreign")], ids=lambda p: p.stem
)
def test_our_policies_say_what_each_configuration_must_have_run(path: Path) -> None:
    for lane, must in asked.of(policy.load(path)).items():
        pin, _, driver = lane.rpartition("-")
        assert (must.source, must.backend, must.driver) == (f"pin {pin}", "puone", driver) or (
            must.unknown and f"pin {pin}" in must.unknown
        )


def test_the_runs_of_public_backends_must_be_of_these_backends() -> None:
    (path,) = (p for p in POLICIES if p.stem == "foreign")
    found = asked.of(policy.load(path))
    assert found
    for lane, must in found.items():
        assert (must.source, must.backend) == ("pin development", lane)
