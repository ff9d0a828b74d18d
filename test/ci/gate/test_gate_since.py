# SPDX-License-Identifier: BSD-3-Clause
"""A failure is joined with the findings that it has to do with, the most exact ones first."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from gating import Gate, finding, write_findings
from synthetic import record

from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import since
from torch_backend_ci.gate.report import text
from torch_backend_ci.gate.since import Findings
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Domain, Finding, Severity
from torch_conformance.spec.chapters import chapters

PURE = finding("c10::Allocator::copy_data")
GUARD = finding("c10::impl::DeviceGuardImplInterface::block", surface="guard")
NOTHING = finding("c10::Storage::nbytes", surface="storage", severity=Severity.COSMETIC)
OPERATOR = finding("aten::add.Tensor", surface="operators", domain=Domain.OPERATOR)
MODULE = finding(
    "torch.<device>._is_in_bad_fork", surface="device-module", domain=Domain.DEVICE_MODULE
)
ALL = (PURE, GUARD, NOTHING, OPERATOR, MODULE)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("RuntimeError: c10::Allocator::copy_data(void*, size_t) is not implemented", PURE),
        ("terminate: Allocator::copy_data", PURE),
        ("undefined symbol at::x, in my::c10::Allocator::copy_data", PURE),
        ("NotImplementedError: Could not run 'aten::add.Tensor' with arguments", OPERATOR),
        ("aten::add: 3 of 5 elements differ", OPERATOR),
        ("AttributeError: module 'torch.chip' has no attribute '_is_in_bad_fork'", MODULE),
    ],
)
def test_a_failure_that_names_the_declaration_fails_since_its_change(
    message: str, named: Finding
) -> None:
    found = Findings(ALL).since(synthetic.requirements()["OP-001"].surface, message)
    assert [(s.finding, s.by) for s in found] == [(named.identity, "name")]


@pytest.mark.parametrize(
    "message",
    ["copy_data", "aten::addmm differs", "c10::Allocator::copy_data2", "c10::Storage::nbytes", ""],
)
def test_a_failure_that_names_no_changed_declaration_may_be_since_its_surface(message: str) -> None:
    found = Findings(ALL).since(synthetic.requirements()["COPY-001"].surface, message)
    assert [(s.finding, s.by) for s in found] == [(PURE.identity, "surface")]
    assert not Findings([GUARD]).since(synthetic.requirements()["COPY-001"].surface, message)


def test_of_the_parts_that_a_check_stands_on_those_are_told_that_changed_for_the_worse() -> None:
    new = finding("c10::x", surface="guard", severity=Severity.NEW_CAPABILITY)
    found = Findings([PURE, new])
    assert chapters()["smoke"].upstream == ("device", "hooks", "guard", "allocator")
    assert found.parts("smoke") == ("allocator",)
    assert found.parts("no such surface") == ()


def test_the_longest_name_comes_first_and_few_are_told() -> None:
    many = [finding(f"c10::Allocator::f{n}") for n in range(9)]
    message = " ".join(["Allocator::f3", "c10::Allocator::f7", "Allocator::f1", "Allocator::f2"])
    found = Findings(many).since(synthetic.requirements()["COPY-001"].surface, message)
    assert len(found) == since.MOST
    assert found[0].finding == many[7].identity


def test_a_long_message_full_of_names_is_no_trouble() -> None:
    message = "::".join(["a"] * 200_000) + " c10::Allocator::copy_data"
    found = Findings(ALL).since(synthetic.requirements()["COPY-001"].surface, message)
    assert [s.by for s in found] == ["surface"]


def test_the_gate_says_since_when_a_check_fails(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.before()
    gate.after(record("COPY-001", "fail", message="c10::Allocator::copy_data is pure"))
    file = write_findings(gate.root / "findings.json", *ALL)
    status, made = gate.run("--findings", file)
    assert status == Exit.FINDINGS
    assert [cause.name for cause in made.findings] == ["c10::Allocator::copy_data"]
    assert "since c10::Allocator::copy_data has become pure virtual" in capsys.readouterr().out


def test_a_backend_that_could_not_be_built_is_told_what_may_have_kept_it(gate: Gate) -> None:
    """Its lane has no report: no result, and the findings are all there is to say."""
    gate.before()
    file = write_findings(gate.root / "findings.json", *ALL)
    status, made = gate.run("--findings", file)
    assert status == Exit.UNUSABLE
    said = "perhaps since c10::Allocator::copy_data has become pure virtual"
    assert any(note.startswith(said) for note in made.lanes[0].notes)
    assert said in text.render(made)


def test_every_chapter_names_the_surfaces_of_pytorch_that_it_depends_on() -> None:
    theirs = {surface.name for surface in catalogue.load().surfaces}
    for chapter in chapters().values():
        assert chapter.upstream
        assert set(chapter.upstream) <= theirs
