# SPDX-License-Identifier: BSD-3-Clause
"""The fake of GitHub: git, pull requests over their life, runs and artifacts."""

from __future__ import annotations

import base64
import io
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import github
import pytest
import requests
from github.InputGitTreeElement import InputGitTreeElement
from github.Repository import Repository
from github_fake import GitHubFake
from test_github_fake import client


@pytest.fixture
def repository(github_fake: GitHubFake) -> Repository:
    return client(github_fake).get_repo("octo-org/puone")


def test_objects_have_the_names_that_git_gives_them(
    github_fake: GitHubFake, tmp_path: Path
) -> None:
    files = {"a/b.h": "1\n", "a.h": "2\n", "a-b": "", "a/c/d": "3"}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    said = subprocess.run(
        ["git", "write-tree"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert github_fake.world.tree({}, files) == said.stdout.strip()


def test_a_commit_made_of_blobs_and_trees_is_published_by_its_ref(
    github_fake: GitHubFake, repository: Repository
) -> None:
    main = repository.get_git_ref("heads/main")
    parent = repository.get_git_commit(main.object.sha)
    blob = repository.create_git_blob(base64.b64encode(b"\0\1").decode(), "base64")
    element = InputGitTreeElement("data/x.bin", "100644", "blob", sha=blob.sha)
    tree = repository.create_git_tree([element], parent.tree)
    commit = repository.create_git_commit("Publish", tree, [parent])
    assert github_fake.world.file(github_fake.repository, "main", "data/x.bin") is None
    main.edit(commit.sha)
    assert github_fake.world.file(github_fake.repository, "main", "data/x.bin") == b"\0\1"
    names = {entry.path for entry in repository.get_git_tree("main", recursive=True).tree}
    assert names == {"README.md", "data", "data/x.bin"}


def test_a_ref_moves_forward_only_unless_forced(
    github_fake: GitHubFake, repository: Repository
) -> None:
    first = repository.get_git_ref("heads/main").object.sha
    github_fake.person("alice").pushes({"a": "1"})
    main = repository.get_git_ref("heads/main")
    with pytest.raises(github.GithubException, match="not a fast forward"):
        main.edit(first)
    main.edit(first, force=True)
    assert repository.get_branch("main").commit.sha == first
    with pytest.raises(github.GithubException, match="already exists"):
        repository.create_git_ref("refs/heads/main", first)
    with pytest.raises(github.GithubException, match="Object does not exist"):
        repository.create_git_ref("refs/heads/new", "1" * 40)
    repository.create_git_ref("refs/heads/pin/x", first).delete()
    assert [branch.name for branch in repository.get_branches()] == ["main"]


def test_contents_above_a_megabyte_come_as_blobs_only(
    github_fake: GitHubFake, repository: Repository
) -> None:
    large = b"x" * ((1 << 20) + 1)
    github_fake.person("alice").pushes({"d/large": large, "d/small": "s"})
    small, listed = repository.get_contents("d/small"), repository.get_contents("d")
    assert not isinstance(small, list) and isinstance(listed, list)
    assert small.decoded_content == b"s"
    assert [file.name for file in listed] == ["large", "small"]
    file = repository.get_contents("d/large")
    assert not isinstance(file, list) and file.encoding == "none"
    assert base64.b64decode(repository.get_git_blob(file.sha).content) == large
    with pytest.raises(github.UnknownObjectException):
        repository.get_contents("d/none")


def test_a_file_is_changed_only_by_who_knows_what_it_was(repository: Repository) -> None:
    made = repository.create_file("x", "Add", "1")
    with pytest.raises(github.GithubException, match="sha"):
        repository.create_file("x", "Add again", "2")
    content = made["content"]
    assert content is not None
    repository.update_file("x", "Change", "2", content.sha)
    with pytest.raises(github.GithubException, match="does not match"):
        repository.delete_file("x", "Delete", content.sha)


def test_a_merged_pull_request_is_found_by_its_commits(
    github_fake: GitHubFake, repository: Repository
) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number
    head = repository.get_pull(number).head.sha
    assert list(repository.get_commit(head).get_pulls()) == []  # from a fork, and open
    commit = github_fake.person("maintainer").merges(number, "squash")
    assert [pull.number for pull in repository.get_commit(commit).get_pulls()] == [number]
    pull = repository.get_pull(number)
    assert (pull.merged, pull.state, pull.merge_commit_sha) == (True, "closed", commit)
    assert [file.filename for file in pull.get_files()] == ["a.h"]
    assert [file.filename for file in repository.get_commit(commit).files] == ["a.h"]


def test_one_branch_has_one_open_pull_request(
    github_fake: GitHubFake, repository: Repository
) -> None:
    first = github_fake.repository.refs["refs/heads/main"]
    github_fake.person("alice").pushes({"pin": "1"}, "pin/nightly")
    pull = repository.create_pull(base="main", head="pin/nightly", title="Pin", body="")
    with pytest.raises(github.GithubException, match="already exists"):
        repository.create_pull(base="main", head="pin/nightly", title="Pin", body="")
    found = repository.get_pulls(head="octo-org:pin/nightly", base="main")
    assert [p.number for p in found] == [pull.number]
    pull.edit(title="Pin it", body="Because")
    repository.get_git_ref("heads/pin/nightly").edit(first, force=True)
    assert repository.get_pull(pull.number).state == "closed"  # nothing is left of it


def test_commits_are_compared_from_where_they_parted(
    github_fake: GitHubFake, repository: Repository
) -> None:
    alice = github_fake.person("alice")
    alice.pushes({"topic.h": "1"}, "topic")
    alice.pushes({"main.h": "1"})
    found = repository.compare("main", "topic")
    assert (found.status, found.ahead_by, found.behind_by) == ("diverged", 1, 1)
    assert [file.filename for file in found.files] == ["topic.h"]
    with pytest.raises(github.UnknownObjectException):
        repository.compare("main", "nowhere")


def test_artifacts_come_from_another_host_that_wants_no_token(
    github_fake: GitHubFake, repository: Repository
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("verdict.json", "{}")
    world, ours = github_fake.world, github_fake.repository
    issue = github_fake.open_pull({"a.h": "1"})
    assert issue.pull
    run = world.add_run(
        ours, issue.pull.head_sha, head_branch="topic", head_repository="contributor/puone"
    )
    artifact = world.add_artifact(ours, run, "verdict", archive.getvalue())
    found = repository.get_workflow_run(run.id)
    assert (found.head_sha, found.pull_requests) == (issue.pull.head_sha, [])  # it is a fork
    (listed,) = found.get_artifacts()
    auth = {"Authorization": f"Bearer {github_fake.token}"}
    sent = requests.get(listed.archive_download_url, headers=auth, timeout=9)
    assert sent.content == archive.getvalue()
    assert sent.url.startswith(github_fake.storage_url)
    requests.get(sent.url, headers=auth, timeout=9)
    (violation,) = github_fake.violations
    github_fake.violations.clear()
    assert "a token was sent to the host of downloads" in violation
    artifact.expired = True
    assert requests.get(listed.archive_download_url, headers=auth, timeout=9).status_code == 410


def test_whatever_has_a_url_is_found_there(github_fake: GitHubFake, repository: Repository) -> None:
    world, ours = github_fake.world, github_fake.repository
    github_fake.person("alice").pushes({".github/workflows/pr.yml": "on: push"})
    pull = repository.get_pull(github_fake.open_pull({"a.h": "1"}).number)
    run = world.add_run(ours, pull.head.sha)
    world.add_artifact(ours, run, "verdict", b"")
    issue = pull.as_issue()
    issue.add_to_labels("x/y")
    commit = repository.get_git_commit(ours.refs["refs/heads/main"])
    things: list[Any] = [
        *(repository, pull, issue, issue.create_comment("c"), repository.get_label("x/y")),
        *(repository.create_check_run("gate", pull.head.sha), pull.user, pull.head.repo),
        *(repository.get_workflow_run(run.id), *repository.get_artifacts(), commit),
        *(commit.tree, *repository.get_git_tree("main").tree, repository.get_contents("README.md")),
        *(repository.get_commit("main"), repository.get_workflow("pr.yml")),
    ]
    auth = {"Authorization": f"token {github_fake.token}"}
    found = {thing.url: requests.get(thing.url, headers=auth, timeout=9) for thing in things}
    assert len(found) == len(things)
    assert {url for url, answer in found.items() if answer.status_code != 200} == set()


def test_what_is_listed_is_chosen_by_what_is_asked_for(
    github_fake: GitHubFake, repository: Repository
) -> None:
    world, ours = github_fake.world, github_fake.repository
    files = {f".github/workflows/{name}.yml": "on: push" for name in ("pr", "nightly")}
    main = github_fake.person("alice").pushes(files)
    first = world.add_run(ours, main, event="push", conclusion="failure")
    second = world.add_run(ours, main, path=".github/workflows/nightly.yml", event="schedule")
    world.add_artifact(ours, first, "a", b"")
    world.add_artifact(ours, second, "b", b"")
    assert [run.id for run in repository.get_workflow_runs()] == [second.id, first.id]
    assert [run.id for run in repository.get_workflow_runs(event="push")] == [first.id]
    assert [run.id for run in repository.get_workflow_runs(status="failure")] == [first.id]
    nightly = repository.get_workflow("nightly.yml")
    assert [run.id for run in nightly.get_runs()] == [second.id]
    assert [artifact.name for artifact in repository.get_artifacts("b")] == ["b"]
    assert [commit.sha for commit in repository.get_commits()] == [*world.objects.history(main)]


def test_issues_are_opened_labelled_and_listed(repository: Repository) -> None:
    first = repository.create_issue("One", "body", labels=["a", "b"])
    second = repository.create_issue("Two")
    first.set_labels("b", "c")
    second.edit(state="closed")
    assert [label.name for label in first.get_labels()] == ["b", "c"]
    assert [issue.number for issue in repository.get_issues()] == [first.number]
    assert [issue.number for issue in repository.get_issues(state="all", labels=["c"])] == [1]
    assert [issue.number for issue in repository.get_issues(state="closed")] == [2]


def test_the_commits_of_a_pull_request_are_its_own(
    github_fake: GitHubFake, repository: Repository
) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number
    second = github_fake.person("alice").pushes_to_pull(number, {"b.h": "1"})
    commits = [commit.sha for commit in repository.get_pull(number).get_commits()]
    assert len(commits) == 2 and commits[1] == second


def test_dispatches_are_kept_for_whom_they_concern(
    github_fake: GitHubFake, repository: Repository
) -> None:
    assert repository.create_repository_dispatch("upstream", {"sha": "1"})
    github_fake.person("alice").pushes({".github/workflows/nightly.yml": "on: push"})
    assert repository.get_workflow("nightly.yml").create_dispatch("main", {"pin": "newest"})
    assert github_fake.repository.dispatches == [("upstream", {"sha": "1"})]
    wanted = [("nightly.yml", "main", {"pin": "newest"})]
    assert github_fake.repository.workflow_dispatches == wanted


def test_payloads_are_github_s_own_about_what_is_here(github_fake: GitHubFake) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number
    opened = github_fake.payload("pull_request", "opened", number=number)
    assert opened["pull_request"]["head"]["repo"]["full_name"] == "contributor/puone"
    assert opened["repository"]["full_name"] == "octo-org/puone"
    assert opened["number"] == number
    assert "_links" in opened["pull_request"] and "requested_teams" in opened["pull_request"]
    commit = github_fake.person("maintainer").merges(number)
    pushed = github_fake.payload("push")
    assert (pushed["after"], len(pushed["commits"])) == (commit, 2)
    run = github_fake.world.add_run(github_fake.repository, commit, event="push")
    ended = github_fake.payload("workflow_run", "completed", run=run)
    assert ended["workflow_run"]["id"] == run.id
    sent = github_fake.payload("repository_dispatch", "upstream", client_payload={"a": 1})
    assert (sent["action"], sent["client_payload"]) == ("upstream", {"a": 1})


def test_an_idempotent_program_converges(
    github_fake: GitHubFake, converges: Callable[..., None]
) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number

    def run() -> None:
        issue = client(github_fake).get_repo("octo-org/puone").get_issue(number)
        if "x" not in {label.name for label in issue.get_labels()}:
            issue.add_to_labels("x")
        if not list(issue.get_comments()):
            issue.create_comment("Hello")

    converges(run)
    assert github_fake.repository.issues[number].labels == ["x"]


def test_a_program_that_repeats_itself_does_not_converge(
    github_fake: GitHubFake, converges: Callable[..., None], tmp_path: Path
) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number
    done = tmp_path / "done"

    def comments_until_it_knows() -> None:
        issue = client(github_fake).get_repo("octo-org/puone").get_issue(number)
        if not done.exists():
            issue.create_comment("Hello")
        done.touch()

    reset = done.unlink
    done.touch()
    with pytest.raises(AssertionError, match=r"killed after call 3 \(issues/create-comment\)"):
        converges(comments_until_it_knows, reset=lambda: reset(missing_ok=True))
