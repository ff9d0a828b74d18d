# SPDX-License-Identifier: BSD-3-Clause
"""A capability is present, absent or broken, and what needs a broken one fails."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
import synthetic
import torch
from suites import run_pytest
from torch.testing._internal.two_tensor import TwoTensor

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.expectations import Expectations
from torch_conformance.judging.judge import Judge, Options
from torch_conformance.results import levels
from torch_conformance.running import capability_probes, probes
from torch_conformance.running.capability_probes import ATTEMPTS, PROBES, Body, Probe
from torch_conformance.running.execute import execute
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec import capabilities, catalogue
from torch_conformance.spec.capabilities import COSTLY, Capabilities, State
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.reason import MissingCapability, Stated, Unsupported

CPU = Descriptor(name="cpu", device_type="cpu")
NAME = "streams"


def raising(error: Exception) -> Body:
    """The body of a probe that raises."""

    def body(dev: Device) -> NoReturn:
        raise error

    return body


def wrong(dev: Device) -> bool:
    """The body of a probe that gets a wrong answer."""
    assert dev.type == "streams", "1 is 2"
    return True


def plant(monkeypatch: pytest.MonkeyPatch, body: Body, attempts: int = 1) -> None:
    """Let the probe of `NAME` be another one."""
    monkeypatch.setitem(PROBES, NAME, Probe(body, attempts=attempts))


def found_in_process(declared: bool | None = None) -> Capabilities:
    """What probing `NAME` in this process comes to."""
    target = Descriptor(
        name="cpu", device_type="cpu", capabilities={} if declared is None else {NAME: declared}
    )
    result = execute(probes.check_of(NAME), Device(CPU))
    return Capabilities.of(probes.capabilities(target, [result]))


@pytest.mark.parametrize(
    ("body", "state", "seen"),
    [
        (lambda dev: True, State.PRESENT, None),
        (lambda dev: False, State.ABSENT, None),
        (raising(NotImplementedError("aten::x")), State.ABSENT, None),
        (raising(AttributeError("no stream")), State.ABSENT, None),
        (raising(RuntimeError("Backend doesn't support events.")), State.ABSENT, None),
        (raising(RuntimeError("Allocator for x is not a DeviceAllocator.")), State.ABSENT, None),
        (raising(Unsupported(Stated(text="not on the CPU"))), State.ABSENT, None),
        (raising(RuntimeError("boom")), State.BROKEN, "its probe raised RuntimeError: boom"),
        (raising(TypeError("a\nb")), State.BROKEN, "its probe raised TypeError: a"),
        (wrong, State.BROKEN, "its probe found that 1 is 2"),
    ],
)
def test_a_probe_finds_one_of_three_states(
    monkeypatch: pytest.MonkeyPatch, body: Body, state: State, seen: str | None
) -> None:
    plant(monkeypatch, body)
    found = found_in_process()
    assert found.state(NAME) is state
    assert found.broken.get(NAME) == seen


@pytest.mark.parametrize("declared", [True, False])
def test_a_declaration_counts_whatever_a_probe_would_see(
    monkeypatch: pytest.MonkeyPatch, declared: bool
) -> None:
    plant(monkeypatch, raising(RuntimeError("boom")))
    expected = State.PRESENT if declared else State.ABSENT
    assert found_in_process(declared).state(NAME) is expected


def test_a_probe_that_crashes_or_hangs_means_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(dev: Device) -> NoReturn:
        os.abort()

    def hang(dev: Device) -> bool:
        time.sleep(600)
        return True

    monkeypatch.setattr(probes, "PROBE_DEADLINE", 3.0)
    monkeypatch.setitem(PROBES, "events", Probe(crash))
    monkeypatch.setitem(PROBES, "generator", Probe(hang))
    results: list[Result] = []
    pool = Pool(CPU, Options())
    try:
        pool.run([probes.check_of("events"), probes.check_of("generator")], results.append)
    finally:
        pool.close()
    found = Capabilities.of(probes.capabilities(CPU, results))
    assert found.broken["events"].startswith("its probe crashed: SIGABRT")
    assert found.broken["generator"].startswith("its probe hung: silent for 3 s")


def test_a_slow_machine_gets_more_than_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[bool] = iter([False, False, True])
    plant(monkeypatch, lambda dev: next(answers), attempts=ATTEMPTS)
    assert found_in_process().state(NAME) is State.PRESENT


def test_the_probes_that_measure_time_are_repeated() -> None:
    assert {name for name, probe in PROBES.items() if probe.attempts > 1} == {
        "delay",
        "async_copy",
    }


def test_a_probe_that_loads_the_backend_again_may_take_as_long_as_that() -> None:
    assert probes.check_of("events", 30.0).deadline == probes.PROBE_DEADLINE
    for name in ("fork", "error_recovery"):
        assert probes.check_of(name, 30.0).deadline == probes.PROBE_DEADLINE + 30.0


def test_a_handle_is_no_address_however_far_it_is_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PROBES["addresses"](Device(CPU))
    handles = iter(range(0x5640_0000_0000, 0x5650_0000_0000, 4096))
    monkeypatch.setattr(torch.Tensor, "data_ptr", lambda tensor: next(handles))
    assert not PROBES["addresses"](Device(CPU))


def test_a_tensor_that_wraps_others_has_no_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROBES["storages"](Device(CPU))
    wrapped = TwoTensor(torch.ones(4), torch.ones(4))
    monkeypatch.setattr(torch, "zeros", lambda *sizes, **options: wrapped)
    assert not PROBES["storages"](Device(CPU))


@pytest.mark.parametrize("refused", [False, True])
def test_a_driver_that_refuses_to_inject_faults_does_not_have_the_capability(
    monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    def reset() -> None:
        if refused:
            raise NotImplementedError("the driver has no extension fault")

    monkeypatch.setattr(torch, "faults", SimpleNamespace(reset=reset), raising=False)
    target = Descriptor(name="cpu", device_type="cpu", fault="torch.faults")
    assert PROBES["fault_injection"](Device(target)) is not refused


def test_a_process_group_that_nobody_registered_is_a_wrong_name_in_the_descriptor() -> None:
    target = Descriptor(name="cpu", device_type="cpu", process_group="glo")
    with pytest.raises(AssertionError) as raised:
        PROBES["collectives"](Device(target))
    assert "has no backend 'glo', which the descriptor's process_group names" in str(raised.value)
    assert " fake, gloo," in str(raised.value)


def test_a_narrower_type_in_the_place_of_another_means_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Narrow(Device):
        """A device that keeps float64 as float32."""

        def device(self, index: int | None = None) -> torch.device:
            return torch.device("cpu")

    real = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda t: real(t).float().double())
    with pytest.raises(AssertionError, match=r"of float64 came back as 1\.0"):
        capability_probes.dtype_probe("float64")(Narrow(CPU))


def judge() -> Judge:
    """The judge of a backend without a descriptor."""
    return Judge(CPU, catalogue.load(), Expectations(), "2.13.0", lambda id: id)


def needing(*names: str) -> Check:
    """A check that needs capabilities."""
    return Check("stream/a", ("DEV-001",), lambda dev: None, needs=names)


def test_a_check_that_needs_a_broken_capability_fails_with_what_was_seen() -> None:
    known = Capabilities(frozenset({"accelerator"}), {NAME: "its probe raised KeyError"})
    (decided,) = judge().plan([needing(NAME)], known).decided
    assert decided.outcome == "fail"
    assert decided.message == "capability 'streams' is broken: its probe raised KeyError"


def test_a_check_that_also_needs_an_absent_capability_is_unsupported() -> None:
    known = Capabilities(frozenset({"accelerator"}), {NAME: "its probe raised KeyError"})
    (decided,) = judge().plan([needing(NAME, "sparse")], known).decided
    assert decided.outcome == "unsupported"
    assert decided.reason == MissingCapability(names=("sparse",))


def test_a_running_check_fails_where_it_asks_for_a_broken_capability() -> None:
    dev = Device(CPU)
    dev.broken = {NAME: "its probe crashed: SIGSEGV"}
    result = execute(Check("a/b", (), lambda dev: dev.require(NAME)), dev)
    assert result.outcome == "fail"
    assert result.message == "capability 'streams' is broken: its probe crashed: SIGSEGV"


def test_what_takes_seconds_is_only_probed_where_it_is_needed() -> None:
    everything = {check.id for check in probes.to_probe(CPU)}
    assert {check.id for check in probes.to_probe(CPU, {"streams"})} == everything - {
        f"probe/{name}" for name in COSTLY
    }
    assert "probe/profiler" in {check.id for check in probes.to_probe(CPU, {"profiler"})}
    assert capabilities.MEANING.keys() - probes.capabilities(CPU, []).keys() == COSTLY


@pytest.mark.parametrize("name", sorted(COSTLY))
def test_a_running_check_cannot_ask_for_what_may_not_have_been_probed(name: str) -> None:
    dev = Device(CPU)
    for ask in (dev.has, dev.require):
        with pytest.raises(ValueError, match="add it to `needs` of @check"):
            ask(name)


def test_a_check_that_forks_declares_its_need() -> None:
    with pytest.raises(ValueError, match="add it to `needs` of @check"):
        Device(CPU).fork(lambda: None)


def test_a_run_probes_what_its_checks_need_those_of_other_shards_too(tmp_path: Path) -> None:
    def probed(*options: str) -> set[str]:
        report = tmp_path / "report.json"
        done = run_pytest(["conformance", "--backend=cpu", f"--report={report}", *options])
        assert done.returncode in (0, 65), done.stdout  # 65: all of a shard was unsupported
        return COSTLY & json.loads(report.read_text())["run"]["capabilities"].keys()

    some = ("--check=profiler/sessions", "--check=smoke/descriptor_names")
    assert probed(some[1]) == set()
    assert probed(*some, "--shard=1/2") == probed(*some, "--shard=2/2") == {"profiler"}


def test_every_capability_with_a_key_of_the_descriptor_exists() -> None:
    assert set(capabilities.KEYS) <= set(capabilities.MEANING)


def test_a_level_counts_the_musts_that_absent_capabilities_excuse() -> None:
    must = sorted(
        id for id, r in synthetic.requirements().items() if r.tier == "core" and r.level == "must"
    )
    records = [synthetic.record(id) for id in synthetic.requirements() if id not in must[:2]]
    reason = synthetic.needs("sparse")
    records += [synthetic.record(id, "unsupported", reason=reason) for id in must[:2]]
    content = synthetic.content(records)
    content["run"]["capabilities"]["sparse"]["value"] = False
    core = levels.assess(synthetic.document(content).report).steps[0]
    assert core.excused == tuple(must[:2])


def test_a_broken_capability_excuses_nothing_and_blocks_the_level_that_demands_it() -> None:
    content = synthetic.content()
    content["run"]["capabilities"]["generator"] |= {"value": False, "broken": "its probe hung"}
    core = levels.assess(synthetic.document(content).report).steps[0]
    assert [str(blocker) for blocker in core.blockers] == [
        "capability generator is broken, and the level demands it: its probe hung"
    ]


def test_a_probe_that_waits_for_loading_has_the_time_for_it() -> None:
    """Else it is killed, and the capability called broken, while it waits as it may."""
    waiting = {
        name for name, probe in PROBES.items() if "deadlines.startup" in getsource(probe.body)
    }
    assert waiting >= {"collectives", "ipc"}
    assert {name for name in waiting if not PROBES[name].loads} == set()
    assert probes.check_of("collectives", 60).deadline == probes.PROBE_DEADLINE + 60
