# SPDX-License-Identifier: BSD-3-Clause
"""A record that is taken to be valid because one of its kind was is valid."""

from __future__ import annotations

from typing import Any

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from torch_conformance.results import reader
from torch_conformance.results.alike import kind_of

OUTCOMES = ["pass", "fail", "flaky", "xfail", "unsupported", "not_run", "passed"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from([0.0, 1.0, -0.5]),
    st.sampled_from(["", "x", "MEM-001", "memory/a:b", "native", "must", "core", *OUTCOMES]),
    st.lists(st.sampled_from(["MEM-001", "mem", 1, None]), max_size=2),
    st.sampled_from([{"list": "xfail", "id": "x"}, {"list": "red", "id": "x"}, {"id": 1}]),
    st.lists(st.fixed_dictionaries({"outcome": st.sampled_from(OUTCOMES)}), max_size=2),
)
NAMES = [*synthetic.record("MEM-001"), "message", "reason", "repro", "waiver", "attempts"]
NAMES += ["fallbacks", "samples", "shard", "unknown"]


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A valid record, spoilt in a place or two, or not at all."""
    record = synthetic.record("MEM-001", draw(st.sampled_from(OUTCOMES[:-1])))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        if draw(st.booleans()):
            record[name] = draw(VALUES)
        else:
            record.pop(name, None)
    return record


@given(st.lists(records(), min_size=2, max_size=12))
def test_records_of_one_kind_are_all_valid_or_none_is(made: list[dict[str, Any]]) -> None:
    _, single, kind = reader._validators()
    seen: dict[Any, bool] = {}
    for record in made:
        assert seen.setdefault(kind(record), single.is_valid(record)) == single.is_valid(record)


def test_ordinary_records_are_of_few_kinds() -> None:
    _, _, kind = reader._validators()
    assert len({kind(record) for record in synthetic.many(2000)["checks"]}) < 20


def test_a_fault_behind_thousands_of_good_records_is_told() -> None:
    content = synthetic.many(2000)
    content["checks"][-1]["duration_s"] = "long"
    with pytest.raises(reader.ReportError, match=r"duration_s: 'long' is not of type 'number'"):
        synthetic.document(content)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1), (None, "")])
def test_values_that_python_takes_for_equal_are_not_alike(one: Any, other: Any) -> None:
    for schema in ({"enum": [one]}, {"type": "integer"}, {"const": one}):
        kind = kind_of(schema)
        assert kind(one) != kind(other)


def test_a_condition_that_looks_deeper_makes_all_of_a_value_matter() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"propertyNames": {"const": "a"}}],
    }
    kind = kind_of(schema)
    assert kind({"a": "x"}) != kind({"a": "y"})


def test_what_a_condition_names_is_told_apart() -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"if": {"not": {"properties": {"a": {"const": "x"}}}}, "then": {}}],
    }
    kind = kind_of(schema)
    assert kind({"a": "x"}) != kind({"a": "y"})
    assert kind({"b": "x"}) == kind({"b": "y"})
