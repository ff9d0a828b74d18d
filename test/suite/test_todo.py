# SPDX-License-Identifier: BSD-3-Clause
"""What is missing is read off what PyTorch says, and ranked by how many checks wait for it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import synthetic
from synthetic import needs

from torch_conformance.bringup import todo
from torch_conformance.results.missing import Missing
from torch_conformance.results.report import Report
from torch_conformance.spec import catalogue
from torch_conformance.spec.result import CheckResult

# What PyTorch says when something is not there, and what that is.
SAID = {
    "NotImplementedError: Could not run 'aten::linear' with arguments from the 'Autocastmychip' "
    "backend.": ("autocast", "dispatch key AutocastPrivateUse1"),
    "NotImplementedError: Could not run 'aten::sub.out' with arguments from the 'mychip' backend. "
    "This could be because": ("operator", "aten::sub.out"),
    "NotImplementedError: There were no tensor arguments to this function (e.g., you passed an "
    "empty list of Tensors), but no fallback function is registered for schema aten::randperm.": (
        "operator",
        "aten::randperm",
    ),
    "NotImplementedError: convolution_overrideable not implemented. You are likely triggering": (
        "operator",
        "aten::convolution_overrideable",
    ),
    "NotImplementedError: \"isfinite\" not implemented for 'Float8_e4m3fn'": (
        "dtype",
        "isfinite for Float8_e4m3fn",
    ),
    "AttributeError: module 'torch_mychip' has no attribute 'mem_get_info'": (
        "function",
        "mem_get_info",
    ),
    "AttributeError: type object 'Module' has no attribute 'set_device'": (
        "function",
        "set_device",
    ),
    "wrong kind of error: AttributeError(\"module 'torch.mychip' has no attribute 'device'\")": (
        "function",
        "device",
    ),
    "Tried to use AMP with the `mychip` backend, but the backend has not registered a module or  "
    "the module miss some necessary funcs.": ("function", "get_amp_supported_dtype"),
    "RuntimeError: Try to call torch.mychip.set_rng_state. The backend must register a custom": (
        "function",
        "set_rng_state",
    ),
    "NotImplementedError: You should register `PrivateUse1HooksInterface`by "
    "`RegisterPrivateUse1HooksInterface` and implement `getNewGenerator` at the same time": (
        "hook",
        "getNewGenerator",
    ),
    "backend wrong: RuntimeError: Backend doesn't support synchronizing all streams on device.": (
        "guard",
        "synchronizeDevice",
    ),
    'RuntimeError: device_allocator INTERNAL ASSERT FAILED at "x.h":261, please report a bug to '
    "PyTorch. Allocator for mychip is not a DeviceAllocator.": (
        "allocator",
        "c10::DeviceAllocator",
    ),
    # These are mistakes in what is there.
    "AttributeError: 'int' object has no attribute 'device'": None,
    "AttributeError: module 'torch_mychip' has no attribute '_helper'": None,
    "1 of 4 elements differ; first at (0,)": None,
}


def record(id: str, outcome: str, **fields: Any) -> CheckResult:
    """A result of this check."""
    made = synthetic.record("COPY-001", outcome, **fields)
    return synthetic.typed(made | {"id": id, "surface": id.partition("/")[0]})


def missing_operator(operator: str) -> str:
    """What PyTorch says of an operator that is missing."""
    return f"NotImplementedError: Could not run 'aten::{operator}' with"


def lacking(id: str, operator: str) -> CheckResult:
    """The result of a check that an operator is missing for."""
    return record(id, "error", message=missing_operator(operator))


def document(*results: CheckResult, **capabilities: tuple[bool, str]) -> Report:
    """A report of these results."""
    table = {name: {"value": v, "source": source} for name, (v, source) in capabilities.items()}
    made = synthetic.document(synthetic.content([], capabilities=table)).report
    return msgspec.structs.replace(made, checks=results)


@pytest.mark.parametrize("message", SAID)
def test_what_is_missing_is_read_off_the_message(message: str) -> None:
    named = SAID[message]
    found = todo.missing(record("copy/a", "error", message=message))
    assert found == ([Missing(*named)] if named else [])


def test_what_most_checks_wait_for_comes_first_and_names_break_ties() -> None:
    records = [
        lacking("view/a", "unfold"),
        lacking("copy/a", "abs.out"),
        lacking("copy/b", "sub.out"),
        lacking("copy/c", "sub.out"),
        record("copy/d", "pass"),
    ]
    orders = []
    for seed in range(5):
        random.Random(seed).shuffle(records)
        orders.append([(m.name, len(r)) for m, r in todo.steps(document(*records))])
    assert orders == [[("aten::sub.out", 2), ("aten::abs.out", 1), ("aten::unfold", 1)]] * 5


def test_what_the_expectations_excuse_is_still_to_do() -> None:
    entry = {"list": "xfail", "entry": "copy/*"}
    known = record("copy/a", "xfail", excused=entry | {"message": missing_operator("abs.out")})
    told = record("copy/b", "xfail", excused=entry, reason=f"no: {missing_operator('sub.out')}")
    found = [step.name for step, _ in todo.steps(document(known, told))]
    assert found == ["aten::abs.out", "aten::sub.out"]


def test_capabilities_that_are_denied_are_not_to_do() -> None:
    absent = [
        record("copy/a", "unsupported", reason=needs("streams")),
        record("copy/b", "unsupported", reason=needs("float64", "streams")),
        record(
            "copy/c", "unsupported", reason={"kind": "declared_unsupported", "dtype": "float64"}
        ),
    ]
    probed = document(*absent, streams=(False, "probed"), float64=(False, "declared"))
    assert [(s.name, len(r)) for s, r in todo.steps(probed)] == [("streams", 1)]


def test_a_dtype_that_the_descriptor_calls_unsupported_is_not_to_do() -> None:
    said = "NotImplementedError: \"isfinite\" not implemented for '{}'"
    records = [
        record("copy/a", "unsupported", reason={"kind": "declared_unsupported", "dtype": name})
        for name in ("float16", "float8_e4m3fn")
    ]
    records += [
        record(f"view/{name.lower()}", "error", message=said.format(name))
        for name in ("Half", "Float8_e4m3fn", "Double")
    ]
    assert [s.name for s, _ in todo.steps(document(*records))] == ["isfinite for Double"]


def test_what_only_tests_need_is_last_with_the_reason() -> None:
    records = [
        *(record(f"stream/c{i}", "unsupported", reason=needs("delay")) for i in range(9)),
        record("error/a", "unsupported", reason=needs("fault_injection")),
        record("stream/x", "unsupported", reason=needs("streams")),
        lacking("copy/a", "sub.out"),
    ]
    made = document(*records)
    names = [step.name for step, _ in todo.steps(made)]
    assert names == ["aten::sub.out", "streams", "delay", "fault_injection"]
    aid = "    9  capability delay: last, because only tests need it; the descriptor's key 'delay'"
    assert any(line.startswith(aid) for line in todo.lines(made, catalogue.load()))


def test_the_lines_say_what_to_do_where_to_read_and_what_is_left() -> None:
    broken = [
        record(
            "smoke/descriptor_names",
            "fail",
            message="descriptor wrong: delay: x\nCorrect it.",
            blames="descriptor",
        ),
        lacking("copy/a", "sub.out"),
        record("copy/b", "pass", fallbacks=["aten::sort"]),
        record("copy/c", "fail", message="1 of 4 elements differs", mismatch="some_values"),
        record("copy/d", "crash", message="SIGSEGV in aten::fill_.Scalar\nin f (a.py:1)"),
    ]
    assert list(todo.lines(document(*broken), catalogue.load())) == [
        "first  smoke/descriptor_names: descriptor wrong: delay: x",
        "       Correct it.",
        "what to correct first on mychip: 2 failures of what is there",
        "    1  crash: SIGSEGV in aten::fill_.Scalar",
        "       copy/d",
        "    1  fail: wrong values in some elements in copy/c",
        "       copy/c",
        "what to implement next on mychip, by the number of checks that wait for it",
        "    1  operator aten::sub.out: register a kernel for PrivateUse1; PyTorch derives the "
        "functional and the in-place form",
        f"       COPY-001 copy/a  {catalogue.load()['COPY-001'].source.url}",
        "    1  aten::sort: runs on the CPU by fallback: a kernel of its own keeps the data on the "
        "device",
    ]


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"checks": []}))
    done = subprocess.run(
        [sys.executable, "-m", "torch_conformance", "next", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
