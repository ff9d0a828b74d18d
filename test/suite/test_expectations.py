# SPDX-License-Identifier: BSD-3-Clause
"""Expectations can only shrink: what matches nothing, passes or has expired is red."""

from __future__ import annotations

import datetime
from pathlib import Path

import harness
import pytest

from torch_conformance.expectations import Expectations, ExpectationsError
from torch_conformance.spec.outcome import Outcome

TODAY = datetime.date(2026, 6, 1)
XFAIL_CRASH = "xfail:\n- {id: a/b, reason: r, %s, status: crash, expires: 2027-01-01}"
LINK = "link: 'https://example.org/1'"


def load(tmp_path: Path, text: str) -> Expectations:
    """Expectations from text."""
    file = tmp_path / "known.yaml"
    file.write_text(text)
    return Expectations.load(file)


@pytest.mark.parametrize(
    ("entry", "outcome", "becomes"),
    [
        ("unsupported:\n- {id: a/b, reason: r, %s}", "error", "unsupported"),
        ("unsupported:\n- {id: a/b, reason: r, %s}", "crash", "unsupported"),
        ("unsupported:\n- {id: a/b, reason: r, %s}", "pass", "xpass"),
        ("unsupported:\n- {id: a/b, reason: r, %s}", "not_run", "not_run"),
        ("unsupported:\n- {id: a/b, reason: r, %s}", "device_lost", "device_lost"),
        (
            "xfail:\n- {id: a/b, reason: r, %s, status: crash, expires: 2027-01-01}",
            "crash",
            "xfail",
        ),
        (XFAIL_CRASH, "fail", "fail"),
        ("xfail:\n- {id: a/b, reason: r, %s, status: fail, expires: 2026-05-31}", "fail", "fail"),
        ("xfail:\n- {id: a/b, reason: r, %s, status: fail, expires: 2026-06-01}", "fail", "xfail"),
        ("xfail:\n- {id: a/b, reason: r, %s, status: fail, expires: 2027-01-01}", "pass", "xpass"),
        ("flaky:\n- {id: a/*, reason: r, %s}", "pass", "flaky"),
        ("flaky:\n- {id: a/*, reason: r, %s}", "timeout", "flaky"),
        ("flaky:\n- {id: a/*, reason: r, %s, expires: 2026-05-31}", "timeout", "timeout"),
    ],
)
def test_what_an_outcome_becomes(tmp_path: Path, entry: str, outcome: str, becomes: str) -> None:
    expectation = load(tmp_path, entry.replace("%s", LINK)).find("a/b")
    assert expectation is not None
    judged, message, excused = expectation.judge(Outcome(outcome), "why", TODAY)
    assert judged == becomes
    if judged is Outcome.XPASS:
        assert message.endswith("known.yaml:2")
    assert (excused is not None) == (judged in ("unsupported", "xfail", "flaky"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("xfail:\n- {id: a/b, reason: r, link: l, status: fail}\n", "known.yaml:2: key 'expires'"),
        ("unsupported:\n- {id: a/b, link: l}\n", "known.yaml:2: key 'reason'"),
        (
            "flaky:\n- {id: a/b, reason: r, link: l, until: x}\n",
            "known.yaml:2: unknown key 'until'",
        ),
        ("flaky:\n- {id: 'a*b', reason: r, link: l}\n", "known.yaml:2: key 'id' is 'a*b'"),
        ("\nskip:\n- {id: a/b}\n", "known.yaml:2: 'skip'"),
        (
            "xfail:\n- {id: a/b, reason: r, link: l, status: bad, expires: 2027-01-01}\n",
            "known.yaml:2: key 'status'",
        ),
        (
            "xfail:\n- {id: a/b, reason: r, link: l, status: fail, expires: soon}\n",
            "known.yaml:2: key 'expires'",
        ),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ExpectationsError) as error:
        load(tmp_path, text)
    assert words in str(error.value)


def test_an_entry_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    expectations = load(tmp_path, f"flaky:\n- {{id: stream/gone, reason: r, {LINK}}}\n")
    with pytest.raises(ExpectationsError, match=r"known\.yaml:2: flaky entry 'stream/gone'"):
        expectations.verify(["stream/order"], {"stream"})
    # Not collected in this run, hence not judged.
    expectations.verify(["copy/order"], {"copy"})


def test_a_run_obeys_its_expectations(tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text(
        "xfail:\n"
        f"- {{id: 'planted/wrong*', reason: r, {LINK}, status: fail, expires: 2999-01-01}}\n"
        f"- {{id: planted/noise, reason: r, {LINK}, status: fail, expires: 2999-01-01}}\n"
        "unsupported:\n"
        f"- {{id: planted/segfault, reason: reads too far, {LINK}}}\n"
    )
    option = harness.descriptor(tmp_path, "device_type: cpu\nexpectations: known.yaml\n")
    run = harness.run(
        tmp_path,
        harness.PLANTED,
        option,
        "--check=planted/wrong*",
        "--check=planted/noise",
        "--check=planted/segfault",
    )
    assert run.outcomes == {
        "planted/wrong:first": "xfail",
        "planted/wrong:second": "xfail",
        "planted/noise": "xpass",
        "planted/segfault": "unsupported",
    }
    assert f"{tmp_path / 'known.yaml'}:3" in run.check("planted/noise")["message"]
    assert run.code == 1


def test_a_run_refuses_an_entry_that_matches_nothing(tmp_path: Path) -> None:
    known = tmp_path / "known.yaml"
    known.write_text(f"flaky:\n- {{id: planted/gone, reason: r, {LINK}}}\n")
    run = harness.run(tmp_path, harness.PLANTED, "--backend=cpu", f"--expectations={known}")
    assert run.code == 4
    assert f"{known}:2: flaky entry 'planted/gone' matches no check" in run.text
