# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci patch`: what the event of a workflow has changed, as a patch."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.github import actions, event
from torch_backend_ci.output import printable, say, write

DESCRIPTION = """
Write the change that this workflow runs for, as `git diff` has it. Of a pull request it is what its
merge changes in the base. Of a push it is the difference of the commits before and after it; of the
first push to a branch, and of a forced one whose past is not in the checkout, it is the last
commit. The commit that it is a change of is the output `base` of the step.
"""
EXAMPLES = """
example:
  torch-backend-ci patch -o change.patch      # in a checkout with `fetch-depth: 2`, or 0

Exit status: 0 the patch is written; 2 there is no event, or git cannot read the checkout.
"""
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # known to every git


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("-o", "--output", type=Path, metavar="F", required=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find the commit before, then write what differs."""
    base = _base(event.load())
    say(f"the change of {base[:12]}")
    write(args.output, _git("diff", "--no-ext-diff", "--no-textconv", base, "HEAD", "--"))
    actions.set_output("base", base)
    return Exit.OK


def _base(happened: event.Event) -> str:
    """The commit, or the empty tree, that HEAD is compared with."""
    if isinstance(happened, event.PushEvent) and (before := _commit(happened.before)):
        return before
    return _commit("HEAD^1") or _EMPTY_TREE


def _commit(name: str) -> str | None:
    """The commit of this name; None if the checkout does not have it."""
    try:
        found = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return found.decode().strip()
    except CiError:
        return None


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], capture_output=True, check=False)
    if done.returncode:
        said = printable(done.stderr.decode(errors="backslashreplace").strip())
        raise CiError(f"git {words[0]}: {said or 'failed'}")
    return done.stdout
