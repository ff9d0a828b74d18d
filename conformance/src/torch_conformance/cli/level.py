# SPDX-License-Identifier: BSD-3-Clause
"""Print the conformance level of a report, and what the next level needs.

A level contains the ones before it. It is reached when every must requirement of its tiers has a
check that passed, no check with an unexpected outcome, and none that an expectations file excuses.
Only a complete run of the standard selection has a level: no --tier, --check, --dtypes with names,
-k, --checks-dir, and no shard (merge the shards first). All rules: results/levels.yaml.

  python -m torch_conformance level build/conformance/mychip.json --at-least inference

Exit code 0: the level is printed (and is at least --at-least); 1: there is no level, or a lower
one; 4: the report is unusable.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import load_one
from torch_conformance.results import levels
from torch_conformance.results.reader import plain

SUMMARY = "print the conformance level of a report, and what the next level needs"
MAX_BLOCKERS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report, and the level asked for."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="report of a run (JSON)")
    parser.add_argument(
        "--at-least",
        choices=[level.name for level in levels.every()],
        metavar="LEVEL",
        help="exit with 1 unless the run reached this level or a higher one",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict, a line for each level, and what blocks the next one."""
    document = load_one(arguments.report)
    verdict = levels.assess(document.report)
    print(plain(f"level of {document.run.backend}: {verdict}"))
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
    text += f", {len(step.excused)} must-level excused by absent capabilities"
    return text + (f"; not asked: {', '.join(step.not_asked)}" if step.not_asked else "")


def _blocked(step: levels.Step) -> list[str]:
    lines = [f"before {step.level.title}:", *(f"  {b}" for b in step.blockers[:MAX_BLOCKERS])]
    rest = len(step.blockers) - MAX_BLOCKERS
    return [*lines, f"  ... and {rest} more"] if rest > 0 else lines
