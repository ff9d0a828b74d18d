# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of ``python -m torch_conformance``, one module for each.

A module has `SUMMARY` (a line for the help), `add_arguments(parser)` and `run(arguments) -> int`,
which returns the exit code: 0 success, 1 problems were found, 4 wrong usage or unusable input (as
pytest does). A `CommandError` is printed without a traceback and ends with 4.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

#: Module of each verb, in the order of the help; imported only for the help and when used.
VERBS: dict[str, str] = {
    "help": "torch_conformance.cli.help",
    "init": "torch_conformance.cli.init",
    "next": "torch_conformance.cli.next",
    "lint": "torch_conformance.cli.lint",
    "update-expectations": "torch_conformance.cli.update_expectations",
    "import-skips": "torch_conformance.cli.import_skips",
    "report": "torch_conformance.cli.report",
    "compare": "torch_conformance.cli.compare",
    "submit": "torch_conformance.cli.submit",
    "verify": "torch_conformance.cli.verify",
    "merge": "torch_conformance.cli.merge",
    "level": "torch_conformance.cli.level",
    "badge": "torch_conformance.cli.badge",
}
USAGE = 4


class CommandError(Exception):
    """A request that cannot be carried out; the text says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return its exit code."""
    parsed = parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except CommandError as error:
        print(f"{parsed.verb}: {error}", file=sys.stderr)
        return USAGE
    return code


class _Parser(argparse.ArgumentParser):
    """Ends with pytest's exit code for wrong usage, so that one table of codes explains both."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        super().exit(USAGE if status == 2 else status, message)


def parser() -> argparse.ArgumentParser:
    """The parser with all verbs."""
    top = _Parser(
        prog="python -m torch_conformance",
        description="Prepare a run of the conformance suite, and use its report. The run itself: "
        "pytest --pyargs torch_conformance --backend=NAME (in a checkout: pytest conformance).",
        epilog="Example: python -m torch_conformance level build/conformance/mychip.json. "
        "Exit code: 0 success, 1 problems were found, 4 wrong usage or unusable input. "
        "`python -m torch_conformance VERB --help` explains a verb.",
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, name in VERBS.items():
        module = importlib.import_module(name)
        verb_parser = verbs.add_parser(verb, help=module.SUMMARY, description=module.__doc__)
        verb_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        verb_parser.set_defaults(run=module.run)
        module.add_arguments(verb_parser)
    return top
