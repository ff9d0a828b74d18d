# SPDX-License-Identifier: BSD-3-Clause
"""The table of outcomes has all of them, and does not contradict itself."""

from __future__ import annotations

from torch_conformance.spec.outcome import (
    BAD,
    EXECUTED,
    NOT_ASKED,
    RANKS,
    SKIPPED,
    TRAITS,
    Outcome,
)


def test_every_outcome_is_in_the_table_with_a_letter_of_its_own() -> None:
    assert list(TRAITS) == list(Outcome)
    assert len({traits.letter for traits in TRAITS.values()}) == len(Outcome)


def test_what_makes_a_run_red_is_red_everywhere() -> None:
    assert {outcome for outcome, traits in TRAITS.items() if traits.tone == "bad"} == BAD
    assert {outcome for outcome, traits in TRAITS.items() if traits.category == "failed"} == BAD
    assert not BAD & SKIPPED
    assert BAD <= EXECUTED
    assert not NOT_ASKED & EXECUTED


def test_a_pass_is_the_best_outcome_and_to_know_nothing_the_worst() -> None:
    assert RANKS["pass"] == max(RANKS.values())
    assert RANKS["not_run"] == min(RANKS.values())
    assert set(RANKS.values()) == set(range(max(RANKS.values()) + 1))
