# SPDX-License-Identifier: BSD-3-Clause
"""`report` of a push to the default branch: what later pull requests are compared with."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest
from github_fake import GitHubFake
from github_fixtures import Verb, writes
from reporting import a_pull, a_push, a_report, a_run, baseline_of, source_of, zipped

from torch_backend_ci.cli import main
from torch_conformance.results import reader

LANE = "development-sim.json.gz"


def stored(fake: GitHubFake) -> set[str]:
    return set(baseline_of(fake))


def test_the_reports_of_a_push_are_stored_with_their_source(
    github_fake: GitHubFake, verb: Verb
) -> None:
    run = a_push(github_fake, {LANE: a_report(), "oldest-sim.json.gz": a_report(1)})
    assert verb("report", "--run-id", run.id).status == 0
    assert stored(github_fake) == {
        "baseline/development-sim.json.gz",
        "baseline/oldest-sim.json.gz",
        "baseline.json",
    }
    report = gzip.decompress(baseline_of(github_fake)[f"baseline/{LANE}"])
    assert reader.parse(report, LANE).complete
    assert source_of(github_fake)["development-sim"]["head_sha"] == run.head_sha
    github_fake.calls.clear()
    assert verb("report", "--run-id", run.id).status == 0
    assert writes(github_fake) == []


def test_a_lane_that_got_lost_keeps_its_last_good_report(
    github_fake: GitHubFake, verb: Verb
) -> None:
    both = a_push(github_fake, {LANE: a_report(), "oldest-sim.json.gz": a_report()})
    verb("report", "--run-id", both.id)
    one = a_push(github_fake, {LANE: a_report(1)})
    verb("report", "--run-id", one.id)
    assert "baseline/oldest-sim.json.gz" in stored(github_fake)
    runs = {lane: source["run_id"] for lane, source in source_of(github_fake).items()}
    assert runs == {"development-sim": one.id, "oldest-sim": both.id}


def test_a_lane_that_is_no_more_leaves_the_baseline(github_fake: GitHubFake, verb: Verb) -> None:
    verb("report", "--run-id", a_push(github_fake, {LANE: a_report()}).id)
    github_fake.person("alice").pushes({"baseline/gone-sim.json.gz": "1"}, "results")
    unknown = a_push(github_fake, {LANE: a_report(1), "made-up.json.gz": a_report()})
    verb("report", "--run-id", unknown.id)
    assert stored(github_fake) == {f"baseline/{LANE}", "baseline.json"}


def test_other_files_of_the_branch_stay(github_fake: GitHubFake, verb: Verb) -> None:
    first = a_push(github_fake, {LANE: a_report()})
    verb("report", "--run-id", first.id)
    github_fake.person("alice").pushes(
        {"nightly/a.json": "1", "baseline/notes.txt": "2"}, "results"
    )
    verb("report", "--run-id", a_push(github_fake, {LANE: a_report(1)}).id)
    assert {"nightly/a.json", "baseline/notes.txt"} <= stored(github_fake)


def test_an_earlier_push_that_ends_later_does_not_go_back(
    github_fake: GitHubFake, verb: Verb
) -> None:
    earlier = a_push(github_fake, {LANE: a_report(1)})
    later = a_push(github_fake, {LANE: a_report(2)})
    verb("report", "--run-id", later.id)
    ended = verb("report", "--run-id", earlier.id)
    assert ended.status == 0
    assert "of a later run already" in ended.err
    assert source_of(github_fake)["development-sim"]["head_sha"] == later.head_sha


def test_a_later_push_that_wins_the_race_stays(github_fake: GitHubFake, verb: Verb) -> None:
    verb("report", "--run-id", a_push(github_fake, {LANE: a_report()}).id)
    earlier = a_push(github_fake, {LANE: a_report(1)})
    later = {"run_number": 99, "run_attempt": 1, "run_id": 99, "head_sha": "f" * 40}
    text = json.dumps({"schema_version": 1, "lanes": {"development-sim": later}})
    other = github_fake.person("alice")
    github_fake.before("git/update-ref", lambda: other.pushes({"baseline.json": text}, "results"))
    assert verb("report", "--run-id", earlier.id).status == 0
    assert source_of(github_fake) == {"development-sim": later}


def test_a_repetition_of_the_run_replaces_it(github_fake: GitHubFake, verb: Verb) -> None:
    run = a_push(github_fake, {LANE: a_report(1)})
    verb("report", "--run-id", run.id)
    run.attempt = 2
    data = zipped({LANE: a_report(2)})
    github_fake.world.add_artifact(github_fake.repository, run, "baseline", data)
    verb("report", "--run-id", run.id)
    assert source_of(github_fake)["development-sim"]["run_attempt"] == 2


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"schema_version": 1, "lanes": {"a": 9}}', "[" * 50_000]
)
def test_a_source_that_somebody_damaged_is_written_anew(
    github_fake: GitHubFake, verb: Verb, text: str
) -> None:
    verb("report", "--run-id", a_push(github_fake, {LANE: a_report()}).id)
    github_fake.person("alice").pushes({"baseline.json": text}, "results")
    run = a_push(github_fake, {LANE: a_report(1)})
    assert verb("report", "--run-id", run.id).status == 0
    assert source_of(github_fake)["development-sim"]["head_sha"] == run.head_sha


# What is not stored.

SPOILED: dict[str, Callable[[], dict[str, bytes] | None]] = {
    "no artifact": lambda: None,
    "nothing": lambda: {"notes.txt": b""},
    "an odd lane": lambda: {"../x.json.gz": a_report()},
    "a lane that is not packed": lambda: {"development-sim.json": gzip.decompress(a_report())},
    "no gzip": lambda: {LANE: b"{}"},
    "half a gzip": lambda: {LANE: a_report()[:-20]},
    "a gzip with rubbish in it": lambda: {LANE: a_report()[:40] + b"\xff" * 40 + a_report()[80:]},
    "no report": lambda: {LANE: gzip.compress(b"{}")},
    "a bomb": lambda: {LANE: gzip.compress(bytes(66 << 20), 1)},
    "one bad lane among good ones": lambda: {
        LANE: a_report(),
        "oldest-sim.json.gz": gzip.compress(b"[]"),
    },
    "totals that do not add up": lambda: {
        LANE: gzip.compress(gzip.decompress(a_report()).replace(b'"pass": 3', b'"pass": 4'))
    },
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_no_baseline_is_not_stored_and_makes_the_job_red(
    github_fake: GitHubFake, verb: Verb, how: str
) -> None:
    run = a_push(github_fake, SPOILED[how]())
    assert verb("report", "--run-id", run.id).status == 2
    assert writes(github_fake) == []


def test_a_branch_that_is_not_the_default_one_makes_no_baseline(
    github_fake: GitHubFake, verb: Verb
) -> None:
    run = a_push(github_fake, {LANE: a_report()}, head_branch="release")
    ended = verb("report", "--run-id", run.id)
    assert (ended.status, "neither" in ended.err) == (0, True)
    assert writes(github_fake) == []


def test_a_pull_request_from_a_branch_called_main_makes_no_baseline(
    github_fake: GitHubFake, verb: Verb
) -> None:
    pull = a_pull(github_fake, branch="main")
    run = a_run(github_fake, pull, zipped({LANE: a_report()}), name="baseline")
    verb("report", "--run-id", run.id)
    assert "refs/heads/results" not in github_fake.repository.refs


def test_a_push_in_a_fork_makes_no_baseline(github_fake: GitHubFake, verb: Verb) -> None:
    pull = a_pull(github_fake, branch="main")
    data = zipped({LANE: a_report()})
    run = a_run(github_fake, pull, data, name="baseline", event="push")
    assert run.head_branch == "main"
    verb("report", "--run-id", run.id)
    assert writes(github_fake) == []


def test_a_token_for_pull_requests_makes_no_baseline(
    github_fake: GitHubFake, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_push(github_fake, {LANE: a_report()})
    token = github_fake.new_token({"actions": "read", "contents": "read", "checks": "write"})
    monkeypatch.setenv("GITHUB_TOKEN", token)
    ended = verb("report", "--run-id", run.id)
    assert ended.status == 2
    assert "contents=write" in ended.err


@pytest.mark.nightly
def test_killed_at_any_call_the_baseline_converges(
    github_fake: GitHubFake, converges: Callable[..., None], verb: Verb
) -> None:
    verb("report", "--run-id", a_push(github_fake, {LANE: a_report()}).id)
    run = a_push(github_fake, {LANE: a_report(1)})
    converges(lambda: main(["report", "--run-id", str(run.id)]))
    assert source_of(github_fake)["development-sim"]["head_sha"] == run.head_sha
