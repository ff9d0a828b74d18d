# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci report`: publish the results of an unprivileged workflow run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from github.PullRequest import PullRequest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.gate import policy
from torch_backend_ci.github import access, check_run, sticky
from torch_backend_ci.github.access import failures
from torch_backend_ci.github.change import Change, perform
from torch_backend_ci.github.pull_request import files_of
from torch_backend_ci.label import apply, rules
from torch_backend_ci.output import say
from torch_backend_ci.report import baseline, page, pull
from torch_backend_ci.report.evidence import Unbelievable, gather
from torch_backend_ci.surface.report import Report

WORKFLOW = ".github/workflows/pr.yml"
# What a run waits for the approval of a maintainer with, and ends with if no job is for it.
NOT_RUN = ("action_required", "skipped")
DESCRIPTION = """
Publish the results of a run of pr.yml, which runs the code of a pull request and has no write
permission. A pull request gets labels, a check run on its head commit, and one comment, which is
created if there is something to report, and edited in place. After a push to the default branch,
the reports become the new baseline on the branch `results`.
"""
EXAMPLES = """
GitHub's API, not the run, says which pull request the run belongs to and whether its head commit
is still the same. The run's artifact is used only if it is a valid verdict on that commit
(docs/ci/pull-requests.md). Nothing is published for an outdated run.

example:
  torch-backend-ci report --repo me/mine --run-id 123456789 --dry-run

The token needs `actions: read` and, for a pull request, `checks: write`, `issues: write` and
`pull-requests: write`; for a baseline `contents: write`.
Exit status: 0 published, whatever the verdict, or outdated; 2 GitHub answers with an error, or the
run belongs to another workflow.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "--run-id", type=_number, required=True, metavar="N", help="id of the run of pr.yml"
    )
    parser.add_argument(
        "--workflow",
        default=WORKFLOW,
        metavar="PATH",
        help="the run must belong to this workflow (default: %(default)s)",
    )
    access.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find out what the run was for, and tell."""
    repo = access.repository(args)
    with failures(f"tell of run {args.run_id}"):
        _tell(repo, args)
    return Exit.OK


def _tell(repo: Repository, args: argparse.Namespace) -> None:
    the_run = repo.get_workflow_run(args.run_id)
    # GitHub adds the ref to the path where the workflow was called from elsewhere.
    if the_run.path.partition("@")[0] != args.workflow:
        raise CiError(f"run {args.run_id} is of {the_run.path}, not of {args.workflow}")
    if the_run.status != "completed":
        say(f"run {args.run_id} has not ended: its result is published when it has")
    elif the_run.conclusion in NOT_RUN:
        say(f"run {args.run_id} did not run ({the_run.conclusion}): there is nothing to tell")
    elif the_run.event == "pull_request":
        _tell_pull_request(repo, the_run, args.dry_run)
    elif _is_of_default_branch(repo, the_run):
        perform(baseline.changes(repo, the_run, policy.load().lanes), args.dry_run)
    else:
        say(f"run {args.run_id} was neither for a pull request nor of {repo.default_branch}")


def _is_of_default_branch(repo: Repository, the_run: WorkflowRun) -> bool:
    source = the_run.raw_data["head_repository"]
    return (
        the_run.event == "push"
        and the_run.head_branch == repo.default_branch
        and source is not None
        and source["id"] == repo.id
    )


def _tell_pull_request(repo: Repository, the_run: WorkflowRun, dry_run: bool) -> None:
    about = pull.of_run(repo, the_run)
    if about is not None:
        told = _changes(repo, about, the_run)
        perform(pull.while_current(repo, about, the_run.head_sha, told), dry_run)


def _changes(repo: Repository, about: PullRequest, the_run: WorkflowRun) -> Iterator[Change]:
    the_rules = rules.load()
    facts = page.Run(
        the_run.id, the_run.head_sha, the_run.conclusion or "unfinished", the_run.html_url
    )
    try:
        evidence = gather(repo, the_run, the_rules.surfaces)
    except Unbelievable as error:
        say(f"run {the_run.id}: {error}")
        told = page.told_without(facts, str(error))
    else:
        told = page.told(facts, evidence, _names(about))
        yield from _labels(repo, about, evidence.findings, the_rules)
    yield from check_run.changes(repo, told.check)
    issue = repo.get_issue(about.number)
    yield from sticky.changes(issue, page.MARKER, told.comment, begin=told.news)


def _labels(
    repo: Repository,
    about: PullRequest,
    found: Report | None,
    the_rules: rules.Rules,
) -> Iterator[Change]:
    findings = None if found is None else found.findings
    not_covered = () if found is None else found.not_covered
    planned = apply.planned_labels(repo, about.number, findings, the_rules, not_covered)
    yield from apply.changes(repo, about.number, planned, the_rules)


def _names(about: PullRequest) -> set[str]:
    """The files that the PR leaves changed: where an annotation can be seen."""
    return {file.name for file in files_of(about).files}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 53):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of a run")
    return int(text)
