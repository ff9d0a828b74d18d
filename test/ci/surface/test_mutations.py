# SPDX-License-Identifier: BSD-3-Clause
"""An edited torch gives exactly the findings that the edit deserves: none is missing, none more.

The mutations are data (mutations/). Those about different things are judged together, by one
reading of the headers; `python test/ci/surface/mutation_bench.py` judges each alone.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from itertools import combinations

import pytest
from mutation import Mutation, batches, edited, load, owners
from mutation_bench import Bench

from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.diff.rules import RULES
from torch_backend_ci.surface.model import Domain

MUTATIONS = load()
# What an RFC's PR does to a whole header is told end to end (test_mutations_end_to_end.py).
WHOLE_HEADERS = [m for m in MUTATIONS if m.alone and m.file != "rfc0030.yaml"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("torch"))


def assert_right(bench: Bench, groups: Sequence[Sequence[Mutation]]) -> None:
    wrong = [verdict for group in groups if not (verdict := bench.judge(group)).right]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.nightly
def test_an_edit_that_no_backend_can_notice_gives_nothing(bench: Bench) -> None:
    cosmetic = [m for m in MUTATIONS if m.file == "cosmetic.yaml"]
    assert not [m.title for m in cosmetic if m.findings]
    assert_right(bench, batches(bench.tree.root, cosmetic, bench.classes))


@pytest.mark.nightly
def test_every_other_edit_gives_its_findings_and_nothing_else(bench: Bench) -> None:
    others = [m for m in MUTATIONS if m.file != "cosmetic.yaml" and not m.alone]
    assert_right(bench, batches(bench.tree.root, others, bench.classes))


@pytest.mark.nightly
@pytest.mark.parametrize("mutation", WHOLE_HEADERS, ids=lambda mutation: mutation.title)
def test_what_becomes_of_a_whole_header_is_told_of_the_header(
    bench: Bench, mutation: Mutation
) -> None:
    assert_right(bench, [[mutation]])


@pytest.mark.nightly
def test_mutations_that_are_judged_together_are_about_different_things(bench: Bench) -> None:
    for group in batches(bench.tree.root, MUTATIONS, bench.classes):
        for one, other in combinations(group, 2):
            assert owners(one, bench.classes).isdisjoint(owners(other, bench.classes))
            assert one.restores == other.restores
        assert len(group) == 1 or not any(mutation.alone for mutation in group)
        edits = [edit for mutation in group for edit in mutation.edits]
        edited(bench.tree.root, edits)  # and none edits what another has edited


def test_every_mutation_has_a_title_of_its_own() -> None:
    titles = collections.Counter(mutation.title for mutation in MUTATIONS)
    assert [title for title, count in titles.items() if count > 1] == []


def test_every_surface_and_every_rule_has_a_mutation() -> None:
    lines = [line.split(maxsplit=3) for m in MUTATIONS for line in m.findings]
    rules = {rule for domain in RULES if domain != Domain.SYMBOL for rule in RULES[domain]}
    assert rules - {rule for rule, _, _, _ in lines} == set()
    surfaces = {surface.name for surface in catalogue.load().surfaces}
    assert surfaces - {surface for _, _, surface, _ in lines} == set()
