# SPDX-License-Identifier: BSD-3-Clause
"""The end of the terminal output names every check that did not pass, with the reason."""

from __future__ import annotations

from typing import Any

from conformance import summary


def record(id: str, outcome: str, **text: str) -> dict[str, Any]:
    return {"id": id, "surface": id.partition("/")[0], "outcome": outcome, **text}


def test_excuses_are_grouped_by_outcome_and_reason_most_frequent_first() -> None:
    records = [
        record("a/one", "unsupported", reason="needs capability 'x'"),
        record("b/two", "blocked_upstream", reason="issue 1"),
        record("b/one", "unsupported", reason="needs capability 'x'"),
    ]
    assert list(summary.excuses(records)) == [
        "    2  unsupported: needs capability 'x'",
        "       a/one, b/one",
        "    1  blocked_upstream: issue 1",
        "       b/two",
    ]


def test_a_long_group_names_three_checks_and_counts_the_rest() -> None:
    records = [record(f"a/c{i}", "not_run", reason="device lost") for i in range(5)]
    assert list(summary.excuses(records))[1] == "       a/c0, a/c1, a/c2 and 2 more"


def test_passes_and_failures_are_no_excuses() -> None:
    records = [record("a/one", "pass"), record("a/two", "fail", message="wrong")]
    assert not list(summary.excuses(records))


def test_causes_leave_out_what_varies_between_failures_of_one_kind() -> None:
    records = [
        record(f"a/c{i}", "fail", message=f"{i} elements differ at 0x{i}f", repro="again")
        for i in (1, 2)
    ]
    lines = list(summary.causes(records))
    assert lines[0] == "    2  fail: N elements differ at 0x.."
    assert lines[1] == "       a/c1 and 1 more"


def test_digits_of_a_name_are_kept_in_a_cause() -> None:
    text = "expected torch.float32 of 16 elements, got 1.5e-3"
    assert summary.cause(record("a/one", "fail", message=text)) == (
        "fail: expected torch.float32 of N elements, got N"
    )


def test_what_there_is_no_room_for_is_grouped_by_less_of_the_message() -> None:
    missing = [f"RuntimeError: could not run 'aten::op{i}'" for i in range(50)]
    messages = [*missing, "RuntimeError: out of memory"] + ["RuntimeError: device busy"] * 3
    records = [record(f"a/c{i}", "error", message=text) for i, text in enumerate(messages)]
    groups = {text: len(group) for text, group in summary.grouped(records, room=4)}
    assert groups == {
        "error: RuntimeError: device busy": 3,
        "error: RuntimeError: could not run 'aten::op0'": 1,
        "error: RuntimeError: could not run '..'": 49,
        "error: RuntimeError: out of memory": 1,
    }


def test_messages_of_many_words_end_as_types_of_exceptions() -> None:
    records = [
        record(f"a/c{i}", "error", message=f"{'Value' if i % 2 else 'Key'}Error: {chr(97 + i) * 3}")
        for i in range(26)
    ]
    groups = summary.grouped(records, room=6)
    assert len(groups) <= 6
    assert sum(len(group) for _, group in groups) == 26
    assert {"error: ValueError", "error: KeyError"} <= {text for text, _ in groups}
