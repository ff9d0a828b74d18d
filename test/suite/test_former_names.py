# SPDX-License-Identifier: BSD-3-Clause
"""Reports of earlier suites are read in today's names of tiers and requirements."""

from __future__ import annotations

from typing import Any

import pytest
import synthetic
from synthetic import record

from torch_conformance.results import levels, migration
from torch_conformance.results.report import Demand
from torch_conformance.spec import catalogue, former_names


@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        ("opinfo/forward:linalg_det_singular:float32", "OPINFO-001", "OPINFO-LINALG-001"),
        ("opinfo/forward:bernoulli:float32", "OPINFO-002", "OPINFO-RANDOM-002"),
        ("opinfo/out:std_mean_unbiased:float32", "OPINFO-003", "OPINFO-REDUCE-003"),
        ("opinfo/error:cat", "OPINFO-007", "OPINFO-JOIN-007"),
        ("opinfo/gradient:new_operator:float32", "OPINFO-008", "OPINFO-OTHER-008"),
        ("opinfo/foreach:_foreach_add:float32", "OPINFO-010", "OPINFO-FOREACH-010"),
        ("opinfo/foreach:_foreach_add_inplace:float32", "OPINFO-010", "OPINFO-FOREACH-011"),
        ("stream/order:copy", "STREAM-020", "STREAM-020"),
    ],
)
def test_the_check_tells_the_family_of_an_old_requirement(check: str, old: str, new: str) -> None:
    assert former_names.requirements([old], check) == [new]
    assert new in catalogue.load()


def old_report() -> dict[str, Any]:
    """As the suite wrote it when operators had no families and a level was called Scale-out."""
    checks = [
        record("OPINFO-LINALG-001", id="opinfo/forward:det:float32", requirements=["OPINFO-001"]),
        record("OPINFO-FFT-001", id="opinfo/forward:fft_fft:float32", requirements=["OPINFO-001"]),
    ]
    checks += [
        record(id)
        for id, entry in synthetic.requirements().items()
        if entry.surface != "opinfo" or entry.tier == "training"
    ]
    content = synthetic.content(checks)
    content["requirements"] = {
        id: entry
        for id, entry in content["requirements"].items()
        if not id.startswith("OPINFO-") or entry["tier"] == "training"
    } | {"OPINFO-001": {"level": "must", "tier": "inference"}}
    for entry in (*content["requirements"].values(), *checks):
        if entry["tier"] == "multi_device":
            entry["tier"] = "scale_out"
    return content


def test_an_old_report_is_read_and_has_its_level() -> None:
    report = synthetic.document(old_report()).report
    assert "OPINFO-001" not in report.requirements
    assert report.requirements["OPINFO-FFT-001"] == Demand(level="must", tier="inference")
    assert levels.assess(report).name == "compile"
    assert {entry.tier for entry in report.requirements.values()} >= {"multi_device"}


def test_a_report_in_todays_names_stays_as_it_is() -> None:
    content = synthetic.content()
    assert migration.current(content) == content


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"requirements": {}, "checks": None},
        {"requirements": {"A-001": 1}, "checks": [1, {}, {"id": 1}, {"tier": []}]},
        {"requirements": {"A-001": {"tier": {}}}, "checks": [{"id": "a", "requirements": [1]}]},
    ],
)
def test_what_has_not_the_form_of_a_report_is_left_to_the_schema(content: Any) -> None:
    assert migration.current(content) == content
