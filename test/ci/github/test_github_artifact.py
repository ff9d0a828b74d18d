# SPDX-License-Identifier: BSD-3-Clause
"""Artifacts are downloaded from the run that is meant, bounded, and without our token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun
from github_fake import GitHubFake, Reply
from github_fake.world import Run
from reporting import zipped

from torch_backend_ci.cli import parser
from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access
from torch_backend_ci.github.artifact import Limits, Unusable, fetch

LIMITS = Limits(packed=1 << 20, unpacked=2 << 20, entries=10)
CONTENT = {"verdict.json": b"{}"}


@pytest.fixture
def repo(github_fake: GitHubFake) -> Repository:
    words = ["publish", "--branch", "b", "--from", ".", "--message", "m"]
    return access.repository(parser(["publish"]).parse_args(words))


def a_run(fake: GitHubFake) -> Run:
    sha = fake.repository.refs["refs/heads/main"]
    return fake.world.add_run(fake.repository, sha)


def left(fake: GitHubFake, data: bytes, name: str = "verdict") -> Run:
    run = a_run(fake)
    fake.world.add_artifact(fake.repository, run, name, data)
    return run


def fetched(repo: Repository, run: Run, wanted: str = "verdict.json") -> dict[str, bytes]:
    found: WorkflowRun = repo.get_workflow_run(run.id)
    return fetch(repo, found, "verdict", wanted.__eq__, LIMITS)


def downloads(fake: GitHubFake) -> int:
    return sum(call.operation == "actions/download-artifact" for call in fake.calls)


def test_the_wanted_file_comes_and_the_token_stays(
    github_fake: GitHubFake, repo: Repository
) -> None:
    # That no token reaches the other host the fake itself insists on, at the end of the test.
    assert fetched(repo, left(github_fake, zipped(CONTENT))) == CONTENT


def test_a_netrc_does_not_send_credentials_to_the_storage(
    github_fake: GitHubFake, repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login us password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert fetched(repo, left(github_fake, zipped(CONTENT))) == CONTENT


def test_an_artifact_behind_many_others_is_found(github_fake: GitHubFake, repo: Repository) -> None:
    run = left(github_fake, zipped(CONTENT))
    for number in range(130):
        github_fake.world.add_artifact(github_fake.repository, run, f"report-{number}", b"")
    assert fetched(repo, run) == CONTENT


def test_of_two_artifacts_of_one_name_the_newest_counts(
    github_fake: GitHubFake, repo: Repository
) -> None:
    run = left(github_fake, zipped({"verdict.json": b"old"}))
    github_fake.world.add_artifact(
        github_fake.repository, run, "verdict", zipped({"verdict.json": b"new"})
    )
    assert fetched(repo, run) == {"verdict.json": b"new"}


def test_the_artifact_of_another_run_is_none(github_fake: GitHubFake, repo: Repository) -> None:
    left(github_fake, zipped(CONTENT))
    with pytest.raises(Unusable, match="no artifact verdict"):
        fetched(repo, a_run(github_fake))


@pytest.mark.parametrize(
    "lie",
    [
        {"id": 1},
        {"head_sha": "f" * 40},
        {},
    ],
)
def test_an_artifact_that_is_listed_and_not_of_the_run_is_not_used(
    github_fake: GitHubFake, repo: Repository, lie: dict[str, object]
) -> None:
    def change(reply: Reply) -> None:
        (artifact,) = reply.body["artifacts"]
        artifact["workflow_run"] = artifact["workflow_run"] | lie if lie else None

    run = left(github_fake, zipped(CONTENT))
    github_fake.rewrite("actions/list-workflow-run-artifacts", change)
    with pytest.raises(Unusable, match="only of another"):
        fetched(repo, run)
    assert not downloads(github_fake)


def test_an_expired_artifact_is_not_asked_for(github_fake: GitHubFake, repo: Repository) -> None:
    run = left(github_fake, zipped(CONTENT))
    next(iter(github_fake.repository.artifacts.values())).expired = True
    with pytest.raises(Unusable, match="expired"):
        fetched(repo, run)
    assert not downloads(github_fake)


@pytest.mark.parametrize("status", [404, 410])
def test_an_artifact_may_expire_meanwhile(
    github_fake: GitHubFake, repo: Repository, status: int
) -> None:
    run = left(github_fake, zipped(CONTENT))
    github_fake.fail_next("actions/download-artifact", status)
    with pytest.raises(Unusable, match="expired or was deleted"):
        fetched(repo, run)


def test_200_mb_are_not_downloaded(github_fake: GitHubFake, repo: Repository) -> None:
    run = left(github_fake, b"PK")
    next(iter(github_fake.repository.artifacts.values())).size = 200_000_000
    with pytest.raises(Unusable, match="190 MiB"):
        fetched(repo, run)
    assert not downloads(github_fake)


def test_200_mb_that_say_they_are_small_are_cut_off(
    github_fake: GitHubFake, repo: Repository
) -> None:
    run = left(github_fake, bytes(200_000_000))
    next(iter(github_fake.repository.artifacts.values())).size = 1000
    with pytest.raises(Unusable, match="larger than 1 MiB"):
        fetched(repo, run)


@pytest.mark.parametrize(("digest", "fits"), [("sha256:" + "0" * 64, False), (None, True)])
def test_what_is_not_what_was_uploaded_is_refused(
    github_fake: GitHubFake, repo: Repository, digest: str | None, fits: bool
) -> None:
    def change(reply: Reply) -> None:
        reply.body["artifacts"][0]["digest"] = digest

    run = left(github_fake, zipped(CONTENT))
    github_fake.rewrite("actions/list-workflow-run-artifacts", change)
    if fits:
        assert fetched(repo, run) == CONTENT
    else:
        with pytest.raises(Unusable, match="digest"):
            fetched(repo, run)


@pytest.mark.parametrize(
    "location", ["", "/artifacts/1", "file:///etc/passwd", "ftp://localhost/x", "https://"]
)
def test_a_redirection_to_nowhere_is_refused(
    github_fake: GitHubFake, repo: Repository, location: str
) -> None:
    def change(reply: Reply) -> None:
        reply.headers["location"] = location

    run = left(github_fake, zipped(CONTENT))
    github_fake.rewrite("actions/download-artifact", change)
    with pytest.raises(CiError, match="no address"):
        fetched(repo, run)


def test_the_storage_must_not_send_us_on(github_fake: GitHubFake, repo: Repository) -> None:
    run = left(github_fake, zipped(CONTENT))
    github_fake.fail_next("download", 302, {"location": f"{github_fake.url}/user"})
    with pytest.raises(CiError, match="302"):
        fetched(repo, run)
    assert "users/get-authenticated" not in [call.operation for call in github_fake.calls]


def expired_address(fake: GitHubFake) -> None:
    fake.fail_next("download", 403)


def closed_midway(fake: GitHubFake) -> None:
    fake.close_connection("download", body_bytes=20)


def down(fake: GitHubFake) -> None:
    fake.fail_next("download", 503, times=10)


@pytest.mark.parametrize("fault", [expired_address, closed_midway, down])
def test_what_the_storage_refuses_is_said_without_the_signed_address(
    github_fake: GitHubFake,
    repo: Repository,
    waits: list[float],
    fault: Callable[[GitHubFake], None],
) -> None:
    run = left(github_fake, zipped(CONTENT))
    fault(github_fake)
    with pytest.raises(CiError, match="cannot download artifact verdict from localhost") as said:
        fetched(repo, run)
    assert "s3cret" not in str(said.value)
    assert "/artifacts/" not in str(said.value)
    assert not isinstance(said.value, Unusable)  # trying again may help


def test_an_outage_of_the_storage_that_passes_is_not_noticed(
    github_fake: GitHubFake, repo: Repository, waits: list[float]
) -> None:
    run = left(github_fake, zipped(CONTENT))
    github_fake.fail_next("download", 503, times=2)
    assert fetched(repo, run) == CONTENT


def test_what_is_wrong_with_the_zip_names_the_artifact(
    github_fake: GitHubFake, repo: Repository
) -> None:
    run = left(github_fake, zipped({"../verdict.json": b"{}"}))
    with pytest.raises(Unusable, match=r"artifact verdict: entry '\.\./verdict.json' has a name"):
        fetched(repo, run)
