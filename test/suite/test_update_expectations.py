# SPDX-License-Identifier: BSD-3-Clause
"""--update-expectations: the file says afterwards what happened, and nothing else changed in it."""

from __future__ import annotations

import datetime
from pathlib import Path

import harness
import msgspec
import pytest
import synthetic

from torch_conformance.cli import main
from torch_conformance.expectations import Expectations, ExpectationsError
from torch_conformance.expectations.patterns import Index, compress
from torch_conformance.expectations.update import Changes, update
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import CheckResult

TODAY = datetime.date(2026, 6, 1)
IDS = [f"copy/{name}:{case}" for name in ("cast", "clone", "move") for case in "abcd"]
ENTRY = "  reason: lost under load\n  link: https://example.org/1\n"
XFAIL = ENTRY + "  status: fail\n  expires: 2027-01-31\n"


def record(outcome: str, message: str = "wrong") -> CheckResult:
    """A result as far as the update looks at it."""
    bad = synthetic.record("COPY-001", "fail", message=message)
    return msgspec.structs.replace(synthetic.typed(bad), outcome=Outcome(outcome))


def updated(file: Path, outcomes: dict[str, str]) -> Changes:
    """The changes for these outcomes; the other checks were not run."""
    records = {id: record(outcome) for id, outcome in outcomes.items()}
    return update(file, records, IDS, {"copy"}, TODAY)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "known.yaml"


def test_what_passes_leaves_the_file_and_comments_stay(known: Path) -> None:
    head = f"# ours\nxfail:\n# the first\n- id: copy/cast:a\n{XFAIL}"
    tail = f"\n# the third\n- id: copy/cast:c\n{XFAIL}\n# the end\n"
    known.write_text(f"{head}- id: copy/cast:b\n{XFAIL}{tail}")
    updated(known, {"copy/cast:a": "xfail", "copy/cast:b": "xpass", "copy/cast:c": "xfail"})
    assert known.read_text() == head + tail


def test_a_pattern_is_narrowed_to_what_still_fails(known: Path) -> None:
    known.write_text(f"xfail:\n- id: copy/cast*\n{XFAIL}")
    outcomes = dict.fromkeys(IDS[:4], "xfail") | {"copy/cast:a": "xpass"}
    updated(known, outcomes)
    assert [e.id for e in Expectations.load(known).entries] == IDS[1:4]


def test_an_entry_with_several_ids_stays_one_entry(known: Path) -> None:
    listed = "- id:\n  - copy/cast:a\n  # slow\n  - copy/clone:b\n  - copy/move:*\n"
    text = f"xfail:\n{listed}{XFAIL}# the next\n- id: copy/cast:b\n{XFAIL}"
    known.write_text(text)
    outcomes = {"copy/cast:b": "xfail", "copy/clone:b": "xfail"}
    updated(known, {**outcomes, "copy/cast:a": "xfail"})
    assert known.read_text() == text
    updated(known, {**outcomes, "copy/cast:a": "xpass", "copy/move:c": "xpass"})
    ids = ["copy/clone:b", "copy/move:a", "copy/move:b", "copy/move:d"]
    lines = "".join(f"  - {id}\n" for id in ids)
    assert known.read_text() == (
        f"xfail:\n- id:\n{lines}{XFAIL}# the next\n- id: copy/cast:b\n{XFAIL}"
    )


def test_an_id_that_ends_in_another_way_leaves_the_others(known: Path) -> None:
    known.write_text(f"xfail:\n- id: [copy/cast:a, copy/cast:b]\n{XFAIL}")
    updated(known, {"copy/cast:a": "crash", "copy/cast:b": "xfail"})
    crash = XFAIL.replace("fail\n", "crash\n")
    assert known.read_text() == f"xfail:\n- id: copy/cast:a\n{crash}- id: copy/cast:b\n{XFAIL}"


def test_failures_of_one_cause_enter_as_one_entry(known: Path) -> None:
    updated(known, {"copy/cast:a": "fail", "copy/clone:b": "fail"})
    assert known.read_text().startswith("xfail:\n- id:\n  - copy/cast:a\n  - copy/clone:b\n")


def test_checks_that_were_not_run_stay_listed(known: Path) -> None:
    known.write_text(f"unsupported:\n- id: copy/cast*\n{ENTRY}")
    updated(known, {"copy/cast:a": "xpass"})
    assert [e.id for e in Expectations.load(known).entries] == IDS[1:4]


def test_another_status_is_corrected_and_the_rest_of_the_entry_kept(known: Path) -> None:
    known.write_text(f"xfail:\n- id: copy/cast:a\n{XFAIL}")
    updated(known, {"copy/cast:a": "crash"})
    (entry,) = Expectations.load(known).entries
    assert (entry.status, entry.reason) == ("crash", "lost under load")
    assert entry.expires == datetime.date(2027, 1, 31)


def test_failures_enter_as_unreviewed_and_expire_soon(known: Path) -> None:
    changes = updated(known, dict.fromkeys(IDS[:4], "error") | {"copy/move:a": "timeout"})
    entries = Expectations.load(known).entries
    assert [(e.id, e.status) for e in entries] == [
        ("copy/cast:*", "error"),
        ("copy/move:a", "timeout"),
    ]
    assert all(e.reason.startswith("unreviewed: ") and e.link == "unreviewed" for e in entries)
    assert all(e.expires == datetime.date(2026, 7, 1) for e in entries)
    assert [line[0] for line in changes.lines()] == ["+", "+"]


def test_an_expired_entry_is_left_for_a_person(known: Path) -> None:
    text = f"xfail:\n- id: copy/cast:a\n{XFAIL}".replace("2027", "2026")
    known.write_text(text)
    changes = updated(known, {"copy/cast:a": "fail"})
    assert known.read_text() == text
    assert "expired on 2026-01-31" in changes.lines()[0]


def test_dead_entries_and_empty_lists_go(known: Path) -> None:
    known.write_text(f"flaky:\n- id: copy/gone\n{ENTRY}xfail:\n- id: copy/cast:a\n{XFAIL}")
    updated(known, {"copy/cast:a": "xfail"})
    assert known.read_text() == f"xfail:\n- id: copy/cast:a\n{XFAIL}"


def test_new_entries_follow_the_indentation_and_block_texts_of_the_file(known: Path) -> None:
    text = (
        "xfail:\n  - id: copy/cast:a\n    link: https://example.org/1\n    status: fail\n"
        "    expires: 2027-01-31\n    reason: |\n      lost\n      under load\n\n"
        f"flaky:\n- id: copy/move:a\n{ENTRY}"
    )
    known.write_text(text)
    updated(known, {"copy/cast:a": "xfail", "copy/cast:b": "fail"})
    entries = Expectations.load(known).entries
    assert [e.id for e in entries] == ["copy/cast:a", "copy/cast:b", "copy/move:a"]
    assert "  - id: copy/cast:b\n    reason:" in known.read_text()


def test_a_second_update_changes_nothing(known: Path) -> None:
    outcomes = dict.fromkeys(IDS[:5], "fail")
    updated(known, outcomes)
    text = known.read_text()
    assert updated(known, dict.fromkeys(outcomes, "xfail")).lines() == []
    assert known.read_text() == text


def test_a_list_in_one_line_is_refused_and_kept(known: Path) -> None:
    text = "flaky: [{id: copy/gone, reason: r, link: l}]\n"
    known.write_text(text)
    with pytest.raises(ExpectationsError, match="lines of its own"):
        updated(known, {"copy/cast:a": "pass"})
    assert known.read_text() == text


def test_an_unfinished_run_changes_nothing(known: Path) -> None:
    with pytest.raises(ExpectationsError, match="not finished"):
        updated(known, {"copy/cast:a": "fail", "copy/cast:b": "not_run"})
    assert not known.exists()


def test_patterns_name_the_wanted_ids_and_no_other() -> None:
    wanted = [id for id in IDS if not id.startswith("copy/move")] + ["copy/move:d"]
    found = compress(wanted, set(IDS) - set(wanted))
    assert found == ["copy/cast:*", "copy/clone:*", "copy/move:d"]
    index = Index(IDS)
    assert [id for pattern in found for id in index.named(pattern)] == wanted
    assert compress(IDS, []) == ["copy/*"]
    assert index.named("copy/cas") == []


def test_a_run_rewrites_the_file_and_the_next_one_is_green(tmp_path: Path) -> None:
    options = (
        "--backend=cpu",
        "--expectations=known.yaml",
        "--check=planted/wrong*",
        "--check=planted/noise",
    )
    first = harness.run(tmp_path, harness.PLANTED, *options, "--update-expectations")
    assert first.code == 1
    assert "changes of known.yaml" in first.text
    assert "+ xfail planted/wrong:first: unreviewed: fail" in first.text
    second = harness.run(tmp_path, harness.PLANTED, *options)
    assert (second.code, set(second.outcomes.values())) == (0, {"xfail", "pass"})


def test_what_is_flaky_enters_as_flaky_and_is_left_where_it_is_listed_otherwise(
    known: Path,
) -> None:
    known.write_text(f"xfail:\n- id: copy/cast:a\n{XFAIL}")
    changes = updated(known, {"copy/cast:a": "flaky", "copy/cast:b": "flaky"})
    assert [(e.kind, e.id) for e in Expectations.load(known).entries] == [
        ("xfail", "copy/cast:a"),
        ("flaky", "copy/cast:b"),
    ]
    assert changes.left == [f"copy/cast:a is flaky, and {known}:2 says xfail"]


def test_the_verb_does_the_same_from_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--check=planted/wrong*")
    known = tmp_path / "known.yaml"
    assert main(["update-expectations", str(run.report_file), str(known)]) == 0
    assert "+ xfail planted/wrong:first: unreviewed: fail" in capsys.readouterr().out
    assert [e.id for e in Expectations.load(known).entries] == [
        "planted/wrong:first",
        "planted/wrong:second",
    ]


def test_the_verb_refuses_a_report_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_text("{}")
    assert main(["update-expectations", str(report), str(tmp_path / "known.yaml")]) == 4
    assert "not a valid report" in capsys.readouterr().err
    assert not (tmp_path / "known.yaml").exists()


def test_an_update_without_a_file_says_how_to_name_one(tmp_path: Path) -> None:
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", "--update-expectations")
    assert run.code == 4
    assert "name one with --expectations FILE" in run.text
