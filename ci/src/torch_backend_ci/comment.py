# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci comment`: one comment on a PR, created once and then edited."""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.github import access, pull_request, sticky
from torch_backend_ci.github.change import perform

_MAX_BODY = 4 << 20  # bytes; a body that is too long for GitHub is cut, a larger file is an error
EPILOG = """
The comment is found by its marker and its author. It is edited only if the text has changed, and
cut if it is too long for GitHub. The body is sent unchanged: escape text of other people before.
A locked PR gets no comment.

example:
  torch-backend-ci comment --repo me/mine --pr 12 --marker gate --body verdict.md --dry-run

Exit status: 0 the comment is up to date; 2 the file cannot be read, or GitHub answers with an
error.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--pr N --marker M --body FILE`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    pull_request.add_argument(parser)
    parser.add_argument(
        "--marker", required=True, metavar="M", help="a name that identifies this comment"
    )
    parser.add_argument(
        "--body", required=True, type=Path, metavar="FILE", help="the text, as Markdown"
    )
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
            raise CiError(f"{path} has more than {_MAX_BODY >> 20} MiB: that is not a comment")
        return data.decode()
    except OSError as error:
        raise CiError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CiError(f"{path} is not UTF-8: {error.reason}") from error
