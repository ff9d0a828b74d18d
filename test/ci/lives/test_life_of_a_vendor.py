# SPDX-License-Identifier: BSD-3-Clause
"""A backend's own repository runs the suite on its PRs by the ten lines of the documents."""

from __future__ import annotations

import pytest

from lives.of_a_vendor import NAME, PLAYS, Life
from lives.steps import left

pytestmark = pytest.mark.nightly


def test_a_pr_that_breaks_nothing_is_green(vendor: Life) -> None:
    run = vendor.good["conformance"]
    assert run.conclusion == "success"
    assert "passed" in run.leg("conformance / suite").log


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


def test_the_vendor_gives_no_right_but_to_read(vendor: Life) -> None:
    theirs = [t for t in vendor.stage.fake.tokens.values() if t.repository == NAME]
    assert theirs
    assert {frozenset((t.permissions or {}).items()) for t in theirs} == {
        frozenset({("contents", "read")})
    }


def test_every_step_of_its_workflows_is_played(vendor: Life) -> None:
    assert left(PLAYS, vendor.stage) == set()
