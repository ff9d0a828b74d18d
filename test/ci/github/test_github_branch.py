# SPDX-License-Identifier: BSD-3-Clause
"""Branches with data: written in one step, by several at once, and by `publish`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from github.Repository import Repository
from github_fake import GitHubFake
from github_fixtures import Verb, writes

from torch_backend_ci import publish
from torch_backend_ci.cli import main, parser
from torch_backend_ci.errors import CiError
from torch_backend_ci.github import access, branch
from torch_backend_ci.github.change import perform

BIG = bytes(range(256)) * 8192  # 2 MiB: more than the contents API gives


@pytest.fixture
def repo(github_fake: GitHubFake) -> Repository:
    words = ["publish", "--branch", "b", "--from", ".", "--message", "m"]
    return access.repository(parser(["publish"]).parse_args(words))


def put(repo: Repository, files: branch.Files, to: str = "data") -> int:
    return perform(branch.publish(repo, to, files, "Say it"), dry_run=False)


def files_of(fake: GitHubFake, name: str = "data") -> Mapping[str, bytes]:
    objects = fake.world.objects
    commit = objects.commits[fake.repository.refs[f"refs/heads/{name}"]]
    return {path: objects.blobs[e.sha] for path, e in objects.files(commit.tree).items()}


def history(fake: GitHubFake, name: str = "data") -> int:
    return len(fake.world.objects.history(fake.repository.refs[f"refs/heads/{name}"]))


def test_a_branch_that_is_not_there_is_made_without_the_history_of_the_code(
    github_fake: GitHubFake, repo: Repository
) -> None:
    assert put(repo, {"a/b/c.json": b"1", "d": BIG}) == 1
    assert files_of(github_fake) == {"a/b/c.json": b"1", "d": BIG}
    assert history(github_fake) == 1


def test_files_are_added_changed_and_removed_in_one_commit(
    github_fake: GitHubFake, repo: Repository
) -> None:
    put(repo, {"kept": b"1", "changed": b"1", "f/removed": b"1"})
    put(repo, {"changed": b"2", "f/removed": None, "f/new": b"3"})
    assert files_of(github_fake) == {"kept": b"1", "changed": b"2", "f/new": b"3"}
    assert history(github_fake) == 2


def test_nothing_is_sent_where_nothing_differs(github_fake: GitHubFake, repo: Repository) -> None:
    put(repo, {"a/b": b"1", "empty": b""})
    github_fake.calls.clear()
    assert put(repo, {"a/b": b"1", "empty": b"", "never/there": None, "a/b/c": None}) == 0
    assert writes(github_fake) == []


def test_only_the_files_that_differ_are_sent(github_fake: GitHubFake, repo: Repository) -> None:
    put(repo, {"a": b"1", "b": b"1"})
    github_fake.calls.clear()
    put(repo, {"a": b"1", "b": b"2"})
    assert writes(github_fake).count("git/create-blob") == 1


def test_files_of_any_size_are_read(github_fake: GitHubFake, repo: Repository) -> None:
    put(repo, {"a/big": BIG, "a/empty": b""})
    assert branch.read(repo, "data", "a/big") == BIG
    assert branch.read(repo, "data", "a/empty") == b""
    assert branch.read(repo, "data", "a") is None
    assert branch.read(repo, "data", "a/none") is None
    assert branch.read(repo, "data", "a/big/none") is None
    assert branch.read(repo, "nowhere", "a") is None
    assert branch.state(repo, "data").names("a") == ["big", "empty"]
    assert branch.state(repo, "data").names("b") == []


# Others at the same time.


def test_who_loses_a_race_adds_to_what_the_winner_made(
    github_fake: GitHubFake, repo: Repository
) -> None:
    put(repo, {"a": b"1"})
    other = github_fake.person("alice")
    github_fake.before("git/update-ref", lambda: other.pushes({"theirs": "2"}, "data"))
    put(repo, {"ours": b"3"})
    assert files_of(github_fake) == {"a": b"1", "theirs": b"2", "ours": b"3"}


def test_two_may_make_the_branch_at_once(github_fake: GitHubFake, repo: Repository) -> None:
    def other() -> None:
        world, repository = github_fake.world, github_fake.repository
        commit = world.commit(world.tree({}, {"theirs": "2"}), [], "First")
        world.move(repository, "refs/heads/data", commit)

    github_fake.before("git/create-ref", other)
    put(repo, {"ours": b"3"})
    assert files_of(github_fake) == {"theirs": b"2", "ours": b"3"}


def test_what_the_winner_did_already_is_not_done_again(
    github_fake: GitHubFake, repo: Repository
) -> None:
    put(repo, {"a": b"1"})
    other = github_fake.person("alice")
    github_fake.before("git/update-ref", lambda: other.pushes({"ours": "3"}, "data"))
    put(repo, {"ours": b"3"})
    assert history(github_fake) == 2


def test_the_edit_is_made_anew_for_what_the_winner_left(
    github_fake: GitHubFake, repo: Repository
) -> None:
    def counted(state: branch.State) -> branch.Files:
        return {"count": b"%d" % (int(state.read("count") or b"0") + 1)}

    def count() -> None:
        perform(branch.update(repo, "data", counted, "Count"), dry_run=False)

    count()
    other = github_fake.person("alice")
    github_fake.before("git/update-ref", lambda: other.pushes({"count": "10"}, "data"))
    count()
    assert files_of(github_fake) == {"count": b"11"}


def test_who_never_wins_gives_up_and_says_so(github_fake: GitHubFake, repo: Repository) -> None:
    put(repo, {"a": b"1"})
    other = github_fake.person("alice")

    def again(number: int) -> None:
        other.pushes({"theirs": str(number)}, "data")
        github_fake.before("git/update-ref", lambda: again(number + 1))

    github_fake.before("git/update-ref", lambda: again(0))
    with pytest.raises(CiError, match="changed by others"):
        put(repo, {"ours": b"3"})
    assert "ours" not in files_of(github_fake)


def test_a_branch_that_may_not_be_written_is_no_lost_race(
    github_fake: GitHubFake, repo: Repository
) -> None:
    put(repo, {"a": b"1"})
    protected = {"message": "Cannot update this protected ref."}
    github_fake.fail_next("git/update-ref", 422, body=protected, times=100)
    with pytest.raises(CiError, match="protected ref"):
        put(repo, {"a": b"2"})
    assert writes(github_fake).count("git/update-ref") == 1


@pytest.mark.parametrize("operation", ["git/create-ref", "git/update-ref"])
def test_an_answer_that_is_lost_makes_no_second_commit(
    github_fake: GitHubFake, repo: Repository, waits: list[float], operation: str
) -> None:
    if operation == "git/update-ref":
        put(repo, {"a": b"1"})
    github_fake.close_connection(operation, applied=True)
    put(repo, {"ours": b"3"})
    assert files_of(github_fake)["ours"] == b"3"
    assert history(github_fake) == (2 if operation == "git/update-ref" else 1)


# What is refused before anything is sent.


def test_the_branch_with_the_code_is_refused(github_fake: GitHubFake, repo: Repository) -> None:
    with pytest.raises(CiError, match="the one with the code"):
        put(repo, {"a": b"1"}, to="main")
    assert writes(github_fake) == []


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a/.", "a b", "a\n", "\u00e9", "a\\b"]
)
def test_odd_paths_are_refused(github_fake: GitHubFake, repo: Repository, path: str) -> None:
    with pytest.raises(CiError, match="not a name for a file"):
        put(repo, {path: b"1"})
    assert writes(github_fake) == []


def test_a_file_that_github_does_not_take_is_refused(
    github_fake: GitHubFake, repo: Repository
) -> None:
    with pytest.raises(CiError, match="41 MiB"):
        put(repo, {"a": bytes(41 << 20)})
    assert writes(github_fake) == []


# The verb.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "reports"
    (made / "deep").mkdir(parents=True)
    (made / "a.json").write_bytes(b"1")
    (made / "deep/b.json.gz").write_bytes(BIG)
    return made


def words(folder: Path, *more: str) -> list[str]:
    return ["publish", "--branch", "results", "--from", str(folder), "--message", "It", *more]


def test_publish_puts_a_folder_on_a_branch(
    github_fake: GitHubFake, verb: Verb, folder: Path
) -> None:
    assert verb(*words(folder, "--into", "nightly/2026-11-21")).status == 0
    assert set(files_of(github_fake, "results")) == {
        "nightly/2026-11-21/a.json",
        "nightly/2026-11-21/deep/b.json.gz",
    }
    ended = verb(*words(folder, "--into", "/nightly/2026-11-21/"))
    assert (ended.status, ended.err) == (0, "branch results has all of it already\n")


def test_publish_only_says_what_it_would_do(
    github_fake: GitHubFake, verb: Verb, folder: Path
) -> None:
    ended = verb(*words(folder, "--dry-run"))
    assert (ended.status, ended.out) == (0, "would put 2 files on branch results: It\n")
    assert writes(github_fake) == []


def a_link(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")


def a_linked_folder(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")


def nothing(folder: Path) -> None:
    (folder / "a.json").unlink()
    (folder / "deep/b.json.gz").unlink()


def too_many(folder: Path) -> None:
    for number in range(5):
        (folder / str(number)).touch()


def too_much(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(201 << 20)


@pytest.mark.parametrize("spoil", [a_link, a_linked_folder, nothing, too_many, too_much])
def test_publish_refuses_what_it_cannot_mean(
    github_fake: GitHubFake,
    verb: Verb,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(publish, "_MAX_FILES", 5)
    spoil(folder)
    assert verb(*words(folder)).status == 2
    assert github_fake.calls == []


def test_publish_says_which_permission_is_missing(
    github_fake: GitHubFake, verb: Verb, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", github_fake.new_token({"contents": "read"}))
    ended = verb(*words(folder))
    assert ended.status == 2
    assert "contents=write" in ended.err


def test_publish_killed_at_any_call_converges(
    github_fake: GitHubFake, converges: Callable[..., None], folder: Path
) -> None:
    converges(lambda: main(words(folder)))
    assert len(files_of(github_fake, "results")) == 2
    assert history(github_fake, "results") == 1
