# SPDX-License-Identifier: BSD-3-Clause
"""Propose the newest suitable torch: one pull request per pin, on the branch pin/NAME. The branch
is reused, and always has one commit on top of the base. The pins are read from the base on GitHub.

A version that was declined (its pull request was closed) or reverted is not proposed again. A
branch with commits of other people is not changed. A pull request is closed if its version was
yanked, or if the base already has it.
"""

from __future__ import annotations

import argparse
import functools
import sys

from torch_backend_ci.errors import Exit
from torch_backend_ci.github import access, proposal
from torch_backend_ci.github.change import perform
from torch_backend_ci.github.proposal import Place, Proposal
from torch_backend_ci.output import printable, say
from torch_backend_ci.pin import changes, file, pull_request
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.pin.update import Decision, Wish
from torch_backend_ci.pin.verbs import update
from torch_backend_ci.pin.verbs.each import each
from torch_backend_ci.surface.verbs.arguments import add_cache

EXAMPLES = """\
The token needs `contents: write` and `pull-requests: write`. GitHub starts no workflow for a pull
request that was opened with a workflow's own token: use the token of an app, or close and reopen
it.

examples:
  torch-backend-ci pin open-pr --repo OWNER/NAME --dry-run     the diff, and what would be sent
  torch-backend-ci pin open-pr newest nightly
  torch-backend-ci pin open-pr development --to 2.14.1         also if it was declined before

Exit status: 0 success; 1 only a person can repair a pin; 2 an index or GitHub does not answer.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `update`, and where to."""
    access.add_arguments(parser)
    parser.add_argument("--base", metavar="BRANCH", help="default: the default branch")
    update.add_wish(parser)
    parser.add_argument(
        "--no-surface-diff",
        action="store_true",
        help="do not compare the two torches for the text of the pull request",
    )
    add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Each pin by itself."""
    names = args.pins or file.names(args.root)
    wish = update.wish_of(args, names)
    at = proposal.place(access.repository(args), args.base)
    return each(names, lambda name: _propose(name, at, wish, args))


def _propose(name: str, at: Place, wish: Wish, args: argparse.Namespace) -> Exit:
    read = functools.cache(at.read)
    before = file.parse(name, read(file.place(name)), f"{at.base}:{file.place(name)}")
    decision = update.decided(before, wish)
    say(printable(decision.says))
    changed = changes.changes(decision.pin, read)
    branch = f"pin/{name}"
    if changed:
        proposed = _proposal(branch, before, decision, changed, args)
        plan = proposal.propose(at, proposed, insist=wish.to is not None)
    else:
        plan = proposal.withdraw(at, branch, pull_request.withdrawn(decision))
    say(printable(f"{name}: {plan.says}"))
    if args.dry_run and plan.changes:
        sys.stdout.write(changes.diff(changed, read))
    perform(plan.changes, args.dry_run)
    return Exit.FINDINGS if decision.stuck else Exit.OK


def _proposal(
    branch: str,
    before: Pin,
    decision: Decision,
    changed: dict[str, bytes],
    args: argparse.Namespace,
) -> Proposal:
    def body() -> str:
        skipped = args.no_surface_diff
        compared = "" if skipped else pull_request.compared(before, decision.pin, args.cache)
        return pull_request.body(before, decision, compared)

    return Proposal(
        branch,
        pull_request.key(decision.pin),
        changed,
        pull_request.title(before, decision.pin),
        body,
    )
