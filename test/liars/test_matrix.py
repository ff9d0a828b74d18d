# SPDX-License-Identifier: BSD-3-Clause
"""The kill matrix is good if all are killed, nearly all as intended, and the truth passes."""

from __future__ import annotations

from dataclasses import replace

from liar import CLAIM, Liar, load
from matrix import Matrix
from suites import ROOT
from trial import Kill, Verdict

from torch_conformance.authoring.discovery import all_checks

LIAR = Liar("a_lie", "python", CLAIM, "It lies | badly.", ("CLAIM-001",))
KILL = Kill("claim/declared", "fail", "it is not there")
CAUGHT = Verdict("a_lie", {"claim/declared": "fail"}, [KILL])
BY_ACCIDENT = replace(CAUGHT, missed=["CLAIM-001"])
ALIVE = Verdict("a_lie", {"claim/declared": "pass"}, missed=["CLAIM-001"])
TRUTH = Verdict("truth", {"claim/declared": "pass"})


def of(*verdicts: Verdict, truth: Verdict = TRUTH) -> Matrix:
    return Matrix([LIAR] * len(verdicts), verdicts, [truth])


def test_all_that_are_caught_as_intended_are_good() -> None:
    assert of(CAUGHT, CAUGHT).good


def test_one_that_lives_is_bad_and_is_named() -> None:
    matrix = of(*[CAUGHT] * 99, ALIVE)
    assert not matrix.good
    assert "**nobody**" in matrix.markdown()


def test_one_in_twenty_may_be_caught_by_accident() -> None:
    assert of(*[CAUGHT] * 19, BY_ACCIDENT).good
    assert not of(*[CAUGHT] * 18, BY_ACCIDENT).good
    assert "by accident; missed CLAIM-001" in of(BY_ACCIDENT).markdown()


def test_the_document_does_not_depend_on_which_check_was_first_nor_how_it_ended() -> None:
    other = replace(CAUGHT, kills=[Kill("claim/denied", "timeout", "silent"), KILL], seconds=9.0)
    assert of(CAUGHT).markdown() == of(other).markdown()


def test_a_complaint_about_the_truth_is_bad() -> None:
    matrix = of(CAUGHT, truth=replace(TRUTH, kills=[KILL]))
    assert not matrix.good
    assert matrix.complaints() == ["truth claim/declared fail: it is not there"]
    assert not of(CAUGHT, truth=replace(TRUTH, cannot_load="no device")).good


def test_what_must_not_come_up_is_killed_by_that_alone() -> None:
    assert Verdict("a_lie", cannot_load="SystemExit", loads=False).intended
    assert not Verdict("a_lie", cannot_load="SystemExit").intended
    assert not Verdict("a_lie", kills=[KILL], loads=False).intended


def test_the_list_of_liars_names_the_checks_of_today() -> None:
    """Only `make liars` shows that each is caught; the sources say by which checks it has to be."""
    all_checks()
    liars = list(load().values())
    caught = [
        Verdict(each.id, cannot_load="SystemExit", loads=False)
        if each.cannot_load
        else replace(CAUGHT, liar=each.id)
        for each in liars
    ]
    document = (ROOT / "docs" / "liars.md").read_text()
    assert Matrix(liars, caught, [TRUTH]).markdown() == document, "`make liars` writes it"
