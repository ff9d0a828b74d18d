# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface witness`: prove the breaks that a comparison reports by compiling."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import Exit
from torch_backend_ci.surface import catalogue, snapshot
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.probe import trial
from torch_backend_ci.surface.probe.trial import Outcome, Verdict
from torch_backend_ci.surface.report import markdown
from torch_backend_ci.surface.verbs import arguments
from torch_backend_ci.torch_tree import locate

DESCRIPTION = """
For every C++ difference that `surface diff` calls a compile_break, write a few lines of a backend
that use the declaration as it was: override it, call it, construct it, name it or expand it.
If they compile with the torch before and not with the torch after, the finding is proved. If they
compile with both, it is refuted. If the finding has too little information, it is not provable.
"""
EXAMPLES = """
examples:
  torch-backend-ci surface witness 2.11.0 2.13.0
  torch-backend-ci surface witness 2.13.0 2.15.0 --format markdown -o witnesses.md
  torch-backend-ci surface witness 2.13.0 2.15.0 --source        the lines as well

BEFORE and AFTER are versions, wheels, checkouts or directories with a torch installed. It needs
g++, and about 20 s for all witnesses together.
Exit status: 0 no finding is refuted; 1 a finding is refuted; 2 a torch cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("before", metavar="BEFORE", help="the older torch")
    parser.add_argument("after", metavar="AFTER", help="the newer torch")
    parser.add_argument(
        "--format", choices=("text", "markdown"), default="text", help="default: text"
    )
    parser.add_argument("--source", action="store_true", help="show the witnesses themselves")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: the terminal")
    arguments.add_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, try, report."""
    trees = [locate(where, args.cache) for where in (args.before, args.after)]
    before, after = (snapshot.take(tree, args.cache) for tree in trees)
    verdicts = trial.try_all(
        diff(before, after),
        (trees[0], before.declarations),
        (trees[1], after.declarations),
        catalogue.load(),
    )
    title = f"{before.torch.version} to {after.torch.version}: {summary(verdicts)}"
    render = _markdown if args.format == "markdown" else _text
    output.show(render(title, verdicts, source=args.source), args.output)
    refuted = any(verdict.outcome == Outcome.REFUTED for verdict in verdicts)
    return Exit.FINDINGS if refuted else Exit.OK


def summary(verdicts: list[Verdict]) -> str:
    """ "35 proved, 1 not provable"."""
    counted = Counter(verdict.outcome for verdict in verdicts)
    words = [f"{counted[outcome]} {outcome.value}" for outcome in Outcome if counted[outcome]]
    return ", ".join(words) or "nothing breaks"


def _text(title: str, verdicts: list[Verdict], *, source: bool) -> str:
    lines = [title]
    for verdict in verdicts:
        finding = verdict.finding
        lines += ["", f"{verdict.outcome.value}: {finding.name} ({finding.rule})"]
        lines.append(f"    {verdict.why}")
        if source:
            lines += [f"    | {line}" for line in verdict.source.splitlines()]
    return "\n".join(lines) + "\n"


def _markdown(title: str, verdicts: list[Verdict], *, source: bool) -> str:
    lines = [f"## {markdown.text(title)}", ""]
    lines += ["| Declaration | Rule | Verdict | What the compiler says |", "|---|---|---|---|"]
    for verdict in verdicts:
        finding = verdict.finding
        name, why = markdown.code(finding.name), markdown.text(verdict.why)
        lines.append(f"| {name} | {finding.rule} | {verdict.outcome.value} | {why} |")
    if source:
        for verdict in verdicts:
            lines += ["", f"### {markdown.text(verdict.finding.name)}", "", "```cpp"]
            lines += [verdict.source.rstrip() or f"// {verdict.why}", "```"]
    return "\n".join(lines) + "\n"
