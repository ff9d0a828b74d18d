# SPDX-License-Identifier: BSD-3-Clause
"""A pull request: the argument that names it, and the files that it changes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from github.PullRequest import PullRequest

from torch_backend_ci import changed_files
from torch_backend_ci.changed_files import ChangedFile

_MAX_NUMBER = 1 << 53  # beyond which numbers in JSON are not exact


@dataclass(frozen=True)
class ChangedFiles:
    """What GitHub lists; `truncated` if its list ends where GitHub ends every list."""

    files: tuple[ChangedFile, ...]
    truncated: bool


def add_argument(parser: argparse.ArgumentParser) -> None:
    """`--pr N`."""
    parser.add_argument("--pr", required=True, type=_number, metavar="N", help="number of the PR")


def files_of(pull: PullRequest) -> ChangedFiles:
    """The changed files, page by page, renamed ones with both names."""
    entries = [file.raw_data for file in pull.get_files()]
    return ChangedFiles(changed_files.from_rest(entries), len(entries) >= changed_files.REST_LIMIT)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < _MAX_NUMBER):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of a pull request")
    return int(text)
