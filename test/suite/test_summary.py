# SPDX-License-Identifier: BSD-3-Clause
"""The end of the terminal output names every check that did not pass, with the reason."""

from __future__ import annotations

from typing import Any

import synthetic
from synthetic import needs

from torch_conformance.results import summary
from torch_conformance.spec.chapters import chapters
from torch_conformance.spec.result import CheckResult


def record(id: str, outcome: str, **fields: Any) -> CheckResult:
    """A result of this check; a reason may be a text."""
    made = synthetic.record("COPY-001", outcome, **fields)
    return synthetic.typed(made | {"id": id, "surface": id.partition("/")[0]})


INCOMPARABLE = [
    record(f"opinfo/o{i}", "unsupported", reason={"kind": "no_reference", "text": said})
    for i, said in enumerate(["RuntimeError: no Bool", "RuntimeError: no Half", "TypeError"])
]


def test_reasons_of_one_kind_are_one_line_with_their_number_most_frequent_first() -> None:
    records = [
        record("b/two", "blocked_upstream", reason="issue 1"),
        record("a/one", "unsupported", reason=needs("x")),
        record("a/two", "unsupported", reason=needs("x")),
        *INCOMPARABLE,
    ]
    assert list(summary.excuses(records)) == [
        "    3  unsupported: the CPU gives nothing to compare with (3 variants)",
        "    2  unsupported: needs capability 'x'",
        "    1  blocked_upstream: issue 1",
    ]


def test_outcomes_with_the_same_reason_are_kinds_of_their_own() -> None:
    records = [
        record("a/one", "xfail", reason="slow"),
        record("a/two", "unsupported", reason="slow"),
    ]
    assert list(summary.excuses(records)) == ["    1  unsupported: slow", "    1  xfail: slow"]


def test_every_excused_check_is_counted_where_there_are_many_kinds() -> None:
    records = [record(f"a/c{i}", "xfail", reason=f"bug {i}") for i in range(30)]
    lines = list(summary.excuses(records))
    assert len(lines) == summary.MAX_KINDS + 1
    assert lines[-1] == "   20  for 20 more kinds of reasons"


def test_a_long_reason_is_cut_to_one_line() -> None:
    (line,) = summary.excuses([record("a/one", "xfail", reason="word " * 100)])
    assert line.endswith(" ...") and len(line) <= summary.WIDTH


def test_reasons_name_the_checks_most_frequent_first() -> None:
    records = [
        record("a/one", "unsupported", reason=needs("x")),
        record("b/two", "blocked_upstream", reason="issue 1"),
        record("b/one", "unsupported", reason=needs("x")),
    ]
    assert list(summary.reasons(records)) == [
        "    2  unsupported: needs capability 'x'",
        "       a/one, b/one",
        "    1  blocked_upstream: issue 1",
        "       b/two",
    ]
    assert len(list(summary.reasons(INCOMPARABLE))) == 6


def test_a_long_group_names_three_checks_and_counts_the_rest() -> None:
    records = [record(f"a/c{i}", "not_run", reason="gone") for i in range(5)]
    assert list(summary.reasons(records))[1] == "       a/c0, a/c1, a/c2 and 2 more"


def test_passes_and_failures_are_no_excuses() -> None:
    records = [record("a/one", "pass"), record("a/two", "fail", message="wrong")]
    assert not list(summary.excuses(records))
    assert not list(summary.reasons(records))


def test_surfaces_that_passed_share_lines_and_the_others_have_one_each() -> None:
    records = [
        *(record(f"stream/n{i}", "pass") for i in range(7)),
        record("copy/one", "pass"),
        record("memory/one", "pass"),
        record("memory/two", "fail", message="wrong"),
    ]
    assert summary.table(records) == [
        "surface           pass   fail",
        "memory               1      1",
        "all passed in the other 2: copy 1, stream 7",
    ]
    assert summary.table(records[:8]) == ["all passed: copy 1, stream 7"]


def test_a_run_of_every_chapter_without_failures_fits_on_one_screen() -> None:
    records = [record(f"chapter{i}/n{j}", "pass") for i in range(28) for j in range(1000)]
    records += [record(f"chapter{i}/u", "unsupported", reason=f"kind {i}: x") for i in range(6)]
    lines = [*summary.table(records), *summary.excuses(records)]
    assert len(lines) <= 20
    assert all(len(line) <= summary.WIDTH for line in lines)


def test_causes_leave_out_what_varies_between_failures_of_one_kind() -> None:
    records = [
        record(f"a/c:{i}", "fail", message=f"{i} elements differ at 0x{i}f", repro="again")
        for i in (1, 2)
    ]
    lines = list(summary.causes(records))
    assert lines[0] == "    2  fail: N elements differ at 0x.. in a/c"
    assert lines[1] == "       a/c:1 and 1 more"


def test_wrong_values_are_grouped_by_operator_and_extent_with_a_real_example() -> None:
    said = ("6 of 6 differ, by 1", "9 of 9 differ, by nan", "1 of 9 differs, by inf")
    how = ("all_values", "all_values", "some_values")
    ids = ("opinfo/forward:add:float32", "opinfo/forward:add:float64", "opinfo/forward:sub:float32")
    records = [
        record(id, "fail", message=text, mismatch=mismatch)
        for id, text, mismatch in zip(ids, said, how, strict=True)
    ]
    lines = list(summary.causes(records))
    assert lines[0] == "    2  fail: wrong values in all elements in opinfo/forward of add"
    assert lines[1] == "       opinfo/forward:add:float32 and 1 more"
    assert lines[2].strip() == said[0]
    assert "    1  fail: wrong values in some elements in opinfo/forward of sub" in lines


def test_chapters_over_their_time_budget_are_named_as_information() -> None:
    budget = chapters()["copy"].budget_s
    within = record("copy/one", "pass", duration_s=budget * 3 - 1.0)
    beyond = record("copy/two", "pass", duration_s=4.0)
    assert summary.over_budget([within]) == []
    said = summary.over_budget([within, beyond])
    assert said == [f"over their time budget: copy {budget + 1} s of {budget}"]
