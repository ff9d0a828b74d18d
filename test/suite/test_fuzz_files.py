# SPDX-License-Identifier: BSD-3-Clause
"""Hostile descriptors and expectations: a named error or a usable value, never anything else."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import synthetic
import yaml
from fuzzing import VALUES, damaged, fuzzed
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from torch_conformance.authoring.check import Check
from torch_conformance.expectations import Expectations, ExpectationsError, skips
from torch_conformance.expectations.document import ENTRIES, Status
from torch_conformance.expectations.entry import FLAKY, LISTS
from torch_conformance.expectations.update import update
from torch_conformance.running.result import Result
from torch_conformance.spec import descriptor
from torch_conformance.spec.descriptor import Descriptor, DescriptorError
from torch_conformance.spec.outcome import BAD, Outcome
from torch_conformance.spec.reason import Excused
from torch_conformance.spec.result import CheckResult

pytestmark = pytest.mark.fuzz

TODAY = datetime.date(2026, 6, 1)
DESCRIPTOR = (descriptor.BUILT_IN / "puone.yaml").read_text()
EXPECTATIONS = """# known
unsupported:
- id: opinfo/forward:fft_*
  reason: the chip has no FFT unit
  link: https://example.org/issues/1
xfail:
- id: stream/order:wait_event
  reason: |
    events are lost

    under load
  link: https://example.org/issues/2
  status: fail
  expires: 2027-01-31
flaky:
- {id: memory/stats:peak, reason: depends on the cache, link: 'https://example.org/3'}
"""
IDS = [f"{topic}:{case}" for topic in ("copy/cast", "copy/clone", "view/of_1") for case in "abc"]
DTYPES = ("float32", "int64")
STATUSES = get_args(Status)
RAW = [Outcome.PASS, *map(Outcome, STATUSES)]
KEYS = [field.encode_name for field in fields(descriptor.Document)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the hostile file is put."""
    return tmp_path / "hostile.yaml"


def ended(id: str, outcome: Outcome, message: str, excuse: Excused | None = None) -> CheckResult:
    """The result of a check that ended so."""
    return synthetic.judged(Result(id, outcome, message, reason=excuse)).result


def check_descriptor(file: Path) -> None:
    """Loading gives a descriptor of the right types, or an error that names the file."""
    try:
        found = descriptor.load(file)
    except DescriptorError as error:
        assert str(error).startswith(str(file))
        return
    assert isinstance(found, Descriptor)
    assert isinstance(found.device_type, str)
    assert all(isinstance(value, bool) for value in found.capabilities.values())
    assert all(re.compile(pattern) for pattern in found.environment_errors)


def check_expectations(file: Path) -> None:
    """Loading gives entries that excuse only with a reason, or an error that names the file."""
    try:
        found = Expectations.load(file)
    except ExpectationsError as error:
        assert str(error).startswith(str(file))
        return
    for entry in found.entries:
        assert entry.reason
        assert entry.link
        for outcome in BAD:
            judged, message, excuse = entry.judge(outcome, "why", TODAY)
            assert judged is not Outcome.PASS
            assert message or excuse


@fuzzed
@given(data=damaged(DESCRIPTOR) | st.binary(max_size=200))
def test_a_damaged_descriptor_is_an_error_that_names_it(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    check_descriptor(file)


@fuzzed
@given(values=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_a_descriptor_with_wrong_values_is_an_error_that_names_it(
    file: Path, values: dict[str, Any]
) -> None:
    text = yaml.safe_dump({"device_type": "cpu", **values}, allow_unicode=True)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    check_descriptor(file)


@fuzzed
@given(data=damaged(EXPECTATIONS) | st.binary(max_size=200))
def test_damaged_expectations_are_an_error_that_names_them(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    check_expectations(file)


@fuzzed
@given(
    kind=st.sampled_from(LISTS),
    values=st.dictionaries(
        st.sampled_from(["id", "reason", "link", "status", "expires", "until"]), VALUES
    ),
)
def test_entries_with_wrong_values_are_an_error_that_names_them(
    file: Path, kind: str, values: dict[str, Any]
) -> None:
    text = yaml.safe_dump({kind: [values]}, allow_unicode=True)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    check_expectations(file)


@fuzzed
@given(data=damaged(EXPECTATIONS))
def test_a_hostile_file_is_rewritten_as_a_whole_or_not_at_all(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    results = {IDS[0]: ended(IDS[0], Outcome.FAIL, "wrong")}
    try:
        update(file, results, IDS, {"copy", "view"}, TODAY)
    except ExpectationsError:
        assert file.read_bytes() == data
    else:
        entry = Expectations.load(file).find(IDS[0])
        assert entry is not None


@st.composite
def entries(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """A good file: entries for these ids and patterns over them."""
    stems = [id[: end + 1] for id in IDS for end, character in enumerate(id) if character in "/:_"]
    ids = st.sampled_from([*IDS, *(f"{stem}*" for stem in sorted(set(stems)))])
    dates = st.sampled_from([TODAY - datetime.timedelta(1), TODAY, TODAY + datetime.timedelta(9)])
    values: dict[str, st.SearchStrategy[Any]] = {
        "reason": st.just("because"),
        "link": st.just("https://example.org"),
        "id": ids,
    }
    values |= {"status": st.sampled_from(STATUSES), "expires": dates}
    return {
        kind: draw(
            st.lists(
                st.fixed_dictionaries(
                    {f.name: values[f.name] for f in fields(ENTRIES[kind]) if f.required},
                    optional={
                        f.name: values[f.name] for f in fields(ENTRIES[kind]) if not f.required
                    },
                ),
                max_size=3,
            )
        )
        for kind in draw(st.permutations(LISTS))[: draw(st.integers(1, 3))]
    }


def judged(file: Path, raw: dict[str, Outcome]) -> dict[str, CheckResult]:
    """Results as the run makes them."""
    expectations = Expectations.load(file)
    results = {}
    for id, outcome in raw.items():
        entry = expectations.find(id)
        how = entry.judge(outcome, "why", TODAY) if entry else (outcome, "why", None)
        results[id] = ended(id, *how)
    return results


@fuzzed
@given(
    lists=entries(),
    raw=st.dictionaries(st.sampled_from(IDS), st.sampled_from(RAW)),
)
def test_after_an_update_the_same_results_are_expected(
    file: Path, lists: dict[str, list[dict[str, Any]]], raw: dict[str, Outcome]
) -> None:
    file.write_text(yaml.dump(lists, Dumper=_NoAliases, sort_keys=False))
    changes = update(file, judged(file, raw), IDS, {"copy", "view"}, TODAY)
    again = judged(file, raw)
    bad = {id for id, result in again.items() if result.outcome in BAD}
    expectations = Expectations.load(file)
    for id in bad:  # What has expired is left for a person.
        entry = expectations.find(id)
        assert entry is not None
        assert entry.expired(TODAY)
    assert bool(bad) <= bool(changes.left)
    listed = {id for id in raw if expectations.find(id)}
    for id in listed:
        entry = expectations.find(id)
        assert entry is not None
        assert raw[id] is not Outcome.PASS or entry.kind == FLAKY
    repeated = update(file, again, IDS, {"copy", "view"}, TODAY)
    assert not repeated.added
    assert not repeated.replaced


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@fuzzed
@given(data=damaged('["test_out_add_npu_float32 (__main__.TestCommon)"]') | st.binary(max_size=99))
def test_a_hostile_list_of_skips_is_an_error_or_rules(data: bytes) -> None:
    try:
        tests = skips.read(data.decode())
    except ValueError:
        return
    checks = [Check(f"opinfo/out:add:{d}", ("OPINFO-UNARY-001",), lambda dev: None) for d in DTYPES]
    assert skips.rules(tests, checks).tests == len(tests)
