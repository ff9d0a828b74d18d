# SPDX-License-Identifier: BSD-3-Clause
"""For each pin that a commit moves, list what differs between the torch before and the torch after,
as JSON of `surface diff`. The gate uses it to name causes of failures. If no pin has moved, nothing
is written.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.pin import file
from torch_backend_ci.pin.compare import compare
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.surface.report import Report
from torch_backend_ci.surface.report import json as report_json
from torch_backend_ci.surface.verbs.arguments import add_cache

EXAMPLES = """\
example:
  torch-backend-ci pin findings --since HEAD^1 -o findings.json

Exit status: 0 success, also if no pin has moved; 2 a torch or the repository cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--since, -o, --cache."""
    parser.add_argument("--since", required=True, metavar="REV", help="the commit before")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: the terminal")
    add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Compare the torches of each pin that moved; several are put into one report."""
    moved = list(_moved(args.pins or file.names(args.root), args.since, args.root))
    if not moved:
        output.say(f"no pin has moved since {args.since}")
        return Exit.OK
    reports = [compare(before, after, args.cache) for before, after in moved]
    output.show(report_json.render(joined(reports)), args.output)
    return Exit.OK


def joined(reports: Sequence[Report]) -> Report:
    """The first, with the findings of all, each once."""
    findings = {repr(finding): finding for report in reports for finding in report.findings}
    return replace(reports[0], findings=tuple(findings.values()))


def _moved(names: Sequence[str], rev: str, root: Path) -> Iterator[tuple[Pin, Pin]]:
    for name in names:
        data = _shown(rev, file.place(name), root)
        before = file.parse(name, data, f"{file.place(name)} in {rev}") if data else None
        after = file.read(name, root)
        if before and before.torch and after.torch and before.torch != after.torch:
            output.say(f"{name}: {before.torch.version} -> {after.torch.version}")
            yield before, after


def _shown(rev: str, place: str, root: Path) -> bytes | None:
    """A file at a commit; None if it had none of this name."""
    git = ["git", "-C", str(root)]
    listed = subprocess.run([*git, "ls-tree", rev, "--", place], capture_output=True, check=False)
    if listed.returncode:
        raise CiError(f"git knows no {rev} in {root}: {listed.stderr.decode().strip()}")
    if not listed.stdout:
        return None
    return subprocess.run([*git, "show", f"{rev}:{place}"], capture_output=True, check=True).stdout
