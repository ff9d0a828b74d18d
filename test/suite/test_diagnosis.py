# SPDX-License-Identifier: BSD-3-Clause
"""A crash says which operator it was in, and whether the stack ran out."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.authoring.device import Device
from torch_conformance.judging.judge import Options
from torch_conformance.results.causes import cause
from torch_conformance.running import diagnosis, pool
from torch_conformance.running.death import without_harness
from torch_conformance.running.result import Result
from torch_conformance.spec.descriptor import Descriptor

CPU = Descriptor(name="cpu", device_type="cpu")
DIAGNOSING = Options(diagnose=True)

HAS_HANDLER = hasattr(torch._C, "_set_print_stack_traces_on_fatal_signal")
native = pytest.mark.skipif(not HAS_HANDLER, reason="this torch prints no native stacks")


def bad_address(dev: Device) -> None:
    """Let an operator write to an address that nothing is mapped at."""
    torch.frombuffer((ctypes.c_float * 4).from_address(64), dtype=torch.float32).add_(1)


def bad_address_again(dev: Device) -> None:
    """The same crash from another place."""
    torch.frombuffer((ctypes.c_float * 8).from_address(128), dtype=torch.float32).add_(1)


def crashes(*bodies: Callable[[Device], Any], options: Options = DIAGNOSING) -> list[Result]:
    """The results of checks with these bodies, in the order of their ids."""
    found: list[Result] = []
    runner = pool.Pool(CPU, options)
    try:
        checks = [Check(f"a/c{i}", (), body, file=__file__) for i, body in enumerate(bodies)]
        for check in checks:
            REGISTRY.add(check)  # Forked workers find them there.
        runner.run(checks, found.append)
    finally:
        runner.close()
    return sorted(found, key=lambda result: result.id)


@native
def test_crashes_in_one_operator_are_one_cause_wherever_they_came_from() -> None:
    results = crashes(bad_address, bad_address_again, bad_address, lambda dev: None)
    assert [result.outcome for result in results] == ["crash"] * 3 + ["pass"]
    causes = {cause(result) for result in results[:3]}
    assert causes == {"crash: SIGSEGV in aten::add_.Tensor"}
    first = results[0]
    assert first.message.splitlines()[1].startswith("in bad_address (suite/test_diagnosis.py:")
    assert "native stack of a second run" in first.detail
    assert "at::_ops::add__Tensor::call" in first.detail
    assert "gdb" in first.detail


@pytest.mark.parametrize(
    ("library", "outermost", "is_endless"),
    [
        ("/usr/bin/python3.11", "<unknown function>", False),
        ("/usr/lib/libpython3.12.so.1.0", "<unknown function>", False),
        ("/opt/chip/libchip.so", "_start", False),
        ("/opt/chip/libchip.so", "<unknown function>", True),
        ("/opt/chip/libpython_of_chip.so", "<unknown function>", True),
    ],
)
def test_calls_of_python_functions_are_no_endless_recursion(
    library: str, outermost: str, is_endless: bool
) -> None:
    """As the Python of some distributions, which calls C for each call of a Python function."""
    symbols = [
        "c10::FatalSignalHandler::fatalSignalHandler(int)",
        "<unknown function>",
        *["_PyEval_EvalFrameDefault"] * 4,
    ]
    frames = [f"{symbol} + 0x8f0 (0x7f00 in {library})" for symbol in symbols]
    frames.append(f"{outermost} + 0x21 (0x7f01 in /lib/libc.so.6)")
    lines = "\n".join(f"frame #{i}: {frame}" for i, frame in enumerate(frames))
    found = diagnosis.read(f"SIGSEGV(11), PID: 7, Thread 7: \n{lines}\n")
    assert found is not None
    assert found.overflow is is_endless


@native
def test_a_cause_is_run_again_once_however_many_crash(tmp_path: Path) -> None:
    runs = tmp_path / "runs"

    def counted(dev: Device) -> None:
        with runs.open("a") as file:
            file.write("x")
        bad_address(dev)

    assert len(crashes(*[counted] * 5)) == 5
    assert runs.read_text() == "x" * 6


def test_without_diagnosis_nothing_is_run_again(tmp_path: Path) -> None:
    (result,) = crashes(lambda dev: os.abort(), options=replace(DIAGNOSING, diagnose=False))
    assert result.message.startswith("SIGABRT in <lambda> (suite/test_diagnosis.py:")


def test_a_crash_that_does_not_come_again_keeps_its_message(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    def once(dev: Device) -> None:
        if not marker.exists():
            marker.touch()
            os.abort()

    (result,) = crashes(once)
    assert result.outcome == "crash"
    assert result.message.startswith("SIGABRT in once (suite/test_diagnosis.py:")


FRAME = "frame #{}: {} + 0x1f (0x7f00 in /lib/libchip.so)"
HEAD = "SIGSEGV(11), PID: 1, Thread {}: \n "
HANDLER = (
    "c10::FatalSignalHandler::stacktraceSignalHandler(bool)",
    "c10::FatalSignalHandler::fatalSignalHandler(int, siginfo_t*)",
    "<unknown function>",
)


def stack(*symbols: str) -> str:
    """What PyTorch's handler prints about the thread that crashed, after another thread."""
    other = HEAD.format(2) + FRAME.format(0, HANDLER[0]) + "\n" + FRAME.format(1, "wait") + "\n\n"
    frames = (FRAME.format(i, symbol) for i, symbol in enumerate((*HANDLER, *symbols)))
    return other + HEAD.format(1) + "\n".join(frames) + "\n\nFatal Python error\n"


def test_recursion_without_an_end_is_a_stack_overflow() -> None:
    cycle = ("at::_ops::resize_::call(at::Tensor const&)", "chip::resize(at::Tensor const&)")
    found = diagnosis.read(stack(*cycle * 5))
    assert found is not None
    assert found.of("SIGSEGV") == ("SIGSEGV (stack overflow: endless recursion) in aten::resize_")


def test_a_stack_whose_beginning_is_in_sight_has_not_run_out() -> None:
    cycle = ("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet)", "chip::add()") * 5
    found = diagnosis.read(stack(*cycle, "__libc_start_main"))
    assert found is not None
    assert found.of("SIGSEGV") == "SIGSEGV in aten::add.Tensor"
    assert (
        found.frames[0]
        == "at::_ops::add_Tensor::redispatch(c10::DispatchKeySet) + 0x1f in libchip.so"
    )


def test_output_without_a_native_stack_is_no_diagnosis() -> None:
    assert diagnosis.read("Fatal Python error: Segmentation fault\n") is None


def test_the_frames_of_the_suite_are_cut() -> None:
    output = (
        "said\nCurrent thread 0x1 (most recent call first):\n"
        '  File "/chip/op.py", line 3 in kernel\n'
        '  File "/x/torch_conformance/checks/copy/values.py", line 9 in copies\n'
        '  File "/x/torch_conformance/authoring/check.py", line 61 in run\n'
        '  File "/x/torch_conformance/running/execute.py", line 25 in execute\n'
        '  File "/x/pytest/__main__.py", line 5 in <module>\n'
        "\nExtension modules: numpy\n"
    )
    assert without_harness(output) == (
        "said\nCurrent thread 0x1 (most recent call first):\n"
        '  File "/chip/op.py", line 3 in kernel\n'
        '  File "/x/torch_conformance/checks/copy/values.py", line 9 in copies\n'
        "\nExtension modules: numpy\n"
    )
