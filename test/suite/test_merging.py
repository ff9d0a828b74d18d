# SPDX-License-Identifier: BSD-3-Clause
"""Shards become a report only if they prove that each check is there exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import pytest
import synthetic
from synthetic import record, replaced

from conformance.cli import main
from conformance.report import junit
from conformance.results import merging, reader

Edit = Callable[[list[dict[str, Any]]], Any]


def merged(contents: list[dict[str, Any]]) -> dict[str, Any]:
    return merging.merge([synthetic.document(content) for content in contents])


@pytest.mark.parametrize("count", [1, 2, 7])
def test_shards_give_the_report_of_the_whole_run(count: int) -> None:
    whole = replaced(record("COPY-001", "fail"))
    made = merged(synthetic.shards(whole, count)[::-1])
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


def doubled(shards: list[dict[str, Any]]) -> None:
    shards[1]["checks"][0] = shards[0]["checks"][0]


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
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_not_the_shards_of_one_run_is_not_merged(edit: str) -> None:
    shards = synthetic.shards(synthetic.content(), 3)
    for shard in shards:
        shard["run"] = dict(shard["run"])
    change, words = EDITS[edit]
    change(shards)
    with pytest.raises(merging.MergeError, match=words):
        merged(shards)


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
    assert document.content["totals"]["pass"] == 20
    expected = junit("cpu", document.checks)
    assert output.with_suffix(".xml").read_text() == expected
    assert main(["merge", files[0], "-o", str(tmp_path / "no.json")]) == 4
    assert not (tmp_path / "no.json").exists()
    assert main(["level", str(output)]) == 1
    assert "not the standard selection, but --check=planted/good*" in capsys.readouterr().out
