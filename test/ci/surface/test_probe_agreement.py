# SPDX-License-Identifier: BSD-3-Clause
"""What the comparison finds and what the probe says must fit; where they do not, that is told."""

from __future__ import annotations

import dataclasses

import pytest

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity
from torch_backend_ci.surface.probe import Covered, Place, ProbeError, ProbeResult, Use
from torch_backend_ci.surface.probe.agreement import RULE, agree

HEADER = "torch/include/c10/core/Allocator.h"
FILE = "surfaces/allocator.h"


def used(name: str, use: Use, line: int, declared: int = 1) -> Covered:
    return Covered(name, use, Place(HEADER, declared), Place(FILE, line), line, line + 1)


BEFORE = ProbeResult(
    "2.13.0",
    "2.13.0",
    errors=(),
    uses=(
        used("c10::Allocator", Use.DERIVES, 10),
        used("c10::Allocator::allocate", Use.OVERRIDES, 12),
        used("c10::SetAllocator", Use.NAMES, 20, declared=7),
        used("REGISTER_ALLOCATOR", Use.EXPANDS, 30),
    ),
)


def after(*lines: int, fatal: bool = False, unimplemented: tuple[str, ...] = ()) -> ProbeResult:
    """The same, where the torch after refuses these lines."""
    errors = tuple(
        ProbeError(Place(FILE, line), "refused", unimplemented=unimplemented, fatal=fatal)
        for line in lines
    )
    return dataclasses.replace(BEFORE, torch="2.14.0", errors=errors)


def found(
    rule: str, name: str, severity: Severity = Severity.COMPILE_BREAK, line: int = 1
) -> Finding:
    declaration = Declaration(Domain.CPP, "method", name, "allocator", name, HEADER, line)
    was = None if rule.endswith("added") else declaration
    now = declaration if was is None else None
    return Finding(rule, severity, "allocator", Domain.CPP, name, "", was, now, ("callers",))


REMOVED = found("virtual_removed", "c10::Allocator::allocate")
ADDED = found("pure_virtual_added", "c10::Allocator::more")
EXTENDED = found("signature_compatible", "c10::SetAllocator", Severity.REBUILD, line=7)


@pytest.mark.parametrize(
    ("finding", "now", "opinion"),
    [
        # A break of what the probe does, and the line is refused.
        (REMOVED, after(12), "agrees"),
        (REMOVED, after(13), "agrees"),  # in the body of what overrides it
        (ADDED, after(99, unimplemented=("c10::Allocator::more",)), "agrees"),
        (found("macro_removed", "REGISTER_ALLOCATOR"), after(30), "agrees"),
        (found("class_removed", "c10::Allocator"), after(10), "agrees"),
        # A break of what the probe does, and nothing is refused.
        (REMOVED, after(), "disagrees"),
        (ADDED, after(), "disagrees"),
        (found("macro_removed", "REGISTER_ALLOCATOR"), after(), "disagrees"),
        # Nothing breaks, nothing is refused.
        (EXTENDED, after(), "agrees"),
        # Nothing breaks, and the line is refused for another reason, or none is known.
        (EXTENDED, after(20), "not_covered"),
        # The probe does something else, or nothing, with the declaration.
        (found("default_removed", "c10::SetAllocator", line=7), after(), "not_covered"),
        (found("function_removed", "c10::SetAllocator", line=8), after(), "not_covered"),
        (found("function_removed", "c10::GetAllocator"), after(), "not_covered"),
        (found("pure_virtual_added", "c10::DeviceAllocator::more"), after(), "not_covered"),
        # A fatal error keeps the compiler from the rest.
        (REMOVED, after(1, fatal=True), "not_covered"),
        # What a table sized by a count says.
        (
            found("constant_changed", "c10::SetAllocator", Severity.SILENT_BREAK),
            after(20),
            "agrees",
        ),
    ],
)
def test_each_finding_gets_the_opinion_of_the_probe(
    finding: Finding, now: ProbeResult, opinion: str
) -> None:
    assert agree([finding], BEFORE, now)[0].probe == opinion


def test_a_refused_line_that_no_finding_explains_is_a_finding() -> None:
    (kept, new) = agree([REMOVED], BEFORE, after(12, 20))
    assert kept.rule == "virtual_removed"
    assert (new.rule, new.severity, new.probe) == (RULE, Severity.COMPILE_BREAK, "disagrees")
    assert new.name == "c10::SetAllocator"
    assert new.surface == "allocator"
    assert f"{FILE}:20" in new.message


def test_a_refused_line_is_explained_by_a_finding_about_the_class() -> None:
    assert len(agree([found("made_final", "c10::Allocator")], BEFORE, after(12))) == 1


def test_what_follows_from_a_refused_line_is_told_once() -> None:
    assert len(agree([REMOVED], BEFORE, after(12, 50))) == 1
    assert len(agree([], BEFORE, after(50))) == 1


def test_a_cosmetic_difference_explains_nothing() -> None:
    cosmetic = found("function_added", "c10::SetAllocator", Severity.COSMETIC)
    assert len(agree([cosmetic], BEFORE, after(20))) == 2


def test_findings_outside_of_cpp_have_no_opinion() -> None:
    finding = dataclasses.replace(REMOVED, domain=Domain.PYTHON)
    assert agree([finding], BEFORE, after())[0].probe is None


def test_a_base_that_the_probe_does_not_fit_judges_nothing() -> None:
    with pytest.raises(CiError, match="does not fit this base"):
        agree([], after(12), after())


def test_two_probes_for_different_versions_judge_nothing() -> None:
    with pytest.raises(CiError, match="nothing can be compared"):
        agree([], BEFORE, dataclasses.replace(BEFORE, written_for="2.14.0"))
