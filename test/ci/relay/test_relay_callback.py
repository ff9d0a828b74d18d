# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks to the relay: what they say, how its refusals are met, and that no secret gets out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import synthetic
from relay_fake import CALLBACK, MAX_HUD, SHA, TOKENS, ZOMBIE_TIMEOUT, RelayFake, serving
from relay_fake import relay as relay  # the fixture
from synthetic import record, replaced

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError
from torch_backend_ci.relay import cli, client, http

JOB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKFLOW": "relay",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "octo-org/puone",
    "GITHUB_RUN_ID": "12345",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "suite",
    "GITHUB_EVENT_NAME": "repository_dispatch",
}
Run = Callable[..., int]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BACKOFF", 0)
    monkeypatch.setattr(http, "_WINDOW", 0)
    monkeypatch.setattr(http, "_LONGEST_WAIT", 0)


@pytest.fixture
def job(relay: RelayFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `relay callback` in a job that the relay dispatched for a PR."""
    return in_job(relay, tmp_path, monkeypatch)


def in_job(
    relay: RelayFake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    event: dict[str, Any] | None = None,
) -> Run:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event or relay.dispatch_pull_request()))
    for name, value in (JOB | relay.environment() | {"GITHUB_EVENT_PATH": str(file)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CHECK_RUN_ID", raising=False)
    return lambda *options: main(["relay", "callback", *options])


def ago(**how_long: float) -> datetime:
    """A time in the past, in whole seconds."""
    return datetime.now(timezone.utc).replace(microsecond=0) - timedelta(**how_long)


@pytest.fixture
def green(tmp_path: Path) -> str:
    """A report with some of every harmless outcome."""
    records = replaced(record("COPY-001", "unsupported"), record("COPY-002", "xfail"))
    records["run"]["torch"]["git"] = SHA
    records["run"]["started"] = ago(minutes=10).isoformat()
    return str(synthetic.write(tmp_path / "green.json", records))


@pytest.fixture
def red(tmp_path: Path) -> str:
    made = replaced(record("COPY-001", "fail"), record("COPY-002", "crash"))
    made["run"]["torch"]["git"] = SHA
    return str(synthetic.write(tmp_path / "red.json", made))


def row(relay: RelayFake) -> dict[str, Any]:
    """The one row of the dashboard."""
    (found,) = relay.hud.values()
    return found


def counts(passed: int, failed: int, skipped: int) -> dict[str, int]:
    return {
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "total": passed + failed + skipped,
    }


ALL = len(synthetic.requirements())


# --- what is told


def test_a_job_is_told_begun_and_then_ended_with_its_counts(
    relay: RelayFake, job: Run, green: str
) -> None:
    assert job("--status=in_progress") == 0
    assert relay.jobs() == {"suite": "in_progress"}
    url = "https://github.com/octo-org/puone/actions/runs/12345/artifacts/7"
    assert job("--status=completed", f"--report={green}", f"--artifact-url={url}") == 0
    assert relay.jobs() == {"suite": "completed"}
    (began,) = (c["workflow"]["started_at"] for c in relay.callbacks[:1])
    assert row(relay) == {
        "event_type": "pull_request",
        "started_at": began,
        "status": "completed",
        "conclusion": "success",
        "pull": 42,
        "sha": SHA,
        "test_results": counts(ALL - 2, 0, 2),
        "artifact_url": url,
    }
    name = "crcr/octo-org/puone/relay/suite"
    assert relay.check_runs == [(name, "in_progress", None), (name, "completed", "success")]


def test_a_callback_is_what_upstream_s_own_action_sends(
    relay: RelayFake, job: Run, green: str
) -> None:
    assert job("--status=in_progress", "--check-run-id=678") == 0
    assert job("--status=completed", f"--report={green}") == 0
    first, last = relay.callbacks
    assert {key: first[key] for key in ("event_type", "delivery_id", "payload")} == (
        json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())["client_payload"]
    )
    stamp = first["workflow"].pop("started_at")
    assert stamp.endswith("Z") and len(stamp) == 20
    assert first["workflow"] == {
        "schema_version": "1",
        "status": "in_progress",
        "conclusion": None,
        "name": "relay",
        "url": "https://github.com/octo-org/puone/actions/runs/12345",
        "run_id": "12345",
        "run_attempt": "1",
        "job_name": "suite",
        "check_run_id": "678",
        "completed_at": None,
    }
    assert last["workflow"]["started_at"] is None
    assert last["workflow"]["check_run_id"] == "12345-1"


def test_a_failure_in_the_report_is_a_failure_whatever_the_job_says(
    relay: RelayFake, job: Run, red: str
) -> None:
    assert job("--status=completed", f"--report={red}", "--conclusion=success") == 0
    assert row(relay)["conclusion"] == "failure"
    assert row(relay)["test_results"] == counts(ALL - 2, 2, 0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("failure", "failure"),
        ("cancelled", "cancelled"),
        ("timed_out", "timed_out"),
        ("skipped", "failure"),
    ],
)
def test_a_job_that_ended_badly_is_no_success_though_its_report_is_green(
    relay: RelayFake, job: Run, green: str, said: str, told: str
) -> None:
    assert job("--status=completed", f"--report={green}", f"--conclusion={said}") == 0
    assert row(relay)["conclusion"] == told


def test_without_a_report_there_is_no_success(relay: RelayFake, job: Run) -> None:
    assert job("--status=completed", "--conclusion=success") == 0
    assert (row(relay)["conclusion"], row(relay)["test_results"]) == ("failure", None)


def test_legs_of_a_matrix_are_jobs_of_their_own(relay: RelayFake, job: Run, green: str) -> None:
    for leg in ("suite-sim", "suite-cuda"):
        assert job("--status=in_progress", f"--job-name={leg}") == 0
        assert job("--status=completed", f"--job-name={leg}", f"--report={green}") == 0
    assert relay.jobs() == {"suite-sim": "completed", "suite-cuda": "completed"}
    assert len(relay.hud) == 2


def test_a_run_that_is_repeated_is_a_job_of_its_own(
    relay: RelayFake, job: Run, green: str, red: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job("--status=completed", f"--report={red}") == 0
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    assert job("--status=completed", f"--report={green}") == 0
    assert [r["conclusion"] for r in relay.hud.values()] == ["failure", "success"]


def test_a_push_is_told_like_a_pull_request(
    relay: RelayFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, green: str
) -> None:
    job = in_job(relay, tmp_path, monkeypatch, relay.dispatch_push())
    assert job("--status=in_progress") == 0
    assert job("--status=completed", f"--report={green}") == 0
    assert (relay.jobs(), row(relay)["pull"]) == ({"suite": "completed"}, 0)


@pytest.mark.parametrize("kind", ["nightly", "periodic"])
def test_a_nightly_is_told_once_with_the_commit_of_its_torch(
    relay: RelayFake, job: Run, green: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_EVENT_NAME", "schedule")
    assert job("--status=in_progress", f"--event-type={kind}") == 0
    assert relay.callbacks == []
    assert job("--status=completed", f"--event-type={kind}", f"--report={green}") == 0
    assert row(relay)["sha"] == SHA
    assert relay.shown(kind) == [row(relay)]
    assert relay.callbacks[0]["payload"] == {
        "repository": {"full_name": "pytorch/pytorch"},
        "head_sha": SHA,
    }
    assert job("--status=completed", f"--event-type={kind}", f"--report={green}") == 0
    assert relay.state == {
        ("00000001-0000-11ef-8000-000000000000", "octo-org/puone", 0, 0, None): ("dispatched")
    }


def test_a_dispatched_nightly_is_told_once_as_well(
    relay: RelayFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, green: str
) -> None:
    event = relay.dispatch("nightly", {"head_sha": SHA})
    event["client_payload"]["delivery_id"] = SHA
    job = in_job(relay, tmp_path, monkeypatch, event)
    assert job("--status=in_progress") == 0
    assert job("--status=completed", f"--report={green}") == 0
    assert len(relay.callbacks) == 1


def test_a_dry_run_prints_the_callback_and_asks_nobody(
    relay: RelayFake, job: Run, green: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job("--status=completed", f"--report={green}", "--dry-run") == 0
    head, _, body = capsys.readouterr().out.partition("\n")
    assert head == f"would POST to {relay.url}{CALLBACK}"
    assert json.loads(body)["workflow"]["test_results"] == counts(ALL - 2, 0, 2)
    assert not relay.tokens and not relay.answers


# --- reports


def test_the_shards_in_one_folder_are_one_run_and_folders_are_added_up(
    relay: RelayFake, job: Run, tmp_path: Path
) -> None:
    for lane in ("sim", "cuda"):
        folder = tmp_path / "reports" / lane
        folder.mkdir(parents=True)
        for number, shard in enumerate(synthetic.shards(synthetic.content(), 3)):
            synthetic.write(folder / f"{number}.json", shard)
    assert job("--status=completed", f"--report={tmp_path / 'reports'}") == 0
    assert row(relay)["test_results"] == counts(2 * ALL, 0, 0)


def test_a_report_that_is_named_twice_counts_once(relay: RelayFake, job: Run, green: str) -> None:
    folder = os.path.dirname(green)
    again = f"{folder}/../{os.path.basename(folder)}/green.json"
    assert job("--status=completed", f"--report={green}", f"--report={again}") == 0
    assert row(relay)["test_results"] == counts(ALL - 2, 0, 2)


UNUSABLE: dict[str, Callable[[dict[str, Any]], object]] = {
    "totals that lie": lambda c: c["totals"].update({"pass": 10**18}),
    "a lost check": lambda c: c["checks"].pop(),
    "a lost shard": lambda c: c["run"]["options"].update(shard="1/2"),
    "a check twice": lambda c: c["checks"].append(c["checks"][0]),
    "an outcome of one's own": lambda c: c["checks"][0].update(outcome="passed"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_report_is_told_as_a_failure_and_ends_the_step(
    relay: RelayFake, job: Run, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.content()
    UNUSABLE[case](made)
    file = synthetic.write(tmp_path / "bad.json", made)
    assert job("--status=completed", f"--report={file}", "--conclusion=success") == 2
    assert (row(relay)["conclusion"], row(relay)["test_results"]) == ("failure", None)
    assert "reported as failure, because" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"run": {}}', "\x00\x01"])
def test_what_is_no_report_is_told_as_a_failure(
    relay: RelayFake, job: Run, tmp_path: Path, text: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    assert job("--status=completed", f"--report={tmp_path / 'bad.json'}") == 2
    assert row(relay)["conclusion"] == "failure"


def test_an_incomplete_run_is_no_success(relay: RelayFake, job: Run, tmp_path: Path) -> None:
    file = synthetic.write(tmp_path / "cut.json", replaced(record("COPY-001", "not_run")))
    assert job("--status=completed", f"--report={file}", "--conclusion=success") == 0
    assert row(relay)["conclusion"] == "failure"
    assert row(relay)["test_results"] == counts(ALL - 1, 0, 1)


def test_an_empty_folder_is_told_as_a_failure(relay: RelayFake, job: Run, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    assert job("--status=completed", f"--report={folder}") == 2
    assert row(relay)["conclusion"] == "failure"


def test_huge_counts_are_told_as_they_are(relay: RelayFake, job: Run, tmp_path: Path) -> None:
    file = synthetic.write(tmp_path / "many.json", synthetic.many(5_000))
    assert job("--status=completed", f"--report={file}") == 0
    told = row(relay)["test_results"]
    assert told["total"] == 5_000 == told["passed"] + told["failed"] + told["skipped"]
    assert row(relay)["conclusion"] == "failure"


# --- told twice, or not to the end


def test_what_is_told_twice_is_told_once(relay: RelayFake, job: Run, green: str) -> None:
    for _ in range(2):
        assert job("--status=in_progress") == 0
    for _ in range(2):
        assert job("--status=completed", f"--report={green}") == 0
    assert relay.jobs() == {"suite": "completed"}
    assert job("--status=in_progress") == 0
    assert row(relay)["conclusion"] == "success"


def test_a_beginning_that_was_missed_is_told_before_the_end(
    relay: RelayFake, job: Run, green: str
) -> None:
    assert job("--status=completed", f"--report={green}") == 0
    assert relay.jobs() == {"suite": "completed"}
    assert [body["workflow"]["status"] for body in relay.callbacks] == [
        *("completed", "in_progress", "completed")
    ]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("status", [None, 500, 502, 503, 504])
def test_an_answer_that_was_lost_is_asked_for_again(
    relay: RelayFake, job: Run, green: str, status: int | None, applied: bool
) -> None:
    relay.fail_next(status, applied=applied)
    assert job("--status=in_progress") == 0
    relay.fail_next(status, applied=applied, times=2)
    assert job("--status=completed", f"--report={green}") == 0
    assert relay.jobs() == {"suite": "completed"}
    assert row(relay)["conclusion"] == "success"


@pytest.mark.parametrize("statuses", [("in_progress", "completed"), ("completed",)])
@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_call_and_run_again_it_ends_in_the_same_state(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    green: str,
    before: bool,
    statuses: tuple[str, ...],
) -> None:
    def tell(job: Run) -> None:
        for status in statuses:
            report = [f"--report={green}"] if status == "completed" else []
            assert job(f"--status={status}", *report) == 0

    with serving() as undisturbed:
        tell(in_job(undisturbed, tmp_path, monkeypatch))
    calls = len(undisturbed.answers)
    assert calls == 4  # a token and a callback, twice; or a token and three callbacks
    for call in range(1, calls + 1):
        with serving() as relay:
            job = in_job(relay, tmp_path, monkeypatch)
            assert killed(relay, partial(tell, job), call, before)
            tell(job)
        assert (relay.jobs(), timeless(relay)) == (undisturbed.jobs(), timeless(undisturbed)), call


def timeless(relay: RelayFake) -> dict[str, Any]:
    """The rows of the dashboard, but for when the jobs began."""
    return {key: row | {"started_at": None} for key, row in relay.hud.items()}


def killed(relay: RelayFake, run: Callable[[], None], call: int, before: bool) -> bool:
    """Run it in a process that is killed at a call; whether it was."""
    ready, go = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.read(ready, 1)
            run()
        finally:
            os._exit(0)
    relay.kill = (pid, call, before)
    os.write(go, b"x")
    _, status = os.waitpid(pid, 0)
    relay.kill = None
    os.close(ready)
    os.close(go)
    return os.WIFSIGNALED(status)


# --- when it began, and when that was too long ago


@pytest.mark.parametrize("kind", ["nightly", "periodic"])
@pytest.mark.parametrize(
    ("attempt", "expected"),
    [("1", "what is said"), ("2", "the report")],
)
def test_a_run_that_is_told_once_says_when_it_began(
    relay: RelayFake,
    job: Run,
    green: str,
    kind: str,
    attempt: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second attempt gets from jobs that are not run again what they said in the first."""
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", attempt)
    said = f"{ago(hours=2):%Y-%m-%dT%H:%M:%SZ}"
    options = (f"--event-type={kind}", f"--report={green}", f"--started-at={said}")
    assert job("--status=completed", *options) == 0
    workflow = relay.callbacks[0]["workflow"]
    assert (workflow["started_at"] == said) == (expected == "what is said")
    assert workflow["started_at"] < workflow["completed_at"]
    assert relay.shown(kind) == [row(relay)]


def test_a_nightly_that_never_began_is_shown_as_a_failure(relay: RelayFake, job: Run) -> None:
    assert job("--status=completed", "--event-type=nightly", f"--sha={SHA}") == 0
    (shown,) = relay.shown("nightly")
    assert shown["conclusion"] == "failure"


@pytest.mark.parametrize("started", ["2999-01-01T00:00:00+00:00", "yesterday", "", "2026-11-20"])
def test_a_report_that_says_a_time_that_is_none_gives_no_time(
    relay: RelayFake, job: Run, tmp_path: Path, started: str
) -> None:
    made = synthetic.content()
    made["run"]["started"] = started
    report = synthetic.write(tmp_path / "report.json", made)
    job("--status=completed", "--event-type=nightly", f"--sha={SHA}", f"--report={report}")
    (shown,) = relay.shown("nightly")
    assert ago(minutes=5) < datetime.strptime(shown["started_at"], "%Y-%m-%dT%H:%M:%S%z")


def test_a_result_that_comes_after_the_relay_gave_up_is_an_error(
    relay: RelayFake, job: Run, green: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job("--status=in_progress") == 0
    began = f"{ago(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    now = relay.clock()
    relay.clock = lambda: now + ZOMBIE_TIMEOUT - 60
    assert relay.sweep() == []
    relay.clock = lambda: now + ZOMBIE_TIMEOUT + 600
    assert len(relay.sweep()) == 1
    assert row(relay)["conclusion"] == "timed_out"
    assert relay.check_runs[-1][1:] == ("completed", "timed_out")
    relay.clock = time.time
    with pytest.MonkeyPatch.context() as patch:
        later = datetime.now(timezone.utc) + timedelta(hours=6, minutes=10)
        patch.setattr(cli, "_now", lambda: later)
        options = (f"--report={green}", f"--started-at={began}")
        assert job("--status=completed", *options) == 2
    assert "the result came too late" in capsys.readouterr().err
    assert row(relay)["conclusion"] == "timed_out"


def test_a_result_just_before_the_relay_gives_up_is_taken(
    relay: RelayFake, job: Run, green: str
) -> None:
    assert job("--status=in_progress") == 0
    assert job("--status=completed", f"--report={green}") == 0
    now = relay.clock()
    relay.clock = lambda: now + 2 * ZOMBIE_TIMEOUT
    assert relay.sweep() == []
    assert row(relay)["conclusion"] == "success"


# --- names, which the relay takes apart


NAMES = [
    *("suite", "development-sim 1 of 2", "build (cpu, 3.12)", "a", "nightly_sim.x", "1a", "2e5"),
    *("1", "42", "1_000", "٤٢", "a:b", "suite:1", ":", "a/b", "/", "*", "", " ", " a", "-a", ".a"),
    *("a\nb", "a\x00b", "\u202ea", "ä", "x" * 101, "0x1f", "+1", "1 ", "a b", "a+b=c"),
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_is_refused_or_the_relay_can_take_it_apart(
    relay: RelayFake, job: Run, name: str
) -> None:
    if job("--status=in_progress", f"--job-name={name}") == 2:
        assert relay.callbacks == []
        return
    kept = name or "suite"
    now = relay.clock()
    relay.clock = lambda: now + ZOMBIE_TIMEOUT + 1
    assert [key[-1] for key in relay.sweep()] == [kept]
    check = f"crcr/octo-org/puone/relay/{kept}"
    assert relay.rerequested(check) == ("octo-org/puone", 12345)


@pytest.mark.parametrize(
    "name", ["42", "1_000", "a:b", "a/b", "*", "two\nlines", "x" * 101, "\u202ea"]
)
def test_a_name_that_the_relay_would_lose_is_refused(
    relay: RelayFake, job: Run, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job("--status=in_progress", f"--job-name={name}") == 2
    assert "--job-name is" in capsys.readouterr().err
    assert relay.answers == []


# --- refusals


REFUSALS: dict[str, tuple[int, str, str]] = {
    "400": (400, '{"detail": "callback body missing required field"}', "does not take this"),
    "no dispatch": (400, '{"detail": "no matching dispatch record"}', "three days"),
    "403": (403, '{"detail": "pipeline is not registered with CRCR"}', "not registered"),
    "404": (404, '{"detail": "Not found"}', "/github/callback"),
    "405": (405, '{"detail": "Method not allowed"}', "/github/callback"),
    "413": (413, '{"detail": "Payload exceeds 2MB limit"}', "too large"),
    "422": (422, '{"detail": "HUD rejected callback"}', "answered 422 (HUD rejected"),
    "redirected": (302, "", "not sent after it"),
    "a page": (403, "<html>blocked</html>", "not registered"),
    "a page of success": (200, "<html>welcome</html>", "not what a relay says"),
    "a list": (200, "[]", "not what a relay says"),
    "not ok": (200, '{"ok": false, "status": "completed"}', "not what a relay says"),
    "deep": (200, "[" * 60_000, "not what a relay says"),
    "endless": (200, '{"ok": true, "status": "' + "x" * 200_000, "not what a relay says"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_ends_the_step_with_its_reason(
    relay: RelayFake, job: Run, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, body, words = REFUSALS[case]
    headers = {"Location": "http://127.0.0.1:9/stolen"} if status == 302 else {}
    relay.fail_next(status, body=body.encode(), headers=headers)
    assert job("--status=in_progress") == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(relay.answers) == 2  # a token, and one callback: no use in asking again


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_a_relay_that_stays_down_ends_the_step_after_five_tries(
    relay: RelayFake, job: Run, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.fail_next(status, times=100, headers={"Retry-After": "99999999"})
    assert job("--status=in_progress") == 2
    assert f"the relay answered {status}" in capsys.readouterr().err
    assert relay.answers.count(status) == 5


def test_a_relay_that_is_not_there_ends_the_step(
    relay: RelayFake, job: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.fail_next(None, times=100)
    assert job("--status=in_progress") == 2
    assert "no answer from 127.0.0.1: ConnectionError" in capsys.readouterr().err


def test_a_rate_that_is_too_high_is_waited_out(relay: RelayFake, job: Run) -> None:
    now = [0.0]
    relay.rate = 2
    relay.clock = lambda: now[0]
    for name in ("a", "b"):
        assert job("--status=in_progress", f"--job-name={name}") == 0
    assert job("--status=in_progress", "--job-name=c") == 2
    now[0] += 61
    assert job("--status=in_progress", "--job-name=c") == 0
    assert relay.jobs() == dict.fromkeys("abc", "in_progress")


def test_a_limited_rate_is_waited_for_longer_than_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    retry = http._retry("POST")
    said: dict[str, Any] = {"headers": {}, "get_redirect_location": lambda _: False}
    for status in (503, 429, 503):
        answer = type("Answer", (), said | {"status": status})()
        retry = retry.increment("POST", "/", response=answer)
        retry.sleep()
    assert slept == [http._WINDOW, 4.0]


def test_what_the_dashboard_has_for_good_is_not_an_error(relay: RelayFake, job: Run) -> None:
    relay.fail_next(409, body=b'{"detail": "Record already finalized"}')
    assert job("--status=in_progress") == 0


@pytest.mark.parametrize("level", [None, 1])
def test_a_repository_that_the_relay_does_not_list_is_warned(
    relay: RelayFake, job: Run, level: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.level = level
    assert job("--status=in_progress") == 0
    said = capsys.readouterr()
    assert "::warning title=relay::the relay ignores this repository" in said.out
    assert not relay.jobs() and not relay.hud


def test_a_forged_delivery_is_refused_by_the_relay(
    relay: RelayFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, green: str
) -> None:
    event = relay.dispatch_pull_request()
    event["client_payload"]["delivery_id"] = "somebody-else-s"
    job = in_job(relay, tmp_path, monkeypatch, event)
    assert job("--status=completed", f"--report={green}") == 2
    assert relay.hud == {}


def test_more_than_the_dashboard_takes_is_never_sent(relay: RelayFake) -> None:
    body = {"payload": "x" * client._MAX_BODY}
    with pytest.raises(CiError, match="the relay takes"):
        client.Relay(relay.url + CALLBACK, lambda: "t").tell(body)
    assert relay.answers == []
    assert client._MAX_BODY < MAX_HUD


# --- tokens


def test_a_token_that_expired_on_the_way_is_replaced(
    relay: RelayFake, job: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    relay.clock = lambda: now[0]
    old = client.Relay(relay.url + CALLBACK)
    body = told(relay)
    assert old.tell(body) == client.DELIVERED
    now[0] += 301
    assert old.tell(told(relay, "other")) == client.DELIVERED
    assert len(relay.tokens) == 2


def told(relay: RelayFake, name: str = "suite") -> dict[str, Any]:
    """A callback that the relay takes."""
    event = relay.dispatch_pull_request()["client_payload"]
    workflow = {
        "schema_version": "1",
        "status": "in_progress",
        "conclusion": None,
        "name": "relay",
        "url": "https://github.com/",
        "run_id": "1",
        "run_attempt": "1",
        "job_name": name,
        "check_run_id": "1",
        "started_at": "2026-11-21T00:00:00Z",
        "completed_at": None,
    }
    return event | {"workflow": workflow}


BAD_TOKENS: dict[str, Callable[[RelayFake, dict[str, Any]], str]] = {
    "expired": lambda relay, claims: relay.signed(claims | {"exp": 1}),
    "for another audience": lambda relay, claims: relay.signed(claims | {"aud": "sts.amazonaws"}),
    "of another issuer": lambda relay, claims: relay.signed(claims | {"iss": "https://evil"}),
    "signed by a stranger": lambda relay, claims: relay.signed(claims, by=1),
}


@pytest.mark.parametrize("case", BAD_TOKENS)
def test_a_token_that_the_relay_refuses_is_replaced_once_and_never_shown(
    relay: RelayFake, job: Run, case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    relay.sign = lambda claims: BAD_TOKENS[case](relay, claims)
    assert job("--status=in_progress") == 2
    assert len(relay.tokens) == 2
    said = capfd.readouterr()
    assert "does not take the OIDC token" in said.err
    assert_secret(relay, said.out, said.err)


def assert_secret(relay: RelayFake, out: str, err: str) -> None:
    """Tokens are only where the runner is asked to mask them."""
    shown = "".join(line for line in out.splitlines() if not line.startswith("::add-mask::"))
    for secret in (relay.request_token, *relay.tokens):
        assert secret not in shown + err
        assert secret[-12:] not in shown + err


def test_a_relay_that_repeats_the_token_does_not_get_it_into_the_log(
    relay: RelayFake, job: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = relay._answer

    def echo(request: Any) -> Any:
        response = answer(request)
        if request.path == CALLBACK:
            said = "x" * 200 + request.headers["Authorization"] + "\n::error::x\n"
            response.data, response.status_code = json.dumps({"detail": said}).encode(), 400
        return response

    monkeypatch.setattr(relay, "_answer", echo)
    assert job("--status=in_progress") == 2
    said = capfd.readouterr()
    assert_secret(relay, said.out, said.err)
    assert "***" in said.err
    assert "\n::error" not in said.err


def test_each_token_is_masked_before_it_is_used(
    relay: RelayFake, job: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    assert job("--status=in_progress") == 0
    assert f"::add-mask::{relay.tokens[0]}\n" in capfd.readouterr().out


@pytest.mark.parametrize("name", ["ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"])
@pytest.mark.parametrize("value", [None, "", "line\nend"])
def test_a_job_without_the_permission_is_told_which_one(
    relay: RelayFake,
    job: Run,
    name: str,
    value: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    assert job("--status=in_progress") == 2
    said = capsys.readouterr().err
    assert "id-token: write" in said or "must be an https address" in said
    assert relay.callbacks == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"message": "Unauthorized"}'),
        (403, b"forbidden"),
        (500, b""),
        (200, b'{"value": "two\\nlines"}'),
        (200, b'{"value": ["a.b.c"]}'),
        (200, b'{"value": ""}'),
        (200, b"null"),
        (302, b""),
    ],
)
def test_an_issuer_that_gives_no_token_ends_the_step(
    relay: RelayFake, job: Run, status: int, body: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.fail_next(status, body=body, path=TOKENS, times=9)
    assert job("--status=in_progress") == 2
    assert "no OIDC token" in capsys.readouterr().err
    assert relay.callbacks == []


def test_an_issuer_that_hiccups_is_asked_again(relay: RelayFake, job: Run) -> None:
    relay.fail_next(503, path=TOKENS, times=3)
    assert job("--status=in_progress") == 0


def test_a_netrc_does_not_take_the_token_s_place(
    relay: RelayFake, job: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 login somebody password else\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    assert job("--status=in_progress") == 0


# --- wrong use


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--url=http://relay.example/github/callback",), "https address"),
        (("--url=https://me:secret@relay.example/",), "without a password"),
        (("--url=https://[",), "not an address"),
        (("--url=file:///etc/passwd",), "https address"),
        (("--artifact-url=javascript:alert(1)",), "--artifact-url"),
        (("--artifact-url=https://me:secret@x.example/",), "--artifact-url"),
        (("--artifact-url=https://x.example/a b",), "--artifact-url"),
        (("--artifact-url=https://x.example/" + "a" * 2000,), "--artifact-url"),
        (("--started-at=2026-11-26",), "not a time"),
        (("--started-at=2026-11-26T04:23:00+00:00",), "not a time"),
        (("--started-at=2999-01-01T00:00:00Z",), "is not over yet"),
        (("--check-run-id=1;2",), "check_run_id"),
        (("--event-type=nightly", "--sha=main"), "--sha must be"),
        (("--event-type=nightly", "--sha=" + "A" * 40), "--sha must be"),
        (("--event-type=nightly",), "say which by --sha"),
        (("--sha=" + SHA,), "goes with --event-type"),
        (("--upstream=evil/pytorch",), "not of evil/pytorch"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_sent(
    relay: RelayFake,
    job: Run,
    options: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert job("--status=completed", *options) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "secret" not in said
    assert relay.answers == []


@pytest.mark.parametrize(
    "option",
    [
        *("--report=x.json", "--conclusion=success", "--artifact-url=x"),
        "--started-at=2026-11-26T04:23:00Z",
    ],
)
def test_an_ending_is_not_told_with_a_beginning(relay: RelayFake, job: Run, option: str) -> None:
    assert job("--status=in_progress", option) == 2
    assert relay.answers == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_RUN_ID", None),
        ("GITHUB_RUN_ID", "12; true"),
        ("GITHUB_RUN_ATTEMPT", "0"),
        ("GITHUB_WORKFLOW", "x" * 300),
        ("GITHUB_WORKFLOW", "of/the/relay"),
        ("GITHUB_JOB", "42"),
    ],
)
def test_an_environment_that_is_no_job_s_is_refused(
    relay: RelayFake, job: Run, name: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    assert job("--status=in_progress") == 2
    assert relay.answers == []
