# SPDX-License-Identifier: BSD-3-Clause
"""The command line: one verb per tool, its code imported only when the verb is used."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import say


class Verb(NamedTuple):
    """A verb: its module in this package, which has `add_arguments(parser)`, and its line of help.

    `add_arguments` sets the parser's default `run`, a function from the arguments to the exit
    status; a verb with sub-verbs sets one for each.
    """

    module: str
    help: str


VERBS = {
    "surface": Verb("surface.cli", "record and compare PyTorch's integration surface; check a PR"),
    "label": Verb("label.cli", "compute a PR's labels with reasons; apply them"),
    "comment": Verb("comment", "post one comment on a PR, and keep it up to date"),
    "gate": Verb("gate.cli", "compare a run of the suite with a baseline: one verdict"),
    "relay": Verb("relay.cli", "exchange messages with PyTorch's cross-repository CI relay"),
    "pin": Verb("pin.cli", "manage the exact torch versions that CI uses"),
    "report": Verb("report.cli", "publish the results of an unprivileged workflow run"),
    "results": Verb("results.cli", "store reports and findings; list and export them"),
    "feed": Verb("feed.cli", "announce merged changes to out-of-tree backends"),
    "publish": Verb("publish", "commit files to a branch that contains only data"),
    "patch": Verb("patch", "write what the event of a workflow has changed, as a patch"),
    "dashboard": Verb("dashboard.cli", "build a website from stored results"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status (errors.py)."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = parser(words[:1]).parse_args(words)
        return int(args.run(args))
    except CiError as error:
        say(f"error: {error}")
        return Exit.UNUSABLE
    except BrokenPipeError:  # `... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def parser(wanted: Sequence[str] = tuple(VERBS)) -> argparse.ArgumentParser:
    """The parser; only the `wanted` verbs know their arguments."""
    top = argparse.ArgumentParser(
        prog="torch-backend-ci",
        description="Check PyTorch changes for breakage of out-of-tree backends; run CI, and "
        "publish its results.",
        epilog="Example: torch-backend-ci surface diff 2.11.0 2.13.0. "
        "Exit status: 0 success, 1 problems were found, 2 unusable input or environment. "
        "`torch-backend-ci VERB --help` explains a verb.",
    )
    verbs = top.add_subparsers(metavar="VERB", required=True)
    for name, verb in VERBS.items():
        sub = verbs.add_parser(name, help=verb.help, description=verb.help)
        if name in wanted:
            importlib.import_module(f"{__package__}.{verb.module}").add_arguments(sub)
    return top
