# SPDX-License-Identifier: BSD-3-Clause
"""The patch of an event: of a PR, of a push, of the first push, of one that throws history away."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit

Step = Callable[..., tuple[int, str, str]]
NOBODY = "0" * 40


def git(folder: Path, *words: str) -> str:
    me = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *me, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, content: bytes) -> str:
    (folder / "a.h").write_bytes(content)
    git(folder, "add", "a.h")
    git(folder, "commit", "--quiet", "--message=m")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
def step(tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    """Runs `patch` in a fresh checkout; its status, the added lines and the output `base`."""

    def run(event: str, payload: dict[str, Any], depth: int) -> tuple[int, str, str]:
        checkout, file, outputs = (tmp_path / n for n in ("checkout", "event.json", "outputs"))
        options = [f"--depth={depth}"] if depth else []
        git(tmp_path, "clone", "--quiet", *options, f"file://{origin}", str(checkout))
        file.write_text(json.dumps(payload))
        outputs.write_text("")
        monkeypatch.chdir(checkout)
        monkeypatch.setenv("GITHUB_EVENT_NAME", event)
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(file))
        monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
        status = main(["patch", "-o", "change.patch"])
        written = Path("change.patch")
        text = written.read_bytes().decode("latin-1") if written.exists() else ""
        added = [
            line[1:] for line in text.splitlines() if line.startswith("+") and "++" not in line
        ]
        said = outputs.read_text().splitlines()
        return status, "".join(added), said[1] if said else ""

    return run


def push(before: str, after: str, **more: bool) -> dict[str, Any]:
    flags = {"created": before == NOBODY, "deleted": False, "forced": False} | more
    about = {"full_name": "octo-org/puone", "default_branch": "main"}
    return {"ref": "refs/heads/main", "before": before, "after": after, "repository": about} | flags


def test_of_a_push_it_is_all_of_its_commits(origin: Path, step: Step) -> None:
    before = commit(origin, b"1\n")
    commit(origin, b"1\n2\n")
    after = commit(origin, b"1\n2\n3\n")
    assert step("push", push(before, after), 0) == (Exit.OK, "23", before)


def test_of_the_first_push_of_a_history_it_is_the_last_commit(origin: Path, step: Step) -> None:
    parent = commit(origin, b"1\n")
    after = commit(origin, b"1\n2\n")
    assert step("push", push(NOBODY, after), 2) == (Exit.OK, "2", parent)


def test_of_the_first_commit_of_all_it_is_everything(origin: Path, step: Step) -> None:
    after = commit(origin, b"1\n")
    status, added, base = step("push", push(NOBODY, after), 0)
    assert (status, added) == (Exit.OK, "1")
    assert git(origin, "ls-tree", base) == ""


def test_of_a_forced_push_whose_past_is_gone_it_is_the_last_commit(
    origin: Path, step: Step
) -> None:
    parent = commit(origin, b"1\n")
    gone = commit(origin, b"1\nlost\n")
    git(origin, "reset", "--quiet", "--hard", parent)
    after = commit(origin, b"1\n2\n")
    git(origin, "reflog", "expire", "--expire=now", "--all")
    git(origin, "gc", "--quiet", "--prune=now")
    assert step("push", push(gone, after, forced=True), 0) == (Exit.OK, "2", parent)


def test_of_a_pull_request_it_is_what_the_merge_changes_in_the_base(
    origin: Path, step: Step
) -> None:
    commit(origin, b"1\n")
    git(origin, "checkout", "--quiet", "-b", "change")
    head = commit(origin, b"1\n2\n")
    git(origin, "checkout", "--quiet", "main")
    (origin / "b.h").write_text("of main\n")
    git(origin, "add", "b.h")
    git(origin, "commit", "--quiet", "--message=m")
    base = git(origin, "rev-parse", "HEAD")
    git(origin, "merge", "--quiet", "--no-ff", "--message=m", "change")
    said = {"full_name": "octo-org/puone"}
    pull = {
        "number": 1,
        "merged": False,
        "merge_commit_sha": None,
        "head": {"sha": head, "ref": "change", "repo": said},
        "base": {"sha": base, "ref": "main", "repo": said},
    }
    event = {"action": "opened", "number": 1, "pull_request": pull, "repository": said}
    assert step("pull_request", event, 2) == (Exit.OK, "2", base)


def test_bytes_that_are_no_text_are_kept(origin: Path, step: Step) -> None:
    before = commit(origin, b"1\n")
    after = commit(origin, b"1\n\xe9\n")
    assert step("push", push(before, after), 0)[1] == "\xe9"


def test_without_an_event_there_is_no_patch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
    assert main(["patch", "-o", str(tmp_path / "x")]) == Exit.UNUSABLE
