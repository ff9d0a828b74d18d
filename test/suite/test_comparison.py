# SPDX-License-Identifier: BSD-3-Clause
"""Two runs are compared by the ranks of outcomes; what is missing is lost, never unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic
from synthetic import record, replaced

from torch_conformance.cli import main
from torch_conformance.results import comparison

ID = "COPY-001"


def compared(old: dict[str, Any], new: dict[str, Any], *across: str) -> comparison.Comparison:
    before, after = (comparison.side_of(synthetic.document(made)) for made in (old, new))
    return comparison.compare(before, after, frozenset(across))


def moved(before: str, after: str) -> str:
    """In which list a check ends up whose outcome changes."""
    made = compared(replaced(record(ID, before)), replaced(record(ID, after)))
    names = ("regressions", "improvements", "withdrawn", "changed")
    found = [name for name in names if getattr(made, name)]
    return found[0] if found else "same"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("crash", "fail", "improvements"),
        ("crash", "timeout", "improvements"),
        ("timeout", "error", "improvements"),
        ("error", "fail", "improvements"),
        ("fail", "pass", "improvements"),
        ("xfail", "pass", "improvements"),
        ("flaky", "pass", "improvements"),
        ("pass", "flaky", "regressions"),
        ("pass", "xfail", "regressions"),
        ("pass", "unsupported", "regressions"),
        ("unsupported", "fail", "regressions"),
        ("fail", "error", "regressions"),
        ("fail", "device_lost", "regressions"),
        ("fail", "xfail", "changed"),
        ("fail", "unsupported", "withdrawn"),
        ("fail", "fail", "same"),
        ("unsupported", "blocked_upstream", "changed"),
    ],
)
def test_a_check_regresses_or_improves_by_the_ranks_of_its_outcomes(
    before: str, after: str, kind: str
) -> None:
    assert moved(before, after) == kind


def test_a_check_that_newly_runs_on_the_cpu_has_regressed() -> None:
    native, fallback = (replaced(record(ID, evidence=e)) for e in ("native", "fallback"))
    assert str(compared(native, fallback).regressions[0]).endswith("native -> fallback")
    assert not compared(native, fallback).good
    assert compared(fallback, native).good
    assert compared(fallback, native).improvements
    more = replaced(record(ID, fallbacks=["aten::add"]))
    assert "aten::add" in str(compared(replaced(record(ID)), more).regressions[0])


def test_a_flaky_check_that_is_not_listed_any_more_has_regressed() -> None:
    listed = replaced(record(ID, "flaky", excused={"list": "flaky", "entry": "*"}))
    assert compared(listed, replaced(record(ID, "flaky"))).regressions
    assert compared(replaced(record(ID, "flaky")), listed).good


def test_new_checks_count_when_they_are_bad() -> None:
    good, bad = (replaced(record(ID, o, number=1)) for o in ("pass", "fail"))
    assert compared(synthetic.content(), good).good
    assert len(compared(synthetic.content(), good).added) == 1
    assert not compared(synthetic.content(), bad).good


def test_a_check_that_is_gone_is_not_green() -> None:
    made = compared(replaced(record(ID, number=1)), synthetic.content())
    assert [change.id for change in made.removed] == [synthetic.check_id(ID, 1)]
    assert not made.good


@pytest.mark.parametrize("outcome", ["not_run", "unsupported"])
def test_a_run_of_no_use_is_not_green(outcome: str) -> None:
    useless = synthetic.content([record(ID, outcome)])
    for old, new in ((useless, useless), (useless, synthetic.content())):
        made = compared(old, new)
        assert made.lost
        assert not made.good


def test_capabilities_that_changed_are_listed() -> None:
    content = synthetic.content()
    content["run"]["capabilities"]["streams"] = {"value": False, "source": "declared"}
    changes = compared(synthetic.content(), content).capabilities
    assert [str(change) for change in changes] == ["streams: there, probed -> absent, declared"]


OTHER: dict[str, dict[str, Any]] = {
    "backend": {"backend": "other"},
    "suite": {"source": {"commit": None, "digest": "0" * 64}},
    "seed": {"seed": 7},
    "options": {"options": synthetic.run()["options"] | {"fallback": "forbid"}},
}


@pytest.mark.parametrize("name", OTHER)
def test_runs_that_do_not_ask_the_same_are_refused_unless_told(name: str) -> None:
    pair = synthetic.content(), synthetic.content(**OTHER[name])
    with pytest.raises(comparison.IncomparableError, match=f"{name} differs") as error:
        compared(*pair)
    assert error.value.names == [name]
    assert any(name in note for note in compared(*pair, name).notes)


def test_what_differs_is_said_in_words_and_digests_are_shortened() -> None:
    said: dict[str, Any] = {
        "suite": ("0.1.0", "5c86cb4d66855fef" * 4),
        "devices": [],
        "driver": None,
    }
    text = "suite 0.1.0, 5c86cb4d6685, devices none, driver none"
    assert comparison.plain(said) == text
    assert comparison.plain({"listed": True, "of": [2, 0.5]}) == "listed true, of 2, 0.5"


def test_a_shard_is_not_compared() -> None:
    shard = synthetic.shards(synthetic.content(), 2)[0]
    with pytest.raises(comparison.IncomparableError, match="merge the shards"):
        compared(shard, shard)


def test_another_torch_may_be_compared_and_is_said() -> None:
    other = synthetic.content(torch={"version": "2.15.0", "git": None})
    made = compared(synthetic.content(), other)
    assert made.good
    assert "2.13.0" in made.notes[0] and "2.15.0" in made.notes[0]


def test_the_command_says_what_changed_and_ends_accordingly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = str(synthetic.write(tmp_path / "old.json", replaced(record(ID, "crash"))))
    new = str(synthetic.write(tmp_path / "new.json", replaced(record(ID, "fail"))))
    assert main(["compare", old, new]) == 0
    assert f"{synthetic.check_id(ID)}: crash -> fail: fail of 3 elements" in capsys.readouterr().out
    assert main(["compare", new, old, "--json"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert made["good"] is False
    assert made["regressions"][0]["new"] == "crash"
    other = str(synthetic.write(tmp_path / "other.json", synthetic.content(seed=1)))
    assert main(["compare", new, other]) == 4
    assert "if that is meant: --across seed" in capsys.readouterr().err
    gone = str(synthetic.write(tmp_path / "gone.json", replaced(record(ID, number=1))))
    assert main(["compare", gone, new, "--allow-removed"]) == 1
    whole = str(synthetic.write(tmp_path / "whole.json", synthetic.content()))
    assert main(["compare", gone, whole, "--allow-removed"]) == 0
