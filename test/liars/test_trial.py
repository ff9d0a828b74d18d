# SPDX-License-Identifier: BSD-3-Clause
"""What counts as noticed."""

from __future__ import annotations

import pytest
from trial import Kill, Usual, _noticed

from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult


def _judged(outcome: Outcome, *fallbacks: str) -> CheckResult:
    return CheckResult(
        id="copy/a",
        requirements=("COPY-001",),
        surface="copy",
        tier="core",
        level="must",
        outcome=outcome,
        duration_s=0.1,
        message="it says",
        fallbacks=fallbacks,
    )


def test_a_failure_is_noticed_whatever_ran_on_the_cpu() -> None:
    assert _noticed(_judged(Outcome.FAIL, "aten::a"), None) == Kill("copy/a", "fail", "it says")


@pytest.mark.parametrize(
    ("usual", "said"),
    [
        (None, None),
        ({}, "by CPU fallback: aten::a, aten::b"),
        ({"copy/a": frozenset({"aten::a"})}, "by CPU fallback: aten::b"),
        ({"copy/a": frozenset({"aten::a", "aten::b", "aten::c"})}, None),
    ],
)
def test_an_operator_that_newly_runs_on_the_cpu_is_noticed(
    usual: Usual | None, said: str | None
) -> None:
    kill = _noticed(_judged(Outcome.PASS, "aten::b", "aten::a"), usual)
    assert kill == (Kill("copy/a", "fallback", said) if said else None)
