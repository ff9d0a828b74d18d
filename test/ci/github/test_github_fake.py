# SPDX-License-Identifier: BSD-3-Clause
"""The fake of GitHub: GitHub's rules, both sides held to GitHub's description, and its faults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import github
import pytest
import requests
from github.PullRequest import PullRequest
from github.Repository import Repository
from github_fake import BOT, GitHubFake, Person
from github_fake.description import load
from github_fake.handling import ROUTES
from github_fake.world import World
from github_fixtures import Verb

PAGE = "docs/ci/fake-github.md"
# Words of its table that are arguments, fields or fixtures.
ARGUMENTS = ("times", "after", "applied", "download", "calls", "world", "github_event", "state")


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
    run = {"name": "n", "head_sha": "0" * 40, "completed_at": "yesterday", "status": "over"}
    requests.post(f"{url}/check-runs", json=run, headers=auth, timeout=9)
    requests.get(f"{url}/lables", headers=auth, timeout=9)
    requests.get(f"{url}/hooks", headers=auth, timeout=9)
    said = "\n".join(github_fake.violations)
    github_fake.violations.clear()
    assert "'per_pgae' is not described" in said
    assert "'colour' is not described" in said
    assert "'yesterday' is not a 'date-time'" in said
    assert "'over' is not one of ['queued', 'in_progress', 'completed']" in said
    assert "'name' is a required property" in said
    assert "GitHub describes no such operation" in said
    assert "repos/list-webhooks: the fake has no handler for it" in said


def test_permissions_are_those_that_github_knows() -> None:
    schema = load().document["components"]["schemas"]["app-permissions"]["properties"]
    wanted = {need for route in ROUTES.values() for need in route.needs}
    assert wanted
    assert all(level in schema[what]["enum"] for what, level in wanted)


def test_handlers_are_of_operations_that_github_describes() -> None:
    assert ROUTES.keys() <= load().operations.keys()


def test_a_request_without_a_token_is_refused(github_fake: GitHubFake) -> None:
    url = f"{github_fake.url}/repos/octo-org/puone"
    said = [requests.get(url, headers=h, timeout=9) for h in ({}, {"Authorization": "token x"})]
    assert [answer.status_code for answer in said] == [401, 401]
    assert [a.json()["message"] for a in said] == ["Requires authentication", "Bad credentials"]


def test_a_list_says_which_pages_there_are(github_fake: GitHubFake) -> None:
    for number in range(70):
        github_fake.world.define_label(github_fake.repository, f"label {number}")
    auth = {"Authorization": f"token {github_fake.token}"}
    url = f"{github_fake.url}/repos/octo-org/puone/labels"
    second = requests.get(f"{url}?page=2", headers=auth, timeout=9)
    assert len(second.json()) == 30
    pages = {name: link["url"].partition("?")[2] for name, link in second.links.items()}
    assert pages == {"prev": "page=1", "first": "page=1", "next": "page=3", "last": "page=3"}
    third = requests.get(f"{url}?page=3&per_page=1000", headers=auth, timeout=9)
    assert third.json() == []  # a hundred is the most that a page has


def test_somebody_acts_between_two_calls(github_fake: GitHubFake, repository: Repository) -> None:
    pull = opened(github_fake, repository)
    alice = github_fake.person("alice")
    github_fake.before("issues/add-labels", lambda: alice.adds_label(pull.number, "hers"))
    github_fake.after("issues/add-labels", lambda: alice.removes_label(pull.number, "ours"))
    pull.add_to_labels("ours")
    assert [label.name for label in pull.get_labels()] == ["hers"]


def test_the_world_goes_back_to_a_checkpoint(
    github_fake: GitHubFake, repository: Repository
) -> None:
    number = github_fake.open_pull({"a.h": "1"}).number
    before, kept = github_fake.state(), github_fake.checkpoint()
    repository.get_issue(number).create_comment("Hello")
    github_fake.person("alice").merges(number)
    assert github_fake.state() != before
    for _ in range(2):
        github_fake.restore(kept)
        assert github_fake.state() == before
        repository.create_label("x", "aabbcc")


def test_what_was_seen_does_not_change_with_the_world(
    github_fake: GitHubFake, repository: Repository
) -> None:
    check = repository.create_check_run("gate", repository.get_branch("main").commit.sha)
    before = github_fake.state()
    check.edit(output={"title": "t", "summary": "s"})
    assert github_fake.state() != before


def test_a_pull_request_follows_its_branch(github_fake: GitHubFake, repository: Repository) -> None:
    alice = github_fake.person("alice")
    number = github_fake.open_pull({"a.h": "1"}).number
    first = repository.get_pull(number).head.sha
    second = alice.pushes_to_pull(number, {"b.h": "1"})
    forced = alice.pushes_to_pull(number, {"c.h": "1"}, force=True)
    pull = repository.get_pull(number)
    assert pull.head.sha == forced and len({first, second, forced}) == 3
    assert [file.filename for file in pull.get_files()] == ["c.h"]
    alice.deletes_fork(number)
    assert repository.get_pull(number).head.repo is None


def test_what_somebody_pushes_himself_counts_as_merged(
    github_fake: GitHubFake, repository: Repository
) -> None:
    alice = github_fake.person("alice")
    alice.pushes({"a.h": "1"}, "topic")
    pull = repository.create_pull(base="main", head="topic", title="t", body="b")
    repository.get_git_ref("heads/main").edit(pull.head.sha)
    found = repository.get_pull(pull.number)
    assert (found.state, found.merged) == ("closed", True)
    events = [event.event for event in found.as_issue().get_timeline()]
    assert events == ["merged", "closed"]


def test_the_example_in_the_documents_runs(github_fake: GitHubFake, verb: Verb, root: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (root / PAGE).read_text(), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    scope["test_a_label_that_alice_took_away_stays_away"](github_fake, verb)


def test_what_the_documents_name_is_there(root: Path) -> None:
    rows = re.findall(r"^\| (?!To )[^|]+ \| (.*) \|$", (root / PAGE).read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z_.]+)", row)]
    assert len(named) > 25
    known = {*dir(GitHubFake), *dir(Person), *dir(World), *ARGUMENTS}
    assert [name for name in named if name.removeprefix("world.") not in known] == []
