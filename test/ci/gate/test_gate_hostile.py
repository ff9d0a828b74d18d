# SPDX-License-Identifier: BSD-3-Clause
"""Whatever arrives in place of reports, the gate ends with 2, says why, and writes a verdict.

The reports come from runs of code that nobody has reviewed.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic
from gating import LANE, Gate, content, records
from synthetic import record

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import inputs, policy
from torch_backend_ci.gate.policy import Limits
from torch_backend_ci.gate.verdict import Class
from torch_conformance.spec import strict

HUGE = 200 << 20
Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    made = Gate(tmp_path)
    made.before()
    return made


def lane(gate: Gate) -> Path:
    folder = gate.candidate / LANE
    folder.mkdir(exist_ok=True)
    return folder


def sparse(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(HUGE)


def packed_zeros() -> bytes:
    return gzip.compress(bytes(HUGE), compresslevel=1, mtime=0)


# -- bytes that are no report -----------------------------------------------------------------

WHOLE = synthetic.encode(content(records()))
TOTALS = WHOLE.replace(b'"pass": 4', b'"pass": 5')
COMPLETE = b'"complete": true'
DIGITS = b"9" * 9999
BYTES = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t\n", "empty"),
    "truncated": (WHOLE[: len(WHOLE) // 2], "not JSON"),
    "without its last byte": (WHOLE.rstrip()[:-1], "not JSON"),
    "two documents": (WHOLE + WHOLE, "not JSON"),
    "not UTF-8": (WHOLE.replace(b"mychip", b"my\xffchip"), "not UTF-8"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + WHOLE, "not JSON"),
    "half a character": (WHOLE.replace(b"mychip", b"\\ud800"), "half a character"),
    "NUL": (bytes(100), "not JSON"),
    "another document": (b'{"passed": true}', "unknown field"),
    "a list": (b"[]", "Expected `object`"),
    "NaN": (WHOLE.replace(b"0.001", b"NaN"), "NaN is not a number"),
    "infinity": (WHOLE.replace(b"0.001", b"Infinity"), "Infinity is not a number"),
    "minus infinity": (WHOLE.replace(b"0.001", b"-Infinity"), "Infinity is not a number"),
    "an infinite number": (WHOLE.replace(b"0.001", b"1e999"), "too large"),
    "a number of many digits": (WHOLE.replace(b'"seed": 0', b'"seed": ' + DIGITS), "too large"),
    "a negative duration": (WHOLE.replace(b"0.001", b"-1"), ">= 0.0"),
    "deep lists": (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
    "deep objects": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper"),
    "a key twice": (WHOLE.replace(COMPLETE, COMPLETE + b", " + COMPLETE), "twice"),
    "wrong totals": (TOTALS, "says 5, the checks have 4"),
    "an unknown outcome": (WHOLE.replace(b'"outcome": "pass"', b'"outcome": "great"'), "great"),
    "an unknown key": (WHOLE.replace(b'"complete"', b'"extra": 1, "complete"'), "extra"),
    "packed, though it says otherwise": (gzip.compress(WHOLE), "not UTF-8"),
    "HTML": (b"<!DOCTYPE html><h1>502 Bad Gateway</h1>", "not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_report_are_no_result(gate: Gate, name: str) -> None:
    data, words = BYTES[name]
    (lane(gate) / "1.json").write_bytes(data)
    assert words in gate.refused()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(WHOLE)[:-20], "cut off"),
        (gzip.compress(WHOLE) + b"more", "something follows"),
        (gzip.compress(WHOLE) * 2, "something follows"),
        (WHOLE, "not gzip"),
        (gzip.compress(WHOLE)[:10] + bytes(50), "not gzip"),
        (packed_zeros(), "larger than 64 MiB when unpacked"),
    ],
    ids=["cut off", "followed", "two members", "plain", "broken", "bomb"],
)
def test_a_packed_report_is_unpacked_with_care(gate: Gate, data: bytes, words: str) -> None:
    (lane(gate) / "1.json.gz").write_bytes(data)
    assert words in gate.refused()


# -- reports that say what is not so ----------------------------------------------------------


def recounted(made: dict[str, Any]) -> None:
    made["totals"] = synthetic.totals(made["checks"])


def without_one(made: dict[str, Any]) -> None:
    """One failure taken out, and the totals corrected: the digest of the selection tells."""
    made["checks"].pop()
    recounted(made)


def exchanged(made: dict[str, Any]) -> None:
    made["checks"][0]["id"] += "x"


def doubled(made: dict[str, Any]) -> None:
    made["checks"].append(made["checks"][0])
    recounted(made)


def nothing(made: dict[str, Any]) -> None:
    made["checks"].clear()
    recounted(made)
    made["run"]["selection"] = synthetic.select([])


def excused(made: dict[str, Any]) -> None:
    for check in made["checks"]:
        check.update(outcome="unsupported", reason={"kind": "stated", "text": "no"})
    recounted(made)


EDITS: dict[str, tuple[Edit, str]] = {
    "a check taken out": (without_one, "3 records of 4 selected"),
    "another check": (exchanged, "not those of the selected checks"),
    "a check twice": (doubled, "has 2 records"),
    "no checks": (nothing, "nothing was executed"),
    "nothing executed": (excused, "nothing was executed"),
    "incomplete": (lambda r: r.update(complete=False), "did not end"),
    "could not load": (
        lambda r: (r.update(complete=False), r["run"].update(cannot_load="no \x1b[31mdriver")),
        "the backend did not come up: no \ufffd[31mdriver",
    ),
    "merged of nothing": (lambda r: r["run"].update(merged=[]), "not all shards"),
    "another backend": (lambda r: r["run"].update(backend="cpu"), "backend differs"),
    "another seed": (lambda r: r["run"].update(seed=1), "seed differs"),
    "other options": (lambda r: r["run"]["options"].update(fallback="warn"), "options differs"),
    "another selection": (
        lambda r: r["run"]["selection"].update(differs_by=["pytest (-k)"]),
        "selection differs",
    ),
    "another suite": (lambda r: r["run"].update(suite=7), "Expected `str`"),
    "a shard alone": (lambda r: r["run"]["options"].update(shard="1/2"), "4 records of 2"),
    "no such shard": (lambda r: r["run"]["options"].update(shard="3/2"), "no shard 3/2"),
    "no time": (lambda r: r["run"].update(started="now"), "not a point in time"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_report_that_contradicts_itself_or_the_run_before_is_no_result(
    gate: Gate, name: str
) -> None:
    made = json.loads(WHOLE)
    edit, words = EDITS[name]
    edit(made)
    synthetic.write(lane(gate) / "1.json", made)
    assert words in gate.refused()


# -- shards that are not those of one run -----------------------------------------------------


def changed(file: Path, **run: Any) -> None:
    made = json.loads(file.read_bytes())
    made["run"] |= run
    synthetic.write(file, made)


def lose(files: list[Path]) -> None:
    for file in files:
        file.unlink()


def of_other_checks(files: list[Path]) -> None:
    made = content(records(record("COPY-002")))
    synthetic.write(files[0], synthetic.shards(made, 3)[0])


SHARDS: dict[str, tuple[Callable[[list[Path]], Any], str]] = {
    "lost": (lambda f: lose(f[1:2]), "these are missing: 2"),
    "all but one lost": (lambda f: lose(f[1:]), "these are missing: 2, 3"),
    "twice": (lambda f: shutil.copy(f[0], f[0].with_name("again.json")), "there 2 times"),
    "twice, packed": (
        lambda f: f[0].with_name("a.json.gz").write_bytes(gzip.compress(f[0].read_bytes())),
        "there 2 times",
    ),
    "one in the place of another": (lambda f: shutil.copy(f[0], f[1]), "missing: 2"),
    "of another run": (of_other_checks, "differs from"),
    "of another torch": (
        lambda f: changed(f[0], torch={"version": "2.15.0", "git": None}),
        "in torch",
    ),
    "of another suite": (lambda f: changed(f[0], suite="9"), "in suite"),
    "of another seed": (lambda f: changed(f[0], seed=7), "in seed"),
    "of another backend": (lambda f: changed(f[0], backend="cpu"), "in backend"),
    "of another number": (
        lambda f: synthetic.write(f[0], synthetic.shards(json.loads(WHOLE), 2)[0]),
        "in 2 and 3 parts",
    ),
    "a whole run with them": (
        lambda f: f[0].with_name("whole.json").write_bytes(WHOLE),
        "is no shard",
    ),
    "one truncated": (lambda f: f[2].write_bytes(f[2].read_bytes()[:99]), "not JSON"),
    "one in JUnit": (
        lambda f: f[0].with_name("b.xml").write_text('<testsuite><testcase name="a"/></testsuite>'),
        "JUnit and reports",
    ),
}


@pytest.mark.parametrize("name", SHARDS)
def test_what_is_not_all_shards_of_one_run_is_no_result(gate: Gate, name: str) -> None:
    files = gate.after(shards=3)
    edit, words = SHARDS[name]
    edit(files)
    assert words in gate.refused()


def test_what_failed_in_the_shards_that_did_arrive_is_told_all_the_same(gate: Gate) -> None:
    bad = record("COPY-001", "fail")
    gate.after(bad, shards=3)[2].unlink()
    status, made = gate.run()
    assert status == Exit.UNUSABLE
    assert [(check.id, check.after) for check in made.checks] == [(bad["id"], "fail")]


def test_lanes_of_different_suites_do_not_judge_one_change(gate: Gate) -> None:
    gate.policy.write_text(gate.policy.read_text().replace("required: false", "required: true"))
    gate.before(lane="extra-sim")
    gate.after()
    gate.after(lane="extra-sim", source={"commit": None, "digest": "0" * 64})
    assert f"lanes {LANE}, extra-sim were run with different suites" in gate.refused()


# -- files that are no files ------------------------------------------------------------------


def linked(gate: Gate) -> None:
    gate.after()[0].rename(gate.root / "elsewhere.json")
    (lane(gate) / "1.json").symlink_to(gate.root / "elsewhere.json")


def linked_folder(gate: Gate) -> None:
    gate.after()
    lane(gate).rename(gate.root / "elsewhere")
    (gate.candidate / LANE).symlink_to(gate.root / "elsewhere")


def listening(gate: Gate) -> None:
    folder = os.open(lane(gate), os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{folder}/1.json")  # A socket's path may not be long.
    os.close(folder)


def too_deep(gate: Gate) -> None:
    gate.after()
    (lane(gate) / "a/b/c/d/e").mkdir(parents=True)


def many(gate: Gate) -> None:
    for number in range(Limits().reports_per_lane + 1):
        (lane(gate) / f"{number}.json").touch()


def many_lanes(gate: Gate) -> None:
    for number in range(Limits().lanes + 1):
        (gate.candidate / f"lane{number}").mkdir()


FILES: dict[str, tuple[Callable[[Gate], Any], str]] = {
    "nothing": (lambda gate: None, "no report arrived"),
    "an empty folder": (lane, "no report arrived"),
    "no report in the folder": (lambda g: (lane(g) / "log.txt").touch(), "no report arrived"),
    "no folder": (lambda gate: gate.candidate.rmdir(), "No such file"),
    "a link out of the folder": (linked, "a link, which is not followed"),
    "a folder that is a link": (linked_folder, "a link, which is not followed"),
    "a link to itself": (
        lambda gate: (lane(gate) / "1.json").symlink_to("1.json"),
        "a link, which is not followed",
    ),
    "a link to a secret": (
        lambda gate: (lane(gate) / "1.json").symlink_to("/proc/self/environ"),
        "a link, which is not followed",
    ),
    "a pipe": (lambda gate: os.mkfifo(lane(gate) / "1.json"), "not a file"),
    "a socket": (listening, "No such device or address"),
    "a folder called like a report": (
        lambda gate: os.mkdir(lane(gate) / "1.json"),
        "no report arrived",
    ),
    "200 MB of JSON": (lambda gate: sparse(lane(gate) / "1.json"), "larger than 64 MiB"),
    "200 MB of XML": (lambda gate: sparse(lane(gate) / "1.xml"), "larger than 64 MiB"),
    "200 MB, packed": (lambda gate: sparse(lane(gate) / "1.json.gz"), "larger than 64 MiB"),
    "deep folders": (too_deep, "directories deeper than"),
    "many reports": (many, "257 reports, where 256 are taken"),
    "a lane with an odd name": (
        lambda gate: (gate.candidate / "a\n::error::b").mkdir(),
        "'a\\\\x0a::error::b' is not a valid name of a configuration",
    ),
    "a lane whose name is no text": (
        lambda gate: os.mkdir(os.fsencode(gate.candidate) + b"/\xff\xfe"),
        "is not a valid name of a configuration",
    ),
    "a lane called like an option": (
        lambda gate: (gate.candidate / "-o.json").touch(),
        "is not a valid name of a configuration",
    ),
    "many lanes": (
        many_lanes,
        "65 lanes, where 64 are taken",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_or_too_much_of_one_is_no_result(gate: Gate, name: str) -> None:
    make, words = FILES[name]
    make(gate)
    assert words in gate.refused()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/proc/self/mem"])
def test_a_device_is_not_read(gate: Gate, path: str) -> None:
    assert gate.refused("--candidate", path)


def test_a_file_that_grows_while_it_is_read_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparse(tmp_path / "1.json")
    small = os.stat(__file__)
    monkeypatch.setattr(os, "fstat", lambda handle: small)
    with pytest.raises(strict.Malformed, match="larger than 1 MiB"):
        inputs.content(inputs.File(tmp_path / "1.json", "1.json"), Limits(report_mib=1))


# -- the run before, the findings, the policy -------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (WHOLE[:-9], "not JSON"),
        (TOTALS, "says 5"),
        (synthetic.encode(content(records(), backend="cpu")), "backend differs"),
        (
            synthetic.encode(json.loads(WHOLE) | {"complete": False}),
            "the run did not end",
        ),
    ],
    ids=["empty", "truncated", "totals", "of another backend", "incomplete"],
)
def test_a_run_before_that_is_no_result_makes_no_result(
    gate: Gate, data: bytes, words: str
) -> None:
    gate.after()
    (gate.baseline / f"{LANE}.json.gz").write_bytes(gzip.compress(data))
    assert words in gate.refused()


def test_a_run_before_that_was_named_must_be_there(gate: Gate) -> None:
    gate.after()
    shutil.rmtree(gate.baseline)
    assert "the runs to compare with: baseline: No such file" in gate.refused()


FINDINGS = {
    "missing": (None, "No such file"),
    "empty": (b"", "empty"),
    "truncated": (b'{"schema_version": 1', "not JSON"),
    "of another version": (b'{"schema_version": 99}', "findings of schema version 99"),
    "without findings": (b'{"schema_version": 1}', "required key 'before' is missing"),
    "NaN": (b'{"schema_version": NaN}', "NaN is not a number"),
    "deep": (b"[" * 100_000, "nested deeper"),
    "200 MB": (b" " * (65 << 20), "larger than 64 MiB"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_findings_that_were_promised_must_be_readable(gate: Gate, name: str) -> None:
    gate.after()
    data, words = FINDINGS[name]
    if data is not None:
        (gate.root / "findings.json").write_bytes(data)
    assert words in gate.refused("--findings", str(gate.root / "findings.json"))


BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nlanes: {x: {required: *b}}\n"
POLICIES = {
    "missing": (None, "other.yaml: No such file"),
    "empty": (b"", "expected `object`, got `null`"),
    "not YAML": (b"lanes: [", "line 1: not plain YAML"),
    "not UTF-8": (b"lanes: \xff", "not UTF-8 at byte 7"),
    "aliases": (BOMB, "aliases"),
    "no lanes": (b"lanes: {}", "lanes"),
    "a class that there is not": (b"lanes: {a: {required: true}}\nclasses: {bad: note}", "bad"),
    "a harmless regression": (
        b"lanes: {a: {required: true}}\nclasses: {new_failure: fine}",
        "fine",
    ),
    "an object of Python": (b"lanes: !!python/object/apply:os.getcwd []", "tags are not allowed"),
    "a star in the middle": (
        b"lanes: {a: {required: true}}\nretired: [{id: 'a*b', reason: c}]",
        "a*b",
    ),
    "deep": (b"[" * 1000, "nested deeper than 24"),
    "large": (b"#" * (2 << 20), "larger than 1 MiB"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_without_a_policy_nothing_is_judged_and_nothing_written(
    gate: Gate, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.after()
    data, words = POLICIES[name]
    file = gate.root / "other.yaml"
    if data is not None:
        file.write_bytes(data)
    arguments = ["--candidate", str(gate.candidate), "-o", str(gate.output)]
    assert main(["gate", *arguments, "--policy", str(file)]) == Exit.UNUSABLE
    assert words in capsys.readouterr().err
    assert not gate.output.exists()


def test_the_policy_of_this_repository_is_one_and_has_a_required_lane() -> None:
    rules = policy.load()
    assert any(map(rules.requires, rules.lanes))
    assert set(rules.classes) == {kind.value for kind in Class} - {Class.UNCHANGED.value}


def test_a_verdict_that_cannot_be_written_is_an_error_and_no_success(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.after()
    arguments = ["--candidate", str(gate.candidate), "--policy", str(gate.policy)]
    assert main(["gate", *arguments, "-o", str(gate.root / "no" / "verdict")]) == Exit.UNUSABLE
    assert "cannot write" in capsys.readouterr().err


def test_messages_of_any_size_make_a_verdict_that_can_be_read(gate: Gate) -> None:
    long = "\u202e" * 5000
    gate.after(*(record("COPY-001", "fail", n, message=long, repro=long) for n in range(400)))
    status, made = gate.run()
    assert status == Exit.FINDINGS
    assert made.left_out
    assert len(made.checks) + made.left_out == 400
