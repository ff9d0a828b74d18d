# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci label plan`: from the files of a PR, and its findings, to its labels."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from ci.errors import Exit
from ci.label import files, rules
from ci.label.plan import Clean, Found, PlannedLabel, Reason, Touched, plan
from ci.output import printable
from ci.surface import catalogue
from ci.surface.model import Finding
from ci.surface.report import json as findings_json

_SHOWN = 10  # reasons per label, in text
_REST_LIMIT = 3000  # files, of GitHub's list of a PR's changed files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`label` has sub-verbs, so far one."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    line = "print the labels for a list of changed files, each with its reasons"
    sub = subverbs.add_parser("plan", help=line, description=line)
    sub.add_argument(
        "--files",
        required=True,
        metavar="F",
        help="the changed files: one per line, NUL-separated (git -z), a JSON list of names, or "
        "GitHub's list of a PR's files; - for standard input",
    )
    sub.add_argument(
        "--findings",
        type=Path,
        metavar="F",
        help="JSON of `surface diff` or `surface check`; without it no impact is claimed",
    )
    sub.add_argument("--format", choices=("text", "json"), default="text")
    sub.add_argument("--labels", type=Path, default=rules.LABELS, help="default: %(default)s")
    sub.add_argument("--surfaces", type=Path, default=catalogue.RULES, help="default: %(default)s")
    sub.set_defaults(run=_plan)


def _plan(args: argparse.Namespace) -> int:
    the_rules = rules.load(args.labels, args.surfaces)
    changed = files.read(args.files)
    if len(changed) == _REST_LIMIT:
        _warn(f"exactly {_REST_LIMIT} files, where GitHub's list ends: there may be more")
    planned = plan(changed, _findings(args.findings), the_rules)
    print(as_json(planned) if args.format == "json" else as_text(planned))
    return Exit.OK


def _findings(file: Path | None) -> Sequence[Finding] | None:
    if file is None:
        return None
    report = findings_json.read(file)
    if report.not_compared:
        domains = ", ".join(domain.value for domain in report.not_compared)
        _warn(f"the impact is judged without what was not compared: {domains}")
    return report.findings


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def as_json(planned: Iterable[PlannedLabel]) -> str:
    """The labels as schema/plan.schema.json says."""
    labels = [
        {"name": label.name, "reasons": [_reason_as_json(reason) for reason in label.reasons]}
        for label in planned
    ]
    return json.dumps({"schema_version": 1, "labels": labels}, indent=2)


def as_text(planned: Iterable[PlannedLabel]) -> str:
    """The labels and their first reasons, for people."""
    lines = []
    for label in planned:
        lines.append(label.name)
        lines += [f"    {_reason_as_text(reason)}" for reason in label.reasons[:_SHOWN]]
        if (more := len(label.reasons) - _SHOWN) > 0:
            lines.append(f"    ... and {more} more (--format json has all)")
    return "\n".join(lines) or "no label"


_KINDS: dict[type[Reason], str] = {Touched: "path", Found: "finding", Clean: "clean"}


def _reason_as_json(reason: Reason) -> dict[str, object]:
    return {"kind": _KINDS[type(reason)], **asdict(reason)}


def _reason_as_text(reason: Reason) -> str:
    if isinstance(reason, Touched):
        renamed = "" if reason.path == reason.file else f" (now {printable(reason.file)})"
        return f"{printable(reason.path)}{renamed} matches {printable(reason.glob)}"
    if isinstance(reason, Found):
        return f"{reason.severity.value} {reason.rule}: {printable(reason.message)}"
    return f"{reason.findings} findings, none of which a backend would notice"
