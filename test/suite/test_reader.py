# SPDX-License-Identifier: BSD-3-Clause
"""A report that is not what it says is refused as a whole, with every reason and no traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic

from torch_conformance.results import reader, writing
from torch_conformance.spec import strict

Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    return synthetic.replaced(
        synthetic.record("STREAM-004", "fail"),
        synthetic.record("COPY-001", "xfail"),
        synthetic.record("EVENT-001", "unsupported", reason=synthetic.needs("events")),
    )


def test_a_valid_report_is_read_and_its_state_told(content: dict[str, Any]) -> None:
    document = synthetic.document(content)
    assert document.state == "red"
    assert document.shard is None
    assert synthetic.document(synthetic.content()).state == "green"
    excused = [synthetic.record("COPY-001", "unsupported")]
    assert synthetic.document(synthetic.content(excused)).state == "nothing executed"
    waiting = [synthetic.record("COPY-001", "not_run")]
    assert synthetic.document(synthetic.content(waiting)).state == "incomplete"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"\xff\xfe{}", "not UTF-8 at byte 0"),
        (b'{"a": 1', "not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * 100 + b"]" * 100, "nested deeper"),
        (b'{"a": 1, "b": 2, "a": 3}', "key 'a' stands twice"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too large"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"\\udfff": 1}', "half a character"),
        (b"null", "Expected `object`, got `null`"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `schema`"),
    ],
)
def test_bytes_that_are_no_report_are_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(reader.ReportError) as error:
        reader.parse(data, "a.json")
    assert words in str(error.value)
    assert "a.json" in str(error.value)


def first(content: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = content["checks"][0]
    return record


def part(shard: str) -> dict[str, Any]:
    """A shard as a merged report names it."""
    facts = {"started": "", "duration_s": 1.0, "platform": "Linux", "sha256": "0" * 64}
    return {"shard": shard, **facts}


GONE = {"kind": "stated", "text": "it is gone"}
EXCUSED = {"kind": "excused", "list": "xfail", "entry": "*", "text": "t", "link": "l"}
EDITS: dict[str, tuple[Edit, str]] = {
    "schema": (lambda c: c.update(schema="urn:other"), "schema"),
    "more keys": (lambda c: c.update(verdict="pass"), "verdict"),
    "totals": (lambda c: c["totals"].update({"pass": 9999}), "totals.pass: says 9999"),
    "totals kind": (lambda c: c["totals"].update({"pass": "all"}), "totals.pass"),
    "totals outcome": (lambda c: c["totals"].update(good=1), "good"),
    "doubled": (lambda c: c["checks"].append(first(c)), "has 2 records"),
    "gone": (lambda c: c["checks"].pop(), "complete, with"),
    "outcome": (lambda c: first(c).update(outcome="passed"), "passed"),
    "failed": (lambda c: first(c).update(outcome="fail"), "fail needs 'message' and 'repro'"),
    "not run": (
        lambda c: first(c).update(outcome="not_run", reason={"kind": "device_gone", "text": "r"}),
        "were not run",
    ),
    "id": (lambda c: first(c).update(id="Autocast/X"), "Autocast/X"),
    "id newline": (lambda c: first(c).update(id=first(c)["id"] + "\n"), "is not an id"),
    "surface": (lambda c: first(c).update(surface="copy"), "is not an id of surface 'copy'"),
    "tier": (lambda c: first(c).update(tier="compile"), "tier is 'compile'"),
    "level": (lambda c: first(c).update(level="may"), "level is 'may'"),
    "requirement": (lambda c: first(c).update(requirements=["X-001"]), "'X-001'"),
    "list of none": (lambda c: first(c).update(requirements=[]), "requirements"),
    "duration": (lambda c: first(c).update(duration_s=-1), "duration_s"),
    "excused": (lambda c: first(c).update(reason=EXCUSED), "pass by an entry"),
    "kind of reason": (lambda c: first(c).update(reason={"kind": "other"}), "reason.kind"),
    "reason of a pass": (lambda c: first(c).update(reason=GONE), "pass cannot have a 'reason'"),
    "reason of a failure": (
        lambda c: first(c).update(outcome="fail", message="m", repro="r", reason=GONE),
        "fail cannot have a 'reason'",
    ),
    "unexcused": (
        lambda c: [r.update(reason=GONE) for r in c["checks"] if r["outcome"] == "xfail"],
        "xfail needs a 'reason' of kind 'excused'",
    ),
    "shard": (lambda c: c["run"]["options"].update(shard="3/2"), "there is no shard 3/2"),
    "shard text": (lambda c: c["run"]["options"].update(shard="x"), "run.options.shard"),
    "selection": (lambda c: c["run"].update(selection=None), "without saying what was selected"),
    "digest": (
        lambda c: c["run"]["selection"].update(digest="0" * 64),
        "not those of the selected",
    ),
    "count": (lambda c: c["run"]["selection"].update(checks=1), "of 1 selected"),
    "tier chosen": (lambda c: c["run"]["options"].update(tier="smoke"), "leaves out --tier=smoke"),
    "chosen": (lambda c: c["run"]["options"].update(checks=["a/b"]), "leaves out --check=a/b"),
    "dtypes": (lambda c: c["run"]["options"].update(dtypes=["pr"]), "leaves out --dtypes=pr"),
    "merged": (lambda c: c["run"].update(merged=[]), "merged from nothing"),
    "merged of some": (
        lambda c: c["run"].update(merged=[part("1/3"), part("3/3")]),
        "merged from 1/3 3/3, which are not all shards",
    ),
    "part of a whole": (
        lambda c: c["run"]["selection"].update(part={"checks": 1, "digest": "0" * 64}),
        "said of a run that is no shard",
    ),
    "shard of a record": (lambda c: first(c).update(shard=1), "said to be of shard 1"),
    "load": (lambda c: c["run"].update(cannot_load="x"), "cannot be loaded"),
    "started": (lambda c: c["run"].update(started="yesterday"), "not a point in time"),
    "seed": (lambda c: c["run"].update(seed=True), "run.seed"),
    "requirement id": (lambda c: c["requirements"].update({"X": first(c)}), "X"),
    "complete": (lambda c: c.update(complete="yes"), "complete"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_report_that_contradicts_itself_is_refused(edit: str, content: dict[str, Any]) -> None:
    changed = copy.deepcopy(content)
    change, words = EDITS[edit]
    change(changed)
    with pytest.raises(reader.ReportError) as error:
        reader.parse(json.dumps(changed).encode(), "a.json")
    assert words in str(error.value)


def test_a_report_with_many_faults_names_the_first_twenty(content: dict[str, Any]) -> None:
    changed = copy.deepcopy(content)
    for record in changed["checks"]:
        record["tier"] = "multi_device" if record["tier"] != "multi_device" else "core"
    with pytest.raises(reader.ReportError, match=r"and \d+ more"):
        synthetic.document(changed)


@pytest.mark.parametrize(
    ("path", "words"),
    [("absent.json", "no such file"), (".", "not a file"), ("\0", "no such file|null")],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(reader.ReportError, match=words):
        reader.load(tmp_path / path)


def test_a_file_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * 3_000_000)
    with pytest.raises(strict.Malformed, match="larger than 2 MiB"):
        strict.read(file, 2 << 20)


def test_control_characters_of_a_report_do_not_reach_the_terminal() -> None:
    assert reader.plain("a\x1b[2Jb\nc\u202e") == "a\ufffd[2Jb\nc\ufffd"


def test_a_file_that_cannot_be_replaced_leaves_no_temporary(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        writing.replace(tmp_path / "report.json", "{}")
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]
