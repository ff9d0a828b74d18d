# SPDX-License-Identifier: BSD-3-Clause
"""Which pull request a workflow run was for, by what GitHub says and nobody else.

GitHub does not tell for runs of forks. So the PR is looked for by the repository and branch that
the run's head came from, and must have that very commit as its head now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from github.PullRequest import PullRequest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun

from torch_backend_ci.github.change import Change
from torch_backend_ci.output import say


def of_run(repo: Repository, run: WorkflowRun) -> PullRequest | None:
    """The open PR whose head the run was about; None, and said why, if there is not exactly one."""
    source = run.raw_data.get("head_repository")
    if source is None or run.head_branch is None:
        say(f"run {run.id}: the repository that its head came from is gone; nothing is published")
        return None
    head = f"{source['owner']['login']}:{run.head_branch}"
    listed = repo.get_pulls(state="open", head=head)
    ours = [pull for pull in listed if _is_from(repo, pull, source["id"], run.head_branch)]
    current = [pull for pull in ours if pull.head.sha == run.head_sha]
    if not ours:
        say(
            f"run {run.id}: there is no open pull request from {head} any more; "
            "nothing is published"
        )
    elif not current:
        now = ", ".join(f"#{pull.number} is at {pull.head.sha[:12]}" for pull in ours)
        say(f"run {run.id} is outdated: it judged {run.head_sha[:12]}, {now}; nothing is published")
    return _only(run, current)


def while_current(
    repo: Repository, pull: PullRequest, sha: str, changes: Iterable[Change]
) -> Iterator[Change]:
    """The changes, as long as the PR is open and has this head: asked again before each of them."""
    for change in changes:
        now = repo.get_pull(pull.number)
        if now.state != "open" or now.head.sha != sha:
            say(
                f"#{pull.number} is {now.state} at {now.head.sha[:12]} now: "
                "nothing more is published"
            )
            return
        yield change


def _is_from(repo: Repository, pull: PullRequest, source: int, branch: str) -> bool:
    """Whether it leads from this branch of this repository, by its id, to ours."""
    head = pull.raw_data["head"]
    return (
        head["repo"] is not None
        and (head["repo"]["id"], head["ref"]) == (source, branch)
        and pull.raw_data["base"]["repo"]["id"] == repo.id
    )


def _only(run: WorkflowRun, pulls: list[PullRequest]) -> PullRequest | None:
    """Of several PRs of one head to several bases the one that GitHub says the run was for."""
    if len(pulls) > 1:
        named = {pull["number"] for pull in run.raw_data.get("pull_requests") or ()}
        chosen = [pull for pull in pulls if pull.number in named]
        if len(chosen) != 1:
            numbers = ", ".join(f"#{pull.number}" for pull in pulls)
            say(f"run {run.id}: it may have been for any of {numbers}; nothing is published")
            return None
        return chosen[0]
    return pulls[0] if pulls else None
