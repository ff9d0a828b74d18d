# SPDX-License-Identifier: BSD-3-Clause
"""The fake of GitHub: GitHub's rules, both sides held to GitHub's description, and its faults."""

from __future__ import annotations

from typing import Any

import github
import pytest
import requests
from github.PullRequest import PullRequest
from github.Repository import Repository
from github_fake import BOT, GitHubFake


def client(fake: GitHubFake, token: str | None = None) -> github.Github:
    """PyGithub, told nothing but where to go; no retries."""
    return github.Github(
        auth=github.Auth.Token(token or fake.token),
        base_url=fake.url,
        per_page=100,
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


@pytest.fixture
def repository(github_fake: GitHubFake) -> Repository:
    return client(github_fake).get_repo("octo-org/puone")


def opened(fake: GitHubFake, repository: Repository) -> PullRequest:
    return repository.get_pull(fake.open_pull({"a.h": "1\n"}).number)


def test_labels_are_defined_changed_and_taken_away(repository: Repository) -> None:
    label = repository.create_label("module: x/y", "aabbcc", "What it is")
    label.edit("Module: z", "000000", "")
    assert [(x.name, x.color) for x in repository.get_labels()] == [("Module: z", "000000")]
    repository.get_label("module: z").delete()
    assert list(repository.get_labels()) == []


def test_a_label_that_differs_in_case_only_exists_already(repository: Repository) -> None:
    repository.create_label("Bug", "aabbcc")
    with pytest.raises(github.GithubException) as refused:
        repository.create_label("bUG", "aabbcc")
    assert refused.value.status == 422
    assert refused.value.data["errors"][0]["code"] == "already_exists"


def test_the_timeline_says_who_labelled(github_fake: GitHubFake, repository: Repository) -> None:
    pull = opened(github_fake, repository)
    pull.add_to_labels("one", "two/three")
    github_fake.person("alice").removes_label(pull.number, "one")
    pull.as_issue().remove_from_labels("two/three")
    events = [
        (event.event, event.raw_data["label"]["name"], event.actor.login)
        for event in pull.as_issue().get_timeline()
    ]
    assert events == [
        ("labeled", "one", BOT),
        ("labeled", "two/three", BOT),
        ("unlabeled", "one", "alice"),
        ("unlabeled", "two/three", BOT),
    ]


def test_comments_are_made_edited_and_limited(
    github_fake: GitHubFake, repository: Repository
) -> None:
    issue = repository.get_issue(github_fake.person("alice").opens_issue("Help").number)
    comment = issue.create_comment("first")
    comment.edit("second")
    assert [(c.body, c.user.login) for c in issue.get_comments()] == [("second", BOT)]
    with pytest.raises(github.GithubException, match="65536"):
        issue.create_comment("x" * 65_537)
    comment.delete()
    github_fake.person("alice").locks(issue.number)
    with pytest.raises(github.GithubException, match="locked"):
        issue.create_comment("too late")
    assert list(issue.get_comments()) == []


def test_the_files_of_a_pull_request_come_in_pages_and_stop_at_3000(
    github_fake: GitHubFake, repository: Repository
) -> None:
    files = {f"folder{i % 7}/file{i}.h": str(i) for i in range(3_500)}
    pull = repository.get_pull(github_fake.open_pull(files).number)
    assert pull.changed_files == 3_500
    assert len({file.filename for file in pull.get_files()}) == 3_000


def test_a_moved_file_has_its_former_name(github_fake: GitHubFake, repository: Repository) -> None:
    github_fake.person("alice").pushes({"old.h": "content", "gone.h": "1", "kept.h": "1"})
    number = github_fake.open_pull(
        {"old.h": None, "new.h": "content", "gone.h": None, "kept.h": "2"}
    ).number
    files = [
        (file.filename, file.status, file.previous_filename)
        for file in repository.get_pull(number).get_files()
    ]
    assert files == [
        ("gone.h", "removed", None),
        ("kept.h", "modified", None),
        ("new.h", "renamed", "old.h"),
    ]


def test_check_runs_collect_annotations(github_fake: GitHubFake, repository: Repository) -> None:
    pull = opened(github_fake, repository)
    line = {"path": "a.h", "start_line": 1, "end_line": 1, "annotation_level": "failure"}
    output: Any = {"title": "t", "summary": "s", "annotations": [line | {"message": "m"}] * 50}
    check = repository.create_check_run("gate", pull.head.sha, external_id="7", output=output)
    check.edit(conclusion="failure", output=output)
    (found,) = repository.get_commit(pull.head.sha).get_check_runs(check_name="gate")
    assert (found.status, found.conclusion, found.external_id) == ("completed", "failure", "7")
    assert len(list(found.get_annotations())) == 100


def test_a_token_may_do_what_its_permissions_say(github_fake: GitHubFake) -> None:
    token = github_fake.new_token({"issues": "read"})
    repository = client(github_fake, token).get_repo("octo-org/puone")
    assert list(repository.get_labels()) == []
    with pytest.raises(github.GithubException, match="not accessible by integration") as refused:
        repository.create_label("x", "aabbcc")
    assert refused.value.status == 403
    assert refused.value.headers
    needs = refused.value.headers["x-accepted-github-permissions"]
    assert needs == "issues=write; pull_requests=write"


def test_a_workflows_token_writes_to_its_own_repository_only(github_fake: GitHubFake) -> None:
    github_fake.world.add_repository("octo-org/other")
    other = client(github_fake).get_repo("octo-org/other")
    assert list(other.get_labels()) == []
    with pytest.raises(github.GithubException, match="not accessible"):
        other.create_label("x", "aabbcc")


def test_an_expired_token_is_refused(github_fake: GitHubFake) -> None:
    with pytest.raises(github.BadCredentialsException):
        client(github_fake, github_fake.new_token(expired=True)).get_repo("octo-org/puone")


def test_what_github_does_not_describe_is_held_against_the_caller(
    github_fake: GitHubFake,
) -> None:
    auth = {"Authorization": f"token {github_fake.token}"}
    url = f"{github_fake.url}/repos/octo-org/puone"
    requests.get(f"{url}/labels?per_pgae=3", headers=auth, timeout=9)
    requests.post(f"{url}/labels", json={"colour": "aabbcc"}, headers=auth, timeout=9)
    requests.get(f"{url}/lables", headers=auth, timeout=9)
    requests.get(f"{url}/hooks", headers=auth, timeout=9)
    said = "\n".join(github_fake.violations)
    github_fake.violations.clear()
    assert "'per_pgae' is not described" in said
    assert "'colour' is not described" in said
    assert "'name' is a required property" in said
    assert "GitHub describes no such operation" in said
    assert "repos/list-webhooks: the fake has no handler for it" in said
