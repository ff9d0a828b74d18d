# SPDX-License-Identifier: BSD-3-Clause
"""How programs end is found out without a fork wherever a forked child cannot use the device."""

from __future__ import annotations

import pathlib

import pytest

from torch_conformance.authoring import departure
from torch_conformance.authoring.device import Device
from torch_conformance.running import capability_probes
from torch_conformance.spec.descriptor import Descriptor, Imports

#: A backend whose import starts what a fork loses: a child waits for it for ever.
_BACKEND = """
import os, time
os.register_at_fork(after_in_child=lambda: time.sleep(600))
"""
_PROGRAMS = {"quiet": "print('done')\n", "loud": "import sys\nsys.exit(3)\n"}


def device(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, source: str) -> Device:
    """The CPU as a backend that runs `source` when it is imported."""
    (tmp_path / "lingering.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(departure, "_known", {})
    monkeypatch.setattr(departure, "PROBE_LIMIT", 1)
    target = Descriptor(name="cpu", device_type="cpu", imports=Imports(after_torch=("lingering",)))
    return Device(target)


@pytest.mark.parametrize("source", ["", _BACKEND], ids=["forkable", "hangs_in_children"])
def test_programs_end_with_their_own_status(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    found = departure.ends(device(tmp_path, monkeypatch, source), _PROGRAMS)
    assert {name: end.status for name, end in found.items()} == {"quiet": 0, "loud": 3}
    assert found["quiet"].output == "done\n"


@pytest.mark.parametrize("source", ["", _BACKEND], ids=["forked", "fresh"])
def test_a_program_that_hangs_is_ended_at_its_limit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(departure, "LIMIT", 3)
    hang = {"hang": "import time\ntime.sleep(600)\n"}
    assert departure.ends(device(tmp_path, monkeypatch, source), hang)["hang"].status == -14


@pytest.mark.parametrize(("source", "can"), [("", True), (_BACKEND, False)])
def test_a_fork_is_a_capability_if_the_child_can_use_the_device(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, source: str, can: bool
) -> None:
    quick = capability_probes._FORK.replace("+ 8", "+ 1")
    monkeypatch.setattr(capability_probes, "_FORK", quick)
    assert capability_probes.PROBES["fork"](device(tmp_path, monkeypatch, source)) is can


def test_of_an_exception_with_a_long_message_the_beginning_is_shown() -> None:
    registered = "".join(
        f"  Key{number}: registered at file.cpp:{number}\n" for number in range(400)
    )
    output = (
        "noise\nTraceback (most recent call last):\n"
        '  File "<string>", line 3, in <module>\n'
        f"NotImplementedError: Could not run 'aten::cat.out' on mychip.\n{registered}"
    )
    shown = departure.tail(output)
    assert "noise" not in shown and len(shown) <= departure.TAIL
    assert "Could not run 'aten::cat.out'" in shown
    # Behind many frames, too, with those that are near.
    deep = output.replace("NotImpl", '  File "deep.py", line 8, in f\n    f()\n' * 100 + "NotImpl")
    for shown in (departure.tail(deep), departure.tail(deep.replace(registered, ""))):
        assert "Could not run 'aten::cat.out'" in shown and len(shown) <= departure.TAIL
    assert shown.count("deep.py") > 30 and "<string>" not in shown
    # A signal ends a process later, and says why at the end.
    end = departure.tail(output + "terminate called\n", of_exception=False)
    assert end.endswith("terminate called\n") and "Could not run" not in end
