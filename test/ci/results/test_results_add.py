# SPDX-License-Identifier: BSD-3-Clause
"""`results add`: what is taken, what is refused and why, and that again changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import dashboard_sample
import pytest
import synthetic
from dashboard_sample import report
from storing import NOW, added, fates, file, relations, reports

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.results import accept, add, layout, rows
from torch_backend_ci.results.accept import line
from torch_backend_ci.results.schema import RESULTS, RUNS
from torch_backend_ci.results.store import Store
from torch_conformance.results import levels


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def one(store: Path, query: str) -> Any:
    """The only value that a query gives."""
    with Store(store).reading() as database:
        ((value,),) = database.execute(query).fetchall()
    return value


def refusal(store: Path, *files: Path, now: datetime = NOW) -> str:
    """Why the only file is refused; nothing of it is stored."""
    (told,) = added(store, files, now)
    assert told.fate is add.Fate.REFUSED
    assert not Store(store).known()
    return told.detail


# -- what is stored -----------------------------------------------------------------------------


def test_a_run_is_stored_with_all_that_its_report_says(tmp_path: Path, store: Path) -> None:
    made = report(
        "puone",
        outcomes={dashboard_sample.BROKEN: {"outcome": "fail", "message": "wrong"}},
        driver={"name": "sim", "path": "/home/me/libsim.so"},
        devices=["sim 0"],
    )
    name = next(iter(made["run"]["capabilities"]))
    seen = "RuntimeError: no such stream"
    broken = {"value": False, "source": "probed", "broken": seen}
    made["run"]["capabilities"][name] = broken
    path = file(tmp_path / "report.json", made)
    assert fates(added(store, [path])) == ["added"]
    with Store(store).reading() as database:
        cursor = database.execute("SELECT * FROM runs")
        names = [column[0] for column in cursor.description or ()]
        run = dict(zip(names, cursor.fetchall()[0], strict=True))
    assert list(run) == list(RUNS)
    assert run["id"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (run["backend"], run["name"], run["line"]) == ("puone-sim", "puone", "2.13")
    assert run["started"] == datetime(2026, 11, 20, 2)
    assert json.loads(run["driver"]) == {"name": "sim", "path": "libsim.so"}
    assert json.loads(run["options"]) == made["run"]["options"]
    assert run["totals"] == made["totals"] and run["bad"] == 1
    assert run["stored"] == len(made["checks"]) == sum(run["evidence"].values())
    assert sum(n for of in run["surfaces"].values() for n in of.values()) == run["stored"]
    assert run["broken"] == {name: broken.pop("broken")}
    assert run["capabilities"] == made["run"]["capabilities"]


def test_the_levels_are_those_that_the_suite_tells(tmp_path: Path, store: Path) -> None:
    made = report(outcomes={dashboard_sample.BROKEN: "fail", dashboard_sample.BLOCKED: "fail"})
    added(store, [file(tmp_path / "report.json", made)])
    verdict = levels.assess(synthetic.document(made).report)
    with Store(store).reading() as database:
        query = "SELECT level, title, why_not, steps, standings FROM runs"
        level, title, why_not, steps, standings = database.execute(query).fetchall()[0]
    assert (level, title, why_not) == (verdict.name, verdict.title, None)
    assert [step["name"] for step in steps] == [step.level.name for step in verdict.steps]
    blockers = [[vars(blocker) for blocker in step.blockers] for step in verdict.steps]
    assert [step["blockers"] for step in steps] == blockers and blockers[0]
    assert standings.keys() == made["requirements"].keys()
    assert standings["MEM-003"] == "broken"


def test_a_result_is_stored_with_all_that_its_record_says(tmp_path: Path, store: Path) -> None:
    waived = {
        "outcome": "xfail",
        "reason": "known",
        "excused": {"list": "xfail", "entry": "memory/*"},
    }
    bad = {"outcome": "fail", "message": "wrong", "repro": "import torch"}
    slow = {"evidence": "fallback", "fallbacks": ["aten::add"], "samples": 3, "duration_s": 1.25}
    ids = [dashboard_sample.BROKEN, dashboard_sample.SLOWED, dashboard_sample.CRASHED]
    made = report(outcomes=dict(zip(ids, (waived, slow, bad), strict=True)))
    added(store, [file(tmp_path / "report.json", made)])
    results = {result.id: result for result in synthetic.document(made).checks}
    with Store(store).reading() as database:
        found = database.execute("SELECT * FROM results ORDER BY check_id").fetchall()
    assert [row[1] for row in found] == sorted(results)
    for row in (dict(zip(RESULTS, values, strict=True)) for values in found):
        result = results[row["check_id"]]
        for name in ("surface", "tier", "level", "outcome"):
            assert row[name] == getattr(result, name)
        assert row["requirements"] == list(result.requirements)
        assert row["duration_s"] == pytest.approx(result.duration_s, rel=0.005)
        for name in ("evidence", "message", "repro", "samples"):
            assert row[name] == getattr(result, name)
        assert row["reason"] == (str(result.reason) if result.reason else None)
        assert row["fallbacks"] == list(result.fallbacks)
        entry = (result.excused.list, result.excused.entry) if result.excused else (None, None)
        assert (row["waiver_list"], row["waiver_id"]) == entry


def test_what_is_not_aligned_is_stored_with_the_reason(tmp_path: Path, store: Path) -> None:
    why = "import failed"
    made = dashboard_sample.unloadable("cpu", "2.13.0", "2026-11-20T02:00:00+00:00", why)
    added(store, [file(tmp_path / "report.json", made)])
    with Store(store).reading() as database:
        query = "SELECT why_not, level, steps, cannot_load, stored, selected FROM runs"
        found = database.execute(query).fetchall()
        assert database.execute("SELECT * FROM results").fetchall() == []
    assert found == [("the run is incomplete", None, [], why, 0, None)]


def test_the_night_is_the_one_in_utc(tmp_path: Path, store: Path) -> None:
    made = report(started="2026-11-20T23:30:00-03:00")
    added(store, [file(tmp_path / "report.json", made)])
    assert [segment.folder.name for segment in layout.segments(store)] == ["2026-11-21"]
    assert one(store, "SELECT started FROM runs") == datetime(2026, 11, 21, 2, 30)


def test_long_texts_are_cut_with_a_word_on_how_much(tmp_path: Path, store: Path) -> None:
    text = "x" * 10_000_000
    outcomes: dict[str, Any] = {dashboard_sample.BROKEN: {"outcome": "fail", "message": text}}
    outcomes[dashboard_sample.SLOWED] = {"fallbacks": [text] * 4 + ["aten::add"] * 200}
    added(store, [file(tmp_path / "report.json", report(outcomes=outcomes))])
    message = one(store, "SELECT message FROM results WHERE message IS NOT NULL")
    assert message.startswith("x" * rows.MAX_TEXT + "\n")
    assert message.endswith("[9,996,000 more characters are in the report only.]")
    fallbacks = one(store, "SELECT fallbacks FROM results WHERE len(fallbacks) > 0")
    assert len(fallbacks[0]) == rows.MAX_OPERATOR
    assert fallbacks[rows.MAX_FALLBACKS :] == ["... and 104 more"]
    assert sum(path.stat().st_size for path in store.rglob("*.parquet")) < 50_000


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\u202egnp.exe",
        "\x1b[31m",
        "<script>alert(1)</script>",
        "'; DROP TABLE runs; --",
        "\U0001f600\u0301\u200f",
        '"\\\\u0000',
        "line\r\nline\n",
        "{{ 7*7 }}",
    ],
)
def test_texts_are_stored_as_they_are(tmp_path: Path, store: Path, text: str) -> None:
    made = report(
        outcomes={dashboard_sample.BROKEN: {"outcome": "fail", "message": text}}, platform=text
    )
    assert fates(added(store, [file(tmp_path / "report.json", made)])) == ["added"]
    assert one(store, "SELECT message FROM results WHERE message IS NOT NULL") == text
    assert one(store, "SELECT platform FROM runs") == text


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.13.0", "2.13"),
        ("2.13.0+cpu", "2.13"),
        ("2.14.0rc2", "2.14"),
        ("2.9.1.post1", "2.9"),
        ("2.15.0.dev20261121+cu130", "nightly"),
        ("2.14.0a0+gitcf30153", "nightly"),
        ("2.14.0+gitcf30153", "nightly"),
    ],
)
def test_a_version_is_of_a_line(version: str, expected: str) -> None:
    assert line(version) == expected


# -- again ---------------------------------------------------------------------------------------


def changes(store: Path) -> dict[Path, tuple[int, int, int, int]]:
    """What differs once anything in a store was changed; reading it only moves the access time."""
    stats = {path: path.stat() for path in store.rglob("*")}
    return {p: (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for p, s in stats.items()}


def test_a_report_that_is_added_twice_is_stored_once(tmp_path: Path, store: Path) -> None:
    made = report()
    plain = file(tmp_path / "report.json", made)
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert fates(added(store, [plain, packed, plain])) == [
        "already there",
        "already there",
        "added",
    ]
    before = changes(store)
    assert fates(added(store, [packed])) == ["already there"]
    assert changes(store) == before
    assert one(store, "SELECT count(*) FROM runs") == 1


def test_reports_make_the_same_files_in_whatever_order(tmp_path: Path) -> None:
    files = reports(tmp_path / "reports", 5)
    added(tmp_path / "a", files)
    added(tmp_path / "b", reversed(files))
    contents = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.parquet")}
        for root in (tmp_path / "a", tmp_path / "b")
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) == 10


def test_the_union_of_two_stores_is_a_store(tmp_path: Path) -> None:
    files = reports(tmp_path / "reports", 5)
    added(tmp_path / "all", files)
    added(tmp_path / "union", files[:3])
    added(tmp_path / "other", files[2:])
    for path in (tmp_path / "other").rglob("*.parquet"):
        to = tmp_path / "union" / path.relative_to(tmp_path / "other")
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(path.read_bytes())
    assert relations(tmp_path / "union") == relations(tmp_path / "all")


def test_many_results_are_written_in_several_goes(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add, "BATCH", 50)
    files = reports(tmp_path / "reports", 5)
    assert fates(added(store, files)) == ["added"] * 5
    added(tmp_path / "other", files)
    assert relations(store) == relations(tmp_path / "other")


# -- refused -------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "script for a name": ({"backend": "<script>alert(1)</script>"}, "its backend is called '<scri"),
    "a path for a name": ({"backend": "../../etc"}, "its backend is called '../../etc'"),
    "no name": ({"backend": ""}, "its backend is called ''"),
    "a name of dots": ({"backend": ".."}, "its backend is called '..'"),
    "a name that ends with a dot": ({"backend": "chip."}, "begin and end with a letter or digit"),
    "a name in capitals": ({"backend": "Chip"}, "small letters"),
    "a long name": ({"backend": "x" * 41}, "up to 40"),
    "a name on two lines": ({"backend": "chip\n"}, "its backend is called 'chip\\n'"),
    "a name that turns round": ({"backend": "a\u202eb"}, "its backend is called 'a\\u202eb'"),
    "script for a driver": ({"driver": {"name": "<b>"}}, "its driver is called '<b>'"),
    "no version": ({"torch": "newest"}, "its torch has version 'newe"),
    "script in a version": (
        {"torch": "2.13.0+<script>"},
        "is not valid for a Python package",
    ),
    "a path for a version": ({"torch": "../x"}, "'../x'"),
    "the future": ({"started": "2026-11-22T12:11:00+00:00"}, "which is in the future"),
    "the far future": ({"started": "9999-12-31T23:59:59-14:00"}, "which is in the future"),
    "no clock": ({"started": "1970-01-01T00:00:00+00:00"}, "the clock of the machine was not set"),
    "the beginning": ({"started": "0001-01-01T00:00:00+14:00"}, "the clock of the machine"),
    "no time zone": ({"started": "2026-11-20T02:00:00"}, "names no time zone"),
    "a huge seed": ({"seed": 2**63}, "its seed is larger than 64 bits"),
    "a huge duration": ({"duration_s": 1e300}, "a duration of 1e+300 seconds is not credible"),
    "a huge head": ({"platform": "x" * 300_000}, "of its run; at most 256 KiB are stored"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_that_cannot_be_kept_is_refused_with_the_reason(
    tmp_path: Path, store: Path, case: str
) -> None:
    said, words = REFUSED[case]
    assert words in refusal(store, file(tmp_path / "report.json", report(**said)))


def test_clocks_may_differ_by_minutes(tmp_path: Path, store: Path) -> None:
    made = report(started="2026-11-22T12:09:00+00:00")
    assert fates(added(store, [file(tmp_path / "report.json", made)])) == ["added"]


def spoilt(**changes: Any) -> bytes:
    return synthetic.encode(report() | changes)


WHOLE = synthetic.encode(report())
BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "cut off": (WHOLE[:-100], "not JSON"),
    "wrong totals": (spoilt(totals={"pass": 7}), "totals.pass: says 7, the checks have 24"),
    "duplicate ids": (
        spoilt(checks=report()["checks"] + report()["checks"][:1]),
        "has 2 records",
    ),
    "another schema": (spoilt(schema="urn:torch-conformance:report:3"), "schema"),
    "NaN": (WHOLE.replace(b'"duration_s": 0.001', b'"duration_s": NaN'), "NaN is not a number"),
    "a huge number": (WHOLE.replace(b'"duration_s": 0.001', b'"duration_s": 1e999'), "too large"),
    "deep": (b'{"a":' * 100_000, "nested deeper"),
    "deep enough to parse": (b'{"a":' * 50 + b"1" + b"}" * 50, "nested deeper"),
    "a list": (b"[]", "Expected `object`"),
    "half a character": (WHOLE.replace(b"Linux", b"\\ud800"), "half a character"),
    "a key twice": (WHOLE.replace(b'"seed": 0', b'"seed": 0, "seed": 1'), "stands twice"),
    "no findings": (b'{"schema_version": 7}', "findings of schema version 7"),
    "broken findings": (b'{"schema_version": 1}', "the required key 'before' is missing"),
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_that_are_no_report_are_refused_with_the_reason(
    tmp_path: Path, store: Path, case: str
) -> None:
    data, words = BYTES[case]
    (tmp_path / "report.json").write_bytes(data)
    assert words in refusal(store, tmp_path / "report.json")


PACKED: dict[str, tuple[bytes, str]] = {
    "a bomb": (gzip.compress(bytes(200 << 20), 1), "larger than 64 MiB when unpacked"),
    "no gzip": (WHOLE, "not gzip"),
    "cut off": (gzip.compress(WHOLE)[:-9], "cut off"),
    "two": (gzip.compress(WHOLE) * 2, "something follows"),
}


@pytest.mark.parametrize("case", PACKED)
def test_what_is_packed_is_unpacked_with_care(tmp_path: Path, store: Path, case: str) -> None:
    data, words = PACKED[case]
    (tmp_path / "report.json.gz").write_bytes(data)
    assert words in refusal(store, tmp_path / "report.json.gz")


LIMITS = {
    "MAX_CHECKS": "has 24 checks; at most 1 are stored",
    "MAX_REQUIREMENTS": "has 12 requirements; at most 1 are stored",
    "MAX_SURFACES": "has 10 surfaces; at most 1 are stored",
    "MAX_NAMED": "has 1 requirements of one check; at most 0 are stored",
    "MAX_ID": "is an id of",
}


@pytest.mark.parametrize("name", LIMITS)
def test_more_than_a_dashboard_can_bear_is_refused(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(accept, name, 0 if name == "MAX_NAMED" else 1)
    assert LIMITS[name] in refusal(store, file(tmp_path / "report.json", report()))


def test_numbers_of_samples_and_durations_of_checks_have_limits(
    tmp_path: Path, store: Path
) -> None:
    for said, words in (({"samples": 2**63}, "samples"), ({"duration_s": 1e9}, "not credible")):
        made = report(outcomes={dashboard_sample.BROKEN: said})
        assert words in refusal(store, file(tmp_path / "report.json", made))


def test_a_shard_is_refused_with_what_to_do(tmp_path: Path, store: Path) -> None:
    part = synthetic.shards(report(), 2)[0]
    assert "is shard 1/2: `python -m torch_conformance merge` the shards first" in refusal(
        store, file(tmp_path / "report.json", part)
    )


def test_a_run_that_would_go_by_the_name_of_another_is_refused(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "NAME", 0)
    told = added(store, reports(tmp_path / "reports", 2))
    assert fates(told) == ["refused", "added"]
    assert "is that of another run" in told[0].detail


def test_junit_and_other_files_are_refused_only_if_they_are_named(
    tmp_path: Path, store: Path
) -> None:
    folder = tmp_path / "folder"
    reports(folder / "deep" / "deeper", 1)
    for name in ("report.xml", "readme.md"):
        (folder / name).write_text("<testsuites/>")
    assert fates(added(store, [folder])) == ["added"]
    told = added(store, [folder / "report.xml", folder / "readme.md", folder / "missing.json"])
    assert fates(told) == ["refused"] * 3
    assert [one.detail for one in told] == [
        "JUnit does not say enough: give the report, which is JSON",
        "reports end with .json or .json.gz",
        "No such file or directory",
    ]


def test_links_pipes_and_folders_without_end_are_refused(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "folder"
    (target,) = reports(tmp_path / "reports", 1)
    folder.mkdir()
    (folder / "link.json.gz").symlink_to(target)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.json")
    (folder / "/".join("d" * 12)).mkdir(parents=True)
    told = {Path(one.file).name: one.detail for one in added(store, [folder])}
    assert told["link.json.gz"] == told["loop"] == "a link, which is not followed"
    assert told["pipe.json"] == "not a file"
    assert told["d"] == "directories deeper than 8"


def test_a_file_that_is_refused_refuses_no_other(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = reports(tmp_path / "reports", 2)
    bad = tmp_path / "bad\n::error::.json"
    bad.write_text("{")
    words = ["results", "add", f"--store={store}", str(bad), *map(str, good)]
    assert main(words) == Exit.FINDINGS
    said = capsys.readouterr().err
    assert "2 added, 1 refused" in said and "not JSON" in said and "\n::error" not in said
    assert len(Store(store).known()) == 2
    assert main(words) == Exit.FINDINGS
    assert "2 already there, 1 refused" in capsys.readouterr().err
    assert main([*words[:3], *map(str, good)]) == Exit.OK


def test_nothing_to_add_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    words = ["results", "add", f"--store={tmp_path / 'store'}", str(tmp_path / "empty")]
    assert main(words) == Exit.UNUSABLE
    assert "there are no reports in what was given" in capsys.readouterr().err


def test_a_folder_with_something_else_does_not_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CiError, match=r"it has no store\.json\. Results are"):
        added(tmp_path, reports(tmp_path / "reports", 1))
    assert not (tmp_path / "store.json").exists()
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    assert fates(added(tmp_path / "clone", [tmp_path / "reports"])) == ["added"]


# -- findings ------------------------------------------------------------------------------------


def findings(before: str = "2.12.0", after: str = "2.13.0") -> bytes:
    document = {
        "schema_version": 1,
        "before": {"version": before, "git_version": None},
        "after": {"version": after, "git_version": None},
        "not_compared": [],
        "hidden": 0,
        "verdict": "",
        "notes": ["\u202e<script>"],
        "findings": [],
    }
    return json.dumps(document).encode()


def test_findings_are_stored_once_by_what_is_in_them(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "findings.json"
    path.write_bytes(findings())
    (told,) = added(store, [path])
    assert (told.fate.value, told.detail) == (
        "added",
        "0 findings between torch 2.12.0 and 2.13.0",
    )
    assert fates(added(store, [path])) == ["already there"]
    digest = hashlib.sha256(findings()).hexdigest()
    assert dict(Store(store).findings()) == {digest: json.loads(findings())}


def test_findings_of_no_version_are_refused(tmp_path: Path, store: Path) -> None:
    (tmp_path / "findings.json").write_bytes(findings(after="../../x"))
    assert "its torch has version '../../x', which" in refusal(store, tmp_path / "findings.json")
    assert dict(Store(store).findings()) == {}
