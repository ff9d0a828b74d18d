# SPDX-License-Identifier: BSD-3-Clause
"""Tell the conformance level that a report shows: core, inference, training, scale-out, compile.

A level contains the ones before it. It is reached when every must-level requirement of its tiers
has a check that passed, no bad check, and none that an expectations file excuses. Only a complete
run of the whole standard selection has a level: no --tier, --check, --dtypes with names, -k,
--checks-dir, and no shard (merge the shards first). The rules in full: results/levels.yaml.

Exit code 0: the run has been judged (and reached --at-least), 1: it has no level or a lower one,
4: the report cannot be used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import load
from torch_conformance.results import levels
from torch_conformance.results.reader import plain

SUMMARY = "tell the conformance level that a report shows, and what stands before the next"
MAX_BLOCKERS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report, and the level asked for."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "--at-least",
        choices=[level.name for level in levels.every()],
        metavar="LEVEL",
        help="end with 1 unless the run reached this level or one after it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict, a line for each level, and what blocks the next one."""
    document = load(arguments.report)
    verdict = levels.assess(document.content)
    print(plain(f"level of {document.run['backend']}: {verdict}"))
    for step in verdict.steps:
        print(
            f"  {step.level.title:<10} {'blocked' if step.blockers else 'met':<8} {_counts(step)}"
        )
    if verdict.next:
        print(plain("\n".join(_blocked(verdict.next))))
    names = [level.name for level in levels.every()]
    if verdict.name is None:
        return 1
    wanted = arguments.at_least
    return 1 if wanted and names.index(verdict.name) < names.index(wanted) else 0


def _counts(step: levels.Step) -> str:
    text = f"{step.verified} of {step.must} must-level requirements verified"
    text += f", {step.should_verified} of {step.should} should-level"
    return text + (f"; not asked: {', '.join(step.not_asked)}" if step.not_asked else "")


def _blocked(step: levels.Step) -> list[str]:
    lines = [f"before {step.level.title}:", *(f"  {b}" for b in step.blockers[:MAX_BLOCKERS])]
    rest = len(step.blockers) - MAX_BLOCKERS
    return [*lines, f"  ... and {rest} more"] if rest > 0 else lines
