# SPDX-License-Identifier: BSD-3-Clause
"""A backend's own repository runs the suite on its PRs, as the example in examples/vendor does."""

from __future__ import annotations

import gzip

import pytest

from lives.of_a_vendor import NAME, PLAYS, Life
from lives.steps import left
from torch_conformance.results import reader

pytestmark = pytest.mark.nightly


def test_the_first_push_is_compared_with_nothing_and_kept(vendor: Life) -> None:
    run = vendor.first["conformance"]
    assert "there is no run to compare with" in run.leg("conformance / gate").log
    assert run.conclusion == "success"
    report = reader.parse(gzip.decompress(vendor.baseline(vendor.first)), "baseline")
    assert report.complete


def test_a_pr_that_breaks_nothing_is_green(vendor: Life) -> None:
    run = vendor.good["conformance"]
    assert run.conclusion == "success"
    assert "passed" in run.leg("conformance / suite").log
    assert "there is no run to compare with" not in run.leg("conformance / gate").log


def test_the_suite_is_the_one_that_the_vendor_names_and_the_code_the_vendors(vendor: Life) -> None:
    log = vendor.good["conformance"].leg("conformance / suite").log
    assert "make: Entering directory" in log and "conformance-suite" in log
    assert {vendor.good["conformance"].event.repository} == {NAME}


def test_a_pr_that_breaks_the_backend_is_red(vendor: Life) -> None:
    run = vendor.bad["conformance"]
    assert run.jobs["conformance / suite"].result == "success"
    assert run.jobs["conformance / gate"].result == "failure"
    gate = run.leg("conformance / gate")
    assert "regression" in gate.log and "view/" in gate.log
    assert "view/" in gate.summary
    assert any(annotation.level == "error" for annotation in gate.annotations)


def test_a_pr_that_exchanges_the_descriptor_has_no_result(vendor: Life) -> None:
    run = vendor.changed["conformance"]
    assert run.conclusion == "failure"
    gate = run.leg("conformance / gate")
    assert "infrastructure: No usable result on backend: descriptor is " in gate.log


def test_what_was_merged_is_kept_and_not_the_fault_of_the_next_pr(vendor: Life) -> None:
    assert vendor.merged["conformance"].conclusion == "failure"
    assert vendor.baseline(vendor.merged) != vendor.baseline(vendor.first)
    assert vendor.later["conformance"].conclusion == "success"
    assert "already bad" in vendor.later["conformance"].leg("conformance / gate").log


def test_a_pr_keeps_nothing(vendor: Life) -> None:
    for runs in (vendor.good, vendor.bad, vendor.later):
        assert runs["conformance"].jobs["keep"].result == "skipped"


def test_only_the_job_that_keeps_may_write(vendor: Life) -> None:
    theirs = [t for t in vendor.stage.fake.tokens.values() if t.repository == NAME]
    given = {frozenset((t.permissions or {}).items()) for t in theirs}
    assert given == {frozenset({("contents", "read")}), frozenset({("contents", "write")})}


def test_every_step_of_its_workflows_is_played(vendor: Life) -> None:
    assert left(PLAYS, vendor.stage) == set()
