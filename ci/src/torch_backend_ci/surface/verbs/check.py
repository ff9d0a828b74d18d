# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface check`: what a PR does to backends, without building PyTorch."""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue, snapshot, snapshot_file
from torch_backend_ci.surface.check import change, judge
from torch_backend_ci.surface.check.patch import BYTES_LIMIT
from torch_backend_ci.surface.verbs import arguments
from torch_backend_ci.surface.verbs.diff import add_report_arguments, check_surfaces, conclude
from torch_backend_ci.torch_tree import TorchTree, locate

DESCRIPTION = """
Report what a pull request to PyTorch breaks in out-of-tree backends. The headers, Python files and
operators that it changes are applied to a pinned torch in a temporary directory, and the two are
compared as by `surface diff`. The first line of the output is the verdict: the worst finding,
"none", or "not_covered" if nothing is found and the PR changes a file that no surface covers.
Nothing is built, and no code of the PR is run.
"""
EXAMPLES = """
BASE is a version, a wheel, a directory with a torch installed, a checkout, or a snapshot file. Use
the release nearest to the PR's own base.

examples:
  curl -sL https://github.com/pytorch/pytorch/pull/123456.diff | \\
      torch-backend-ci surface check --base 2.13.0 --patch -
  torch-backend-ci surface check --base .venv --patch fix.diff --format markdown -o comment.md
  torch-backend-ci surface check --base 2.13.0 --tree ~/pytorch --files c10/core/Allocator.h

Exit status: 0 nothing is as severe as --fail-on (default: compile_break); 1 a finding is; 2 the
check was impossible: the patch does not apply, or the base cannot be read; 3 nothing is found, and
a changed file is not covered. A file that the PR makes unreadable is a finding.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--base", required=True, metavar="BASE", help="the pinned torch")
    pr = parser.add_mutually_exclusive_group(required=True)
    pr.add_argument("--patch", metavar="FILE", help="the PR as a patch; - for standard input")
    pr.add_argument("--tree", type=Path, metavar="DIR", help="a checkout with the PR")
    parser.add_argument(
        "--files",
        nargs="+",
        metavar="PATH",
        help="with --tree: judge only these files of the repository (default: all that differ)",
    )
    add_report_arguments(parser)
    arguments.add_cache(parser)
    parser.set_defaults(run=run, fail_on="compile_break")


def run(args: argparse.Namespace) -> int:
    """Judge and report."""
    check_surfaces(args.surface)
    if args.files and not args.tree:
        raise CiError("--files goes with --tree")
    data = _read(args.patch) if args.patch else b""
    tree = base(args.base, args.cache)
    known = catalogue.load()
    if args.patch:
        changed = change.of_patch(tree, data)
        name = "the patch" if args.patch == "-" else Path(args.patch).name
    else:
        changed = change.of_checkout(tree, args.tree, args.files)
        name = str(args.tree)
    pinned = judge.Base(tree, lambda: snapshot.take(tree, args.cache, catalogue=known), args.cache)
    report = judge.judge(pinned, changed, name, known, output.say)
    output.say(f"{_computed():.0f} s of computing, on all cores together")
    return conclude(report, args)


def _computed() -> float:
    """The CPU time of this process and of those that it waited for, in seconds."""
    own, others = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def base(where: str, cache: Path) -> TorchTree:
    """The torch of the base; of a snapshot, the version that it is of."""
    if where.endswith((".json", ".json.gz")) and Path(where).is_file():
        where = snapshot_file.read(Path(where)).torch.version
    return locate(where, cache)


def _read(where: str) -> bytes:
    """The patch; not more of it than is bearable."""
    try:
        with open(0 if where == "-" else where, "rb", closefd=where != "-") as file:
            return file.read(BYTES_LIMIT + 1)
    except OSError as error:
        raise CiError(f"cannot read {where}: {error.strerror}") from error
