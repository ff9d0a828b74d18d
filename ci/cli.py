# SPDX-License-Identifier: BSD-3-Clause
"""The command line: one verb per tool, its code imported only when the verb is used."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from ci.errors import CiError, Exit
from ci.output import say


class Verb(NamedTuple):
    """A verb: its module, which has `add_arguments(parser)`, and its line of help.

    `add_arguments` sets the parser's default `run`, a function from the arguments to the exit
    status; a verb with sub-verbs sets one for each.
    """

    module: str
    help: str


VERBS = {
    "surface": Verb("ci.surface.cli", "extract PyTorch's integration surface, compare, check a PR"),
    "label": Verb("ci.label.cli", "say which labels a PR deserves, and why; give it them"),
    "comment": Verb("ci.comment", "say something on a PR, in one comment that is kept up to date"),
    "gate": Verb("ci.gate.cli", "judge a run of the suite against the run before: one verdict"),
    "relay": Verb("ci.relay.cli", "speak with PyTorch's cross-repository CI relay"),
    "pin": Verb("ci.pin.cli", "keep the exact torches that the CI runs against"),
    "report": Verb("ci.report.cli", "tell GitHub what came of a run that had no rights itself"),
    "results": Verb("ci.results.cli", "keep reports and findings for years, in a store"),
    "feed": Verb("ci.feed.cli", "tell out-of-tree backends of merged changes"),
    "publish": Verb("ci.publish", "put files on a branch that holds data and no code"),
    "dashboard": Verb("ci.dashboard.cli", "make the site that shows a store of results"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status (ci/errors.py)."""
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
        prog="python -m ci",
        description="Guard the door between PyTorch and its backends.",
        epilog="Exit status: 0 fine, 1 findings that were to be refused, 2 unusable input. "
        "`python -m ci VERB --help` explains a verb.",
    )
    verbs = top.add_subparsers(metavar="VERB", required=True)
    for name, verb in VERBS.items():
        sub = verbs.add_parser(name, help=verb.help, description=verb.help)
        if name in wanted:
            importlib.import_module(verb.module).add_arguments(sub)
    return top
