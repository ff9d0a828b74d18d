# SPDX-License-Identifier: BSD-3-Clause
"""The sample is the same for a seed, a run can go on, and the score is the standard one."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_struct
from mutants import sample, score
from mutants.equivalent import BY_HAND, including, judged_again
from mutants.rules import Mutant
from mutants.tree import ROOT, modules
from mutants.verdicts import LOADING, Record, Verdict

from torch_conformance.spec import catalogue


@pytest.mark.parametrize(
    ("killed", "count", "low", "high"),
    # Newcombe 1998, table I: Wilson's score method without continuity correction.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilsons(killed: int, count: int, low: float, high: float) -> None:
    assert score.interval(killed, count) == pytest.approx((low, high), abs=6e-5)


def test_nothing_is_known_of_no_mutant() -> None:
    assert score.interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("group", sample.SCOPE)
def test_a_seed_names_its_mutants(group: str) -> None:
    first, again, other = (
        list(itertools.islice(sample.endless(group, seed), 30)) for seed in (7, 7, 8)
    )
    assert first == again != other
    assert {sample.group_of(mutant.file) for mutant in first} == {group}
    assert len({mutant.place for mutant in first}) == 30


def test_no_source_is_in_two_groups() -> None:
    one, other = (sample.names(group) for group in sample.SCOPE)
    assert one and other and not one & other


def test_a_run_goes_on_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    record = Record(file)
    record.add(Verdict(1, killed=True, by="copy/a"))
    record.add(Verdict(2))
    file.write_bytes(file.read_bytes() + b'{"number":3,"kil')
    again = Record(file)
    assert again.verdicts == record.verdicts
    again.add(Verdict(3))
    assert list(Record(file).verdicts) == [1, 2, 3]


def test_what_was_judged_by_hand_still_is_where_it_was() -> None:
    for name in BY_HAND:
        place = re.match(r"(.+?):(\d+): [^`]+: `(\S+)", name)
        assert place, name
        line = (ROOT / place[1]).read_text().splitlines()[int(place[2]) - 1]
        assert place[3].rstrip("`") in line, f"{name}: look again, and change its line"


def test_a_survivor_that_is_judged_later_is_left_out_of_the_score() -> None:
    name = next(iter(BY_HAND))
    place = re.match(r"(.+?):(\d+): (.+?): `(.+)` -> `(.*)`$", name, re.S)
    assert place
    file, line, rule, original, instead = place.groups()
    mutants = {1: Mutant(file, int(line), 0, 1, rule, original, instead)}
    assert str(mutants[1]) == name
    assert judged_again(mutants, {1: Verdict(1)})[1].equivalent == BY_HAND[name]
    other = {1: Mutant(file, int(line) + 1, 0, 1, rule, original, instead)}
    assert not judged_again(other, {1: Verdict(1)})[1].equivalent


def test_what_includes_a_changed_file_is_found_by_relative_paths_too(tmp_path: Path) -> None:
    build, source = tmp_path / "build", tmp_path / "tree" / "a.h"
    said = (
        "one.o: #deps 2 (VALID)\n    ../tree/one.cpp\n    ../tree/a.h\n\n"
        f"two.o: #deps 1 (VALID)\n    {source}\n\n"
        "three.o: #deps 2 (VALID)\n    ../tree/extra.h\n    ../other/a.h\n"
    )
    assert list(including(source, said, build)) == ["one.o", "two.o"]


def test_the_score_counts_no_equivalent_mutant_and_lists_survivors() -> None:
    mutants = {n: Mutant("csrc/runtime/a.cpp", n, 0, 1, "operator", "a < b", "a <= b")
               for n in range(4)}  # fmt: skip
    said = [
        Verdict(0, killed=True, by="stream/a", outcome="fallback", reached=2),
        Verdict(1, equivalent="the same code", reached=3),
        Verdict(2, ran=5, reached=9, skipped=4),
        Verdict(3),
    ]
    placed = {n: replace(one, file="csrc/runtime/stream.cpp") for n, one in mutants.items()}
    text = score.markdown(placed, {one.number: one for one in said}, 7)
    assert "| device | 4 | 1 | 1 | 0 | 33% | 6% to 79% |" in text
    assert "## Survivors: 2" in text
    assert "(5 checks ran, 4 that reach it were left out)" in text
    assert "(no check reaches it)" in text
    assert "| stream | 1 |" in text
    assert "In 1 of the kills the check passes, but by CPU fallback" in text
    assert "(owners.yaml) made 1 of the 1 kills by a check (100%)" in text


def test_a_kill_by_the_suite_of_drivers_is_counted_and_named() -> None:
    mutant = Mutant("csrc/drivers/sim/memory.cpp", 1, 0, 1, "operator", "a < b", "a <= b")
    alive = Verdict(1, ran=3, reached=3, driver_tests=7)
    killed = replace_struct(alive, killed=True, by="drivers/test_memory.py::test_a")
    text = score.markdown({1: mutant}, {1: killed}, 7)
    assert "| device | 1 | 0 | 1 | 1 | 100% |" in text
    assert "| drivers | 1 |" in text
    assert "made 1 of the 1 kills by a check (100%)" in text
    unloaded = Verdict(1, killed=True, by=LOADING)
    assert "made 0 of the 0 kills by a check; with" in score.markdown({1: mutant}, {1: unloaded}, 7)
    text = score.markdown({1: mutant}, {1: alive}, 7)
    assert "(3 checks ran, 7 tests of drivers ran)" in text


def test_survivors_that_random_calls_do_not_show_have_a_score_without_them() -> None:
    mutants = {
        n: Mutant("csrc/autocast/fallthrough.cpp", n, 0, 1, "operator", "a < b", "a <= b")
        for n in range(4)
    }
    said = [
        Verdict(0, killed=True, by="autocast/a", reached=2),
        Verdict(1, ran=5, reached=9, calls=800),
        Verdict(2, ran=5, reached=9, calls=700, differs="opinfo/forward:add:float32#3"),
        Verdict(3, ran=5, reached=9, calls=700, equivalent="a person said why"),
    ]
    text = score.markdown(mutants, {one.number: one for one in said}, 7)
    assert "| operators | 4 | 1 | 1 | 0 | 33% |" in text
    assert "the same results with 1 of 2 survivors of the group operators" in text
    assert "its score is 50% (9% to 91%)" in text  # 1 of 2
    assert "(5 checks ran, 800 random calls give the same results)" in text
    assert "(5 checks ran, another result of opinfo/forward:add:float32#3)" in text


def test_what_compiles_modules_is_in_scope_and_finds_none_in_the_cache() -> None:
    assert {sample.group_of(file) for file in sample.COMPILERS} == {"device"}
    assert not sample.compiles("csrc/drivers/sim/module.cpp")
    with modules(cold=True) as cold, modules(cold=False) as warm:
        assert warm == {}
        [folder] = map(Path, cold.values())
        assert folder.is_dir() and not [*folder.iterdir()]
    assert not folder.exists()


def test_every_source_has_owners_and_every_owner_is_a_chapter() -> None:
    files = {file for group in sample.SCOPE for file in sample.names(group)}
    assert not [file for file in files if not sample.owners_of(file)]
    chapters = {requirement.surface for requirement in catalogue.load().values()}
    assert {owner for owners in sample.OWNERS.values() for owner in owners} <= chapters


def test_every_pattern_of_the_owners_decides_for_a_file() -> None:
    files = sorted({file for group in sample.SCOPE for file in sample.names(group)})
    unused = set(sample.OWNERS)
    for file in files:
        unused.discard(next(pattern for pattern in sample.OWNERS if fnmatch(file, pattern)))
    assert not unused
