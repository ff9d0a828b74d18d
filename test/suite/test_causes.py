# SPDX-License-Identifier: BSD-3-Clause
"""Failures that are corrected together are one cause, and no others are."""

from __future__ import annotations

from typing import Any

import pytest
import synthetic

from torch_conformance.results.causes import cause, grouped
from torch_conformance.results.wording import headline
from torch_conformance.spec.capabilities import describe_broken
from torch_conformance.spec.result import CheckResult

TRACEBACK = """Traceback (most recent call last):
  File "/tmp/{}/x.py", line {}, in run
    work()
"""
RANDOM = "missing 1 required positional argument: 'device'"


def record(id: str, outcome: str, **fields: Any) -> CheckResult:
    """A result of this check."""
    made = synthetic.record("COPY-001", outcome, **fields)
    return synthetic.typed(made | {"id": id, "surface": id.partition("/")[0]})


# Two failures (check, outcome, message) that have one cause.
ONE = {
    "complex numbers": (
        ("copy/a:x", "fail", "1 of 3 differ: (1+2j), expected (-0.5-3e-05j)"),
        ("copy/a:y", "fail", "2 of 9 differ: (nan+infj), expected 1j"),
    ),
    "numbers": (
        ("copy/a:x", "fail", "max abs error 1e-05, got [1, [2.5, 3]] of (3, 4)"),
        ("copy/a:y", "fail", "max abs error nan, got [[1], [2], -7] of (5,)"),
    ),
    "an exception in many topics": (
        ("opinfo/forward:rand:float32", "error", f"TypeError: get_rng_state() {RANDOM}"),
        ("random/seed", "error", f"TypeError: get_rng_state() {RANDOM}\nin sample 3"),
    ),
    "an operator that is missing in other words": (
        ("copy/a", "error", "NotImplementedError: Could not run 'aten::add' with arguments from X"),
        (
            "view/b",
            "error",
            "NotImplementedError: no fallback function is registered for schema aten::add",
        ),
    ),
    "a function that module and object lack": (
        ("copy/a", "error", "AttributeError: module 'torch.mychip' has no attribute 'Stream'"),
        ("view/b", "error", "AttributeError: 'MyModule' object has no attribute 'Stream'"),
    ),
    "tails of one exception": (
        (
            "thread/exit:a",
            "fail",
            "ended with status 1\n" + TRACEBACK.format("ab1", 3) + "RuntimeError: no device 3",
        ),
        (
            "thread/exit:b",
            "fail",
            "ended with status 1\nne 7, in run\n"
            + TRACEBACK.format("q", 77)
            + "RuntimeError: no device 4",
        ),
    ),
    "ends of processes in many topics": (
        (
            "thread/exit",
            "fail",
            "ended with status 1\n" + TRACEBACK.format("a", 3) + "mychip.Lost: gone at 0x1f",
        ),
        (
            "serialization/a",
            "fail",
            "no result; ended with status 1\n"
            + TRACEBACK.format("b", 9)
            + "mychip.Lost: gone at 0x2e\nbye",
        ),
    ),
    "aborts of native code": (
        ("thread/exit:a", "fail", "ended with signal SIGABRT\nlog\n  what():  3 streams lost"),
        ("thread/exit:b", "fail", "ended with signal SIGABRT\n  what():  7 streams lost\nlog"),
    ),
    "units": (
        ("copy/a:x", "error", "took 12ms and 1.5GB, 3 GiB, 25% of 3x4"),
        ("copy/a:y", "error", "took 9s and 32KB, 1,024 MiB, 2.5% of 17x2x9"),
    ),
    "addresses, handles and times": (
        ("copy/a", "error", "7f3a2b4c9d10 of worker_3 at 2026-11-24 03:57:21.123 lost"),
        ("copy/a", "error", "deadbeef1234 of worker_17 at 2025-01-02T13:07:01Z lost"),
    ),
    "complex numbers of numpy": (
        ("copy/a", "error", "got 1.+0.j and NaN"),
        ("copy/a", "error", "got 2.5-3.J and Infinity"),
    ),
    "lists of any length": (
        ("copy/a", "error", "got [" + "1.5, " * 5000),
        ("copy/a", "error", "got [2.5, 3]"),
    ),
    "colours": (
        ("copy/a", "error", "\x1b[31mRuntimeError: bad\x1b[0m"),
        ("copy/a", "error", "RuntimeError: bad"),
    ),
    "temporary directories": (
        ("serialization/a:x", "error", "OSError: /tmp/tmpx1/weights.pt is damaged"),
        ("serialization/a:y", "error", "OSError: /tmp/tmpz9/weights.pt is damaged"),
    ),
    "a broken capability": (
        ("stream/a", "fail", describe_broken("streams", "its probe hung")),
        ("event/b", "fail", describe_broken("streams", "its probe hung")),
    ),
    "numbers beside names of dtypes": (
        ("copy/a:x", "fail", "dtype is torch.float32, expected torch.float64 of 3"),
        ("copy/a:y", "fail", "dtype is torch.float32, expected torch.float64 of 4"),
    ),
}
# Two failures that have different causes.
TWO = {
    "assertions of two topics": (
        ("stream/query", "fail", "assert False"),
        ("event/query", "fail", "assert False"),
    ),
    "two assertions of one topic": (
        ("stream/query:a", "fail", "assert event.query()\nassert False"),
        ("stream/query:b", "fail", "assert not stream.query()\nassert not True"),
    ),
    "two attributes": (
        ("copy/a", "error", "AttributeError: 'Queue' object has no attribute 'depth'"),
        ("copy/b", "error", "AttributeError: 'Queue' object has no attribute 'limit'"),
    ),
    "two exceptions of processes": (
        (
            "thread/exit:a",
            "fail",
            "ended with status 1\n" + TRACEBACK.format("a", 3) + "RuntimeError: no device",
        ),
        (
            "thread/exit:b",
            "fail",
            "ended with status 1\n" + TRACEBACK.format("a", 3) + "KeyError: 'stream'",
        ),
    ),
    "two types of exceptions that a backend has made": (
        ("thread/a", "error", TRACEBACK.format("a", 3) + "mychip.Lost: gone"),
        ("thread/a", "error", TRACEBACK.format("a", 3) + "mychip.Busy: gone"),
    ),
    "two aborts of native code": (
        ("thread/exit", "fail", "ended with signal SIGABRT\n  what():  no stream"),
        ("thread/exit", "fail", "ended with signal SIGABRT\na.c:3: f: Assertion `x' failed."),
    ),
    "two signals": (
        ("thread/exit:a", "fail", "ended with signal SIGABRT\nx"),
        ("thread/exit:b", "fail", "ended with signal SIGSEGV\nx"),
    ),
    "two statuses": (
        ("thread/exit:a", "fail", "ended with status 1"),
        ("thread/exit:b", "fail", "ended with status 13"),
    ),
    "two operators": (
        ("copy/a", "error", "NotImplementedError: Could not run 'aten::add' with X"),
        ("copy/a", "error", "NotImplementedError: Could not run 'aten::sub' with X"),
    ),
    "two types of exceptions": (
        ("copy/a", "error", "TypeError: bad"),
        ("copy/a", "error", "ValueError: bad"),
    ),
    "two dtypes": (
        ("copy/a:x", "fail", "dtype is torch.float32, expected torch.float64"),
        ("copy/a:y", "fail", "dtype is torch.float16, expected torch.float64"),
    ),
    "a failure and an error": (
        ("copy/a", "fail", "KeyError: 3"),
        ("copy/a", "error", "KeyError: 3"),
    ),
}


def causes(pair: tuple[tuple[str, str, str], ...]) -> list[str]:
    """The causes of failures."""
    return [cause(record(id, outcome, message=said)) for id, outcome, said in pair]


@pytest.mark.parametrize("name", ONE)
def test_failures_that_are_corrected_together_are_one_cause(name: str) -> None:
    first, second = causes(ONE[name])
    assert first == second


@pytest.mark.parametrize("name", TWO)
def test_failures_that_are_corrected_apart_are_two_causes(name: str) -> None:
    first, second = causes(TWO[name])
    assert first != second


def test_attributes_are_told_apart_where_other_names_are_left_out() -> None:
    first, second = (
        record(id, outcome, message=said) for id, outcome, said in TWO["two attributes"]
    )
    assert cause(first, 1) != cause(second, 1)


def test_assertions_of_two_chapters_are_apart_however_little_room_there_is() -> None:
    records = [
        record(f"{surface}/{topic}", "fail", message="assert False")
        for surface in ("stream", "event")
        for topic in ("a", "b", "c")
    ]
    assert [text for text, _ in grouped(records, room=1)] == [
        "fail: comparisons in event",
        "fail: comparisons in stream",
    ]


def test_the_line_that_counts_is_the_exception_at_the_end_of_a_traceback() -> None:
    end = TRACEBACK.format("a", 3) + "torch.OutOfMemoryError: 3 GiB\n"
    assert headline(end) == "torch.OutOfMemoryError: 3 GiB"
    assert headline(f"the child ended with status 1\n{end}") == (
        "ended with status 1: torch.OutOfMemoryError: 3 GiB"
    )
    indented = "".join(f"  {line}\n" for line in end.splitlines())
    assert headline(f"ended with status 1\n{indented}assert 1 == 0") == (
        "ended with status 1: torch.OutOfMemoryError: 3 GiB"
    )
    assert headline("RuntimeError: a\nin sample 3") == "RuntimeError: a"
    assert headline("") == ""


def test_digits_of_a_name_are_kept_in_a_cause() -> None:
    text = "expected torch.float32 of 16 elements, got 1.5e-3"
    assert cause(record("a/one", "fail", message=text)) == (
        "fail: expected torch.float32 of N elements, got N in a/one"
    )


def test_what_there_is_no_room_for_is_grouped_by_less_of_the_message() -> None:
    missing = [f"RuntimeError: could not run 'aten::op{i}'" for i in range(50)]
    messages = [*missing, "RuntimeError: out of memory"] + ["RuntimeError: device busy"] * 3
    records = [record(f"a/c{i}", "error", message=text) for i, text in enumerate(messages)]
    groups = {text: len(group) for text, group in grouped(records, room=4)}
    assert groups == {
        "error: RuntimeError: device busy": 3,
        "error: RuntimeError: could not run '..'": 50,
        "error: RuntimeError: out of memory": 1,
    }


def test_messages_of_many_words_end_as_types_of_exceptions() -> None:
    records = [
        record(f"a/c{i}", "error", message=f"{'Value' if i % 2 else 'Key'}Error: {chr(97 + i) * 3}")
        for i in range(26)
    ]
    groups = grouped(records, room=6)
    assert len(groups) <= 6
    assert sum(len(group) for _, group in groups) == 26
    assert {"error: ValueError", "error: KeyError"} <= {text for text, _ in groups}


def test_wrong_values_are_of_an_operator_as_long_as_there_is_room() -> None:
    records = [
        record("opinfo/forward:add:float32", "fail", message="6 of 6", mismatch="all_values"),
        record("opinfo/forward:sub:float32", "fail", message="1 of 9", mismatch="some_values"),
    ]
    assert [text for text, _ in grouped(records)] == [
        "fail: wrong values in all elements in opinfo/forward of add",
        "fail: wrong values in some elements in opinfo/forward of sub",
    ]
    assert [text for text, _ in grouped(records, room=1)] == [
        "fail: wrong values in all elements",
        "fail: wrong values in some elements",
    ]
