# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci publish`: put files on a branch that holds data and no code."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.github import access, branch
from torch_backend_ci.github.change import perform
from torch_backend_ci.output import say

DESCRIPTION = """
Commit the files of a directory to a branch that contains only data, such as `results`. Other files
on the branch stay. A missing branch is created, without the history of the code. If nothing
differs, nothing is sent. Concurrent commands both succeed.
"""
EXAMPLES = """
example:
  torch-backend-ci publish --repo me/mine --branch results --from reports \\
      --into nightly/2026-11-21 --message "Results of 2026-11-21" --dry-run

The token needs the permission `contents: write`. The default branch is refused.
Exit status: 0 the branch has the files; 2 they cannot be read, or GitHub answers with an error.
"""
_MAX_FILES = 2000
_MAX_TOTAL = 200 << 20  # bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--branch", required=True, metavar="NAME", help="created if missing")
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        required=True,
        metavar="DIR",
        help="the files to publish",
    )
    parser.add_argument(
        "--into", default="", metavar="DIR", help="directory of the branch (default: its root)"
    )
    parser.add_argument("--message", required=True, metavar="M", help="commit message")
    access.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the directory, then send the files that differ."""
    prefix = f"{args.into.strip('/')}/".removeprefix("/")
    files = {prefix + name: content for name, content in read(args.folder).items()}
    repo = access.repository(args)
    if not perform(branch.publish(repo, args.branch, files, args.message), args.dry_run):
        say(f"branch {args.branch} has all of it already")
    return Exit.OK


def read(folder: Path) -> dict[str, bytes]:
    """The files below a directory by their paths in it; CiError if there is nothing to publish."""
    try:
        files = {path: path.read_bytes() for path in _files(folder)}
    except OSError as error:
        raise CiError(f"cannot read {folder}: {error.strerror}") from error
    if not files:
        raise CiError(f"{folder} has no files to publish")
    return {path.relative_to(folder).as_posix(): content for path, content in files.items()}


def _files(folder: Path) -> list[Path]:
    """All files, if their number and size are within limits; no links, which may lead anywhere."""
    if not folder.is_dir():
        raise CiError(f"{folder} is not a directory")
    found = []
    for root, folders, names in os.walk(folder):
        paths = [Path(root, name) for name in (*folders, *names)]
        if links := [path for path in paths if path.is_symlink()]:
            raise CiError(f"{links[0]} is a link: only files are published")
        found += [Path(root, name) for name in names]
        if len(found) > _MAX_FILES:
            raise CiError(f"{folder} has more than {_MAX_FILES} files")
    if sum(path.stat().st_size for path in found) > _MAX_TOTAL:
        raise CiError(f"{folder} has more than {_MAX_TOTAL >> 20} MiB")
    return sorted(found)
