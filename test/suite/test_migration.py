# SPDX-License-Identifier: BSD-3-Clause
"""Reports of version 1 are read as those of today, with their reasons as data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torch_conformance import schemas
from torch_conformance.cli import main
from torch_conformance.results import reader, version_1
from torch_conformance.results.junit import junit
from torch_conformance.results.writing import dumps
from torch_conformance.spec import reason
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.outcome import Outcome

#: Of a real run of `moody` with an expectations file, before there was a version 2.
OLD = Path(__file__).parent / "version_1.json"


def old() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(OLD.read_text())
    return content


def record(**fields: Any) -> dict[str, Any]:
    """A record of version 1."""
    about = {"requirements": ["COPY-001"], "surface": "copy", "tier": "core", "level": "must"}
    return {"id": "copy/a", **about, "duration_s": 0.0, "evidence": None, **fields}


def migrated(**fields: Any) -> Any:
    """The result that a record of version 1 is."""
    values = msgspec.convert(record(**fields), version_1.CheckResult1)
    return version_1._check(values)


def test_a_report_of_version_1_is_read_with_all_its_results() -> None:
    document = reader.load(OLD)
    results = {result.id: result for result in document.checks}
    counts = Counter(result.outcome for result in document.checks)
    assert {o.value: n for o, n in counts.items()} == {
        k: v for k, v in old()["totals"].items() if v
    }
    assert document.state == "red"
    link = "https://example.org/{}"
    assert results["moody/always_fails"].excused == reason.Excused(
        list="xfail", entry="moody/always_fails", text="the reason", link=link.format(1)
    )
    assert results["moody/dies_first"].excused == reason.Excused(
        list="unsupported", entry="moody/dies_first", text="not planned", link=link.format(3)
    )
    assert results["moody/passes:n1"].excused == reason.Excused(
        list="flaky",
        entry="moody/passes:n1",
        text="it races",
        link=link.format(2),
        observed=Outcome.PASS,
    )
    flaky = results["moody/passes_later"]
    assert flaky.unexpected and flaky.reason is None
    assert [str(attempt) for attempt in flaky.attempts] == ["fail not yet", "pass"]


def test_what_people_read_of_an_old_report_stays_as_it_was() -> None:
    texts = {r["id"]: r.get("message") or r.get("reason") or "" for r in old()["checks"]}
    assert {result.id: result.text for result in reader.load(OLD).checks} == texts


def test_an_old_report_written_anew_is_one_of_today() -> None:
    document = reader.load(OLD)
    again = reader.parse(dumps(document.report), "again.json")
    assert again.report == document.report
    assert junit("cpu", "", again.checks) == junit("cpu", "", document.checks)


def test_an_old_report_is_compared_with_one_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.json"
    new.write_bytes(dumps(reader.load(OLD).report))
    assert main(["compare", str(OLD), str(new)]) == 0
    assert "0 regressions, 0 improvements, 0 gone, 0 new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcome", "text", "expected"),
    [
        (
            "unsupported",
            "needs capability 'events', 'streams'",
            reason.MissingCapability(names=("events", "streams")),
        ),
        (
            "unsupported",
            "dtype float64 is declared unsupported",
            reason.DeclaredUnsupported(dtype="float64"),
        ),
        (
            "unsupported",
            "COPY-001 applies since torch 2.15",
            reason.NotApplicable(requirement="COPY-001", since="2.15"),
        ),
        (
            "unsupported",
            "COPY-001 applies until torch 2.12",
            reason.NotApplicable(requirement="COPY-001", until="2.12"),
        ),
        (
            "unsupported",
            "the CPU gives nothing to compare with: KeyError",
            reason.NoReference(text="KeyError"),
        ),
        ("unsupported", "needs /proc", reason.Stated(text="needs /proc")),
        ("not_run", "environment: busy", reason.Environment(text="busy")),
        ("not_run", "device lost: gone", reason.DeviceGone(text="gone")),
        ("not_run", "cannot load: no", reason.CannotLoadBackend(text="no")),
        (
            "blocked_upstream",
            "https://example.org/1; RuntimeError: a; b",
            reason.Blocked(issue="https://example.org/1", message="RuntimeError: a; b"),
        ),
    ],
)
def test_an_old_reason_becomes_data_and_says_the_same(
    outcome: str, text: str, expected: reason.Reason
) -> None:
    result = migrated(outcome=outcome, reason=text)
    assert result.reason == expected
    assert result.text == text


def test_an_old_failure_of_the_smoke_tier_still_says_which_side_is_wrong() -> None:
    result = migrated(outcome="fail", message="descriptor wrong: x", repro="r")
    assert result.blames == "descriptor"


@pytest.mark.parametrize(
    ("message", "mismatch"),
    [
        ("output[0]: 1 of 9 elements differ; first at (1,): 3.0", Mismatch.SOME_VALUES),
        ("9 of 9 elements differ; first at (1,): nan\nin sample 0", Mismatch.ALL_VALUES),
        ("shape is [1], expected [2]", None),
    ],
)
def test_an_old_failure_by_wrong_values_says_so_as_data(
    message: str, mismatch: Mismatch | None
) -> None:
    assert migrated(outcome="fail", message=message, repro="r").mismatch is mismatch


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"outcome": "passed"}, "outcome: Invalid enum value 'passed'"),
        ({"reason": 3}, "reason: Expected `str | null`, got `int`"),
        ({"outcome": "fail"}, "fail needs 'message' and 'repro'"),
        ({"verdict": 1}, "unknown field `verdict`"),
    ],
)
def test_an_old_report_that_is_wrong_is_refused(edit: dict[str, Any], words: str) -> None:
    content = old()
    content["checks"][0].update(edit)
    with pytest.raises(reader.ReportError) as error:
        reader.parse(json.dumps(content).encode(), "a.json")
    assert words in str(error.value)


@pytest.mark.parametrize("file", schemas.texts(), ids=lambda file: file.name)
def test_the_committed_schema_is_that_of_the_classes(file: Path) -> None:
    assert file.read_text() == schemas.texts()[file], "python -m torch_conformance.schemas"
