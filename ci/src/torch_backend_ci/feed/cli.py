# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci feed`: tell out-of-tree backends of what was merged."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from github.Repository import Repository

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.feed import feed
from torch_backend_ci.feed.entry import Entry, Merged, attributed, make
from torch_backend_ci.feed.merged import commits_of, merged_by
from torch_backend_ci.github import access, branch, event
from torch_backend_ci.github.change import Change, perform
from torch_backend_ci.label import apply, rules
from torch_backend_ci.label.plan import PlannedLabel
from torch_backend_ci.output import say
from torch_backend_ci.surface.report import Report
from torch_backend_ci.surface.report import json as findings_json

BRANCH = "feed"
DESCRIPTION = """
Announce merged changes of a surface or of the reference backend to out-of-tree backends. Each such
PR gets labels and an entry in feed.json and feed.atom on the branch `feed`, with the declarations
before and after, and what to do about them (RFC-0030). Reverts get entries too.
"""
EXAMPLES = """
examples:
  torch-backend-ci feed add --push --findings findings.json      # in a workflow `on: push`
  torch-backend-ci feed add --repo me/mine --commit 0123abcd... --dry-run

Without findings the entries say that the change was not checked. An existing entry is not added
again. The token needs `contents: write` and, for the labels, `issues: write` and
`pull-requests: write`.
Exit status: 0 the feed is up to date; 2 an input cannot be read, or GitHub answers with an error.
"""
_SHA = re.compile(r"[0-9a-f]{40}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`feed` has one sub-verb."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    line = "add the merged changes of a push to the feed, and label them"
    sub = subverbs.add_parser(
        "add",
        help=line,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = sub.add_mutually_exclusive_group(required=True)
    what.add_argument("--push", action="store_true", help="the push that this workflow runs for")
    what.add_argument("--commit", type=_commit, metavar="SHA", help="one commit")
    sub.add_argument(
        "--findings",
        type=Path,
        metavar="F",
        help="JSON of `surface check` for the whole push; a missing file means that the push could "
        "not be checked",
    )
    access.add_arguments(sub)
    sub.set_defaults(run=_add)


def _add(args: argparse.Namespace) -> int:
    push = event.load() if args.push else None
    if push is not None and not isinstance(push, event.PushEvent):
        raise CiError("--push goes with the event `push`; name a commit with --commit SHA")
    found = _findings(args.findings)
    the_rules = rules.load()
    repo = access.repository(args)
    with access.failures("tell of what was merged"):
        _tell(repo, push, args, found, the_rules)
    return Exit.OK


def _tell(
    repo: Repository,
    push: event.PushEvent | None,
    args: argparse.Namespace,
    found: Report | None,
    the_rules: rules.Rules,
) -> None:
    findings = None if found is None else found.findings
    not_covered = () if found is None else found.not_covered
    commits = commits_of(repo, push) if push else [args.commit]
    changes = merged_by(repo, commits)
    told = [
        (change, *make(change, its_findings, the_rules, not_covered))
        for change, its_findings in zip(changes, attributed(findings, changes), strict=True)
    ]
    for change, entry, _ in told:
        if entry is None:
            say(f"#{change.pr} touches no surface, nor the reference backend: no entry")
    perform(_changes(repo, told, the_rules), args.dry_run)


def _changes(
    repo: Repository,
    told: Sequence[tuple[Merged, Entry | None, Sequence[PlannedLabel]]],
    the_rules: rules.Rules,
) -> Iterator[Change]:
    """The feed first: labels are of no use to who does not hear of the change."""
    entries = [entry for _, entry, _ in told if entry is not None]
    if entries:
        names = ", ".join(f"#{entry.pr}" for entry in entries)
        yield from branch.update(
            repo,
            BRANCH,
            lambda state: feed.added(state.read(feed.JSON), entries, repo.html_url),
            f"Add {names}",
        )
    for change, entry, planned in told:
        if entry is not None:
            yield from apply.changes(repo, change.pr, planned, the_rules)


def _findings(file: Path | None) -> Report | None:
    """None if nobody looked for any, or could not: the news must not be lost with them."""
    if file is None:
        return None
    if not file.exists():
        say(f"warning: {file} is not there: the entries say that nobody looked for findings")
        return None
    return findings_json.read(file)


def _commit(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a full commit: give its 40 digits")
    return text
