# SPDX-License-Identifier: BSD-3-Clause
"""Shards become a report only if they prove that each check is there exactly once."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import pytest
import synthetic
from synthetic import record, replaced

from torch_conformance.cli import main
from torch_conformance.results import merging, reader
from torch_conformance.results.junit import junit
from torch_conformance.results.writing import dumps
from torch_conformance.selecting import selection
from torch_conformance.selecting.durations import Durations
from torch_conformance.spec.outcome import Outcome

Edit = Callable[[list[dict[str, Any]]], Any]


def merged(contents: list[dict[str, Any]]) -> dict[str, Any]:
    made = merging.merge([synthetic.document(content) for content in contents])
    plain: dict[str, Any] = json.loads(dumps(made))
    return plain


@pytest.mark.parametrize("count", [1, 2, 7])
def test_shards_give_the_report_of_the_whole_run(count: int) -> None:
    whole = replaced(record("COPY-001", "fail"))
    made = merged(synthetic.shards(whole, count)[::-1])
    by_shard = {r.pop("shard"): 0 for r in made["checks"]}
    assert sorted(by_shard) == list(range(1, count + 1))
    assert made["checks"] == whole["checks"]
    assert made["totals"] == whole["totals"]
    assert synthetic.document(made).shard is None
    assert [part["shard"] for part in made["run"]["merged"]] == [
        f"{i + 1}/{count}" for i in range(count)
    ]


def test_platforms_may_differ_and_are_listed() -> None:
    shards = synthetic.shards(synthetic.content(), 2)
    shards[1]["run"]["platform"] = "Other"
    assert merged(shards)["run"]["platform"] == "Linux; Other"


def moved(shards: list[dict[str, Any]]) -> None:
    """One check moves to another shard: the sizes and the whole stay as they should be."""
    first, second = shards[0]["checks"], shards[1]["checks"]
    first[0], second[0] = second[0], first[0]
    restate(shards[0])
    restate(shards[1])


def doubled(shards: list[dict[str, Any]]) -> None:
    shards[1]["checks"][0] = shards[0]["checks"][0]
    restate(shards[1])


def overlapping(shards: list[dict[str, Any]]) -> None:
    """A shard has, and says that it has, a check of another one as well."""
    shards[0]["checks"].append(shards[1]["checks"][0])
    restate(shards[0])


def short(shards: list[dict[str, Any]]) -> None:
    """A check was left out, and the shard says that it never had it."""
    shards[0]["checks"].pop()
    restate(shards[0])


def restate(shard: dict[str, Any]) -> None:
    """Let the part and the totals be those of the records."""
    ids = [r["id"] for r in shard["checks"]]
    part = {"checks": len(ids), "digest": selection.digest(ids)}
    shard["run"]["selection"] = shard["run"]["selection"] | {"part": part}
    shard["totals"] = synthetic.totals(shard["checks"])


EDITS: dict[str, tuple[Edit, str]] = {
    "missing": (lambda s: s.pop(1), "of 3 shards these are missing: 2"),
    "twice": (lambda s: s.append(s[0]), "shard 1/3 is there 2 times"),
    "of another number": (
        lambda s: s.__setitem__(0, synthetic.shards(synthetic.content(), 2)[0]),
        "in 2 and 3 parts",
    ),
    "whole": (lambda s: s.append(synthetic.content()), "is no shard"),
    "seed": (lambda s: s[0]["run"].update(seed=1), "in seed"),
    "torch": (lambda s: s[0]["run"].update(torch={"version": "2.15", "git": None}), "in torch"),
    "suite": (lambda s: s[0]["run"].update(suite="9"), "in suite"),
    "options": (lambda s: s[0]["run"]["options"].update(fallback="warn"), "in options"),
    "capabilities": (lambda s: s[2]["run"].update(capabilities={}), "in capabilities"),
    "driver": (lambda s: s[2]["run"].update(driver={"name": "x"}), "in driver"),
    "moved": (moved, "does not have the checks of shard 1"),
    "doubled": (doubled, "is in 2 shards"),
    "part": (
        lambda s: s[0]["checks"].__setitem__(0, s[1]["checks"][0]),
        "not those of the selected checks",
    ),
}
TIMED_EDITS: dict[str, tuple[Edit, str]] = {
    "overlapping": (overlapping, "is in 2 shards"),
    "short": (short, "which are not the .* that the run selected"),
    "cut by another file": (
        lambda s: s[0]["run"]["options"]["durations"].update(sha256="1" * 64),
        "in options",
    ),
    "cut by none": (lambda s: s[0]["run"]["options"].update(durations=None), "no such part"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_not_the_shards_of_one_run_is_not_merged(edit: str) -> None:
    shards = synthetic.shards(synthetic.content(), 3)
    for shard in shards:
        shard["run"] = dict(shard["run"])
    change, words = EDITS[edit]
    change(shards)
    with pytest.raises((merging.MergeError, reader.ReportError), match=words):
        merged(shards)


def timed(count: int) -> list[dict[str, Any]]:
    """Shards of unlike sizes, cut by durations: the first check takes longer than all others."""
    whole = synthetic.content()
    seconds = {r["id"]: 1.0 for r in whole["checks"]} | {
        whole["checks"][0]["id"]: 2.0 * len(whole["checks"])
    }
    return synthetic.shards(whole, count, Durations("before.json", "0" * 64, seconds))


@pytest.mark.parametrize("count", [2, 5])
def test_shards_of_unlike_sizes_are_merged_and_every_check_says_which_one_ran_it(
    count: int,
) -> None:
    shards = timed(count)
    sizes = [len(shard["checks"]) for shard in shards]
    assert min(sizes) == 1 < max(sizes)
    made = merged(shards)
    assert [sum(r["shard"] == i + 1 for r in made["checks"]) for i in range(count)] == sizes
    assert "part" not in made["run"]["selection"]
    assert made["run"]["options"]["durations"] == {"file": "before.json", "sha256": "0" * 64}
    assert synthetic.document(made).complete


@pytest.mark.parametrize("edit", TIMED_EDITS)
def test_shards_cut_by_durations_prove_that_each_check_is_there_once(edit: str) -> None:
    shards = copy.deepcopy(timed(3))
    change, words = TIMED_EDITS[edit]
    change(shards)
    with pytest.raises((merging.MergeError, reader.ReportError), match=words):
        merged(shards)


def test_shards_of_a_suite_that_did_not_tell_their_part_are_still_merged() -> None:
    shards = copy.deepcopy(synthetic.shards(synthetic.content(), 2))
    for shard in shards:
        del shard["run"]["selection"]["part"]
        del shard["run"]["options"]["durations"]
    assert len(merged(shards)["checks"]) == len(synthetic.content()["checks"])


def test_an_incomplete_shard_is_not_merged() -> None:
    shards = synthetic.shards(replaced(record("COPY-001", "not_run")), 2)
    for shard in shards:
        shard["complete"] = not any(r["outcome"] == "not_run" for r in shard["checks"])
    with pytest.raises(merging.MergeError, match="run this shard again"):
        merged(shards)


def test_shards_of_a_real_run_are_merged_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for index in (1, 2):
        folder = tmp_path / str(index)
        folder.mkdir()
        options = ("--backend=cpu", "--check=planted/good*", "--check=planted/wrong*")
        run = harness.run(folder, harness.PLANTED, *options, f"--shard={index}/2")
        files.append(str(run.report_file))
    output = tmp_path / "whole.json"
    assert main(["merge", *files, "-o", str(output)]) == 1
    assert "22 checks of 2 shards, each exactly once, red" in capsys.readouterr().out
    document = reader.load(output)
    assert document.report.totals[Outcome.PASS] == 20
    expected = junit("cpu", document.run.started, document.checks)
    assert output.with_suffix(".xml").read_text() == expected
    assert main(["merge", files[0], "-o", str(tmp_path / "no.json")]) == 4
    assert not (tmp_path / "no.json").exists()
    assert main(["level", str(output)]) == 1
    assert "not the standard selection, but --check=planted/good*" in capsys.readouterr().out
