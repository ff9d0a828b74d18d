# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions of the backend are errors of the backend, whatever their type and wherever raised."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy.testing
import pytest
import torch

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.observe import in_thread
from torch_conformance.authoring.refusal import refuses
from torch_conformance.opinfo import database
from torch_conformance.opinfo.forward import Forward
from torch_conformance.opinfo.out import Out
from torch_conformance.running.capability_probes import Probe
from torch_conformance.running.execute import execute
from torch_conformance.running.result import Result
from torch_conformance.spec import descriptor

BACKEND = """
class Queue:
    depth = None

def launch():
    assert Queue.depth, "the queue is empty"

def unnamed():
    assert Queue.depth

def seeds(device):
    return device

def looks_up():
    return Queue.depth.limit

def __getattr__(name):
    raise AttributeError(f"module 'mychip' has no attribute {name!r}")
"""
HELPER = "def compare(a, b):\n    assert a == b, f'{a} is not {b}'\n"


def module(file: Path, code: str) -> Any:
    """A module made of code in a file."""
    file.write_text(code)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def mychip(tmp_path: Path) -> Any:
    """A backend in Python, in a directory of its own."""
    folder = tmp_path / "torch_mychip"
    folder.mkdir()
    return module(folder / "mychip.py", BACKEND)


@pytest.fixture
def dev() -> Device:
    """The CPU."""
    return Device(descriptor.find("cpu"))


def run(dev: Device, body: Callable[[Device], Any], file: str = __file__) -> Result:
    """The result of a check of this file."""
    return execute(Check("a/b", (), body, file=file), dev)


def native() -> None:
    """Native code that raises AssertionError."""
    ctypes.pythonapi.PyErr_SetString(ctypes.py_object(AssertionError), b"refcount is 0")


def test_an_assertion_of_the_backend_is_an_error(dev: Device, mychip: Any) -> None:
    result = run(dev, lambda dev: mychip.launch())
    assert (result.outcome, result.message) == ("error", "AssertionError: the queue is empty")
    assert run(dev, lambda dev: in_thread(mychip.launch)).outcome == "error"
    assert run(dev, lambda dev: mychip.unnamed()).message == "AssertionError"


def test_an_assertion_of_native_code_is_an_error(dev: Device) -> None:
    result = run(dev, lambda dev: native())
    assert (result.outcome, result.message) == ("error", "AssertionError: refcount is 0")


def test_a_failed_comparison_is_a_failure_in_the_check_beside_it_and_in_libraries(
    dev: Device, tmp_path: Path
) -> None:
    helper = module(tmp_path / "helper.py", HELPER)
    chapter = str(tmp_path / "chapter.py")
    comparisons: list[Callable[[Device], Any]] = [
        lambda dev: helper.compare(1, 2),
        lambda dev: torch.testing.assert_close(torch.ones(2), torch.zeros(2)),
        lambda dev: numpy.testing.assert_equal(1, 2),
        lambda dev: dev.assert_equal(torch.ones(2), torch.zeros(2)),
    ]
    assert {run(dev, body, chapter).outcome for body in comparisons} == {"fail"}
    # What is elsewhere is somebody else's.
    assert run(dev, lambda dev: helper.compare(1, 2)).outcome == "error"


def test_an_assertion_without_a_message_names_its_expression(dev: Device) -> None:
    ready, counts = False, [1, 2]

    def flag(dev: Device) -> None:
        assert ready

    def count(dev: Device) -> None:
        assert (
            len(counts) == 3  # which is not so
        )

    first, second = run(dev, flag), run(dev, count)
    assert first.outcome == second.outcome == "fail"
    assert first.message.splitlines()[:2] == ["assert ready", "assert False"]
    assert second.message.splitlines()[:2] == ["assert len(counts) == 3", "assert 2 == 3"]


def test_an_assertion_that_was_not_rewritten_names_its_expression_too(
    dev: Device, tmp_path: Path
) -> None:
    helper = module(
        tmp_path / "helper.py", "def check(x):\n    assert x > 1 and isinstance(x, int)\n"
    )
    result = run(dev, lambda dev: helper.check(0), str(tmp_path / "chapter.py"))
    assert result.message == "assert x > 1 and isinstance(x, int)"


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch, mychip: Any) -> None:
    """One whose get_rng_state wants an argument that it need not have, called for any operator."""
    monkeypatch.setattr(torch, "get_rng_state", lambda: mychip.seeds())


@pytest.mark.parametrize("topic", [Forward, Out])
def test_an_error_of_the_backend_is_nothing_that_the_cpu_lacks(
    dev: Device, accelerator: None, topic: type[Forward | Out]
) -> None:
    op = next(op for op in database.operators() if op.name == "bernoulli")
    result = run(dev, lambda dev: topic(op)(dev, torch.float32))
    assert result.outcome == "error"
    assert "missing 1 required positional argument: 'device'" in result.message


def test_what_the_cpu_itself_refuses_is_still_incomparable(dev: Device) -> None:
    op = next(op for op in database.operators() if op.name == "nn.functional.avg_pool2d")
    result = run(dev, lambda dev: Forward(op)(dev, torch.complex64))
    assert result.outcome == "unsupported"
    assert "the CPU gives nothing to compare with" in str(result.reason)


def test_an_attribute_that_the_backend_lacks_means_absent_and_one_lost_inside_means_broken(
    dev: Device, mychip: Any
) -> None:
    assert Probe(lambda dev: mychip.mem_get_info())(dev) is False
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'limit'"):
        Probe(lambda dev: mychip.looks_up())(dev)


def test_a_refusal_is_known_by_its_type_or_its_words() -> None:
    assert refuses(NotImplementedError("aten::x"))
    assert refuses(RuntimeError("Backend doesn't support events."))
    assert refuses(RuntimeError("fused=True needs supported devices"), words="supported devices")
    assert not refuses(RuntimeError("kernel launch failed: out of registers"))
