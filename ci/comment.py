# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci comment`: one comment on a PR, made once and edited ever after."""

from __future__ import annotations

import argparse
from pathlib import Path

from ci.errors import CiError, Exit
from ci.github import access, pull_request, sticky
from ci.github.change import perform

_MAX_BODY = 4 << 20  # bytes; what is longer than GitHub takes is cut, this is no comment at all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--pr N --marker M --body FILE`."""
    parser.epilog = (
        "The comment is found again by its marker and its author, edited only if it says something "
        "else, and cut where it is too long for GitHub. The body is sent as it is: quote what "
        "others wrote before. On a locked PR nothing is said."
    )
    pull_request.add_argument(parser)
    parser.add_argument("--marker", required=True, metavar="M", help="which comment of ours it is")
    parser.add_argument("--body", required=True, type=Path, metavar="FILE", help="its markdown")
    access.add_author_argument(parser)
    access.add_arguments(parser)
    parser.set_defaults(run=_comment)


def _comment(args: argparse.Namespace) -> int:
    body = _read(args.body)
    repo = access.repository(args)
    with access.failures(f"comment on #{args.pr}"):
        issue = repo.get_issue(args.pr)
        perform(sticky.changes(issue, args.marker, body, args.author), args.dry_run)
    return Exit.OK


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BODY + 1)
        if len(data) > _MAX_BODY:
            raise CiError(f"{path} has more than {_MAX_BODY >> 20} MiB: that is no comment")
        return data.decode()
    except OSError as error:
        raise CiError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CiError(f"{path} is not UTF-8: {error.reason}") from error
