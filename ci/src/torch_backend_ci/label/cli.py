# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci label`: from the files of a PR, and its findings, to its labels on GitHub."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from torch_backend_ci import changed_files, document
from torch_backend_ci.errors import Exit
from torch_backend_ci.github import access, pull_request
from torch_backend_ci.github.change import perform
from torch_backend_ci.label import apply, rules, sync
from torch_backend_ci.label.plan import Found, NotCovered, Plan, PlannedLabel, Reason, Touched, plan
from torch_backend_ci.output import printable, say
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Finding
from torch_backend_ci.surface.report import json as findings_json

_SHOWN = 10  # reasons per label, in text
PLAN_EPILOG = """
example:
  git diff --name-only main | torch-backend-ci label plan --files -

Exit status: 0 the labels are printed; 2 an input cannot be read.
"""
APPLY_EPILOG = """
Only adds labels that are missing. A label that a person removed is never added again. The only
label that is ever removed is an impact that --author added and that no longer applies. A PR that
was closed without a merge is not changed.

example:
  torch-backend-ci label apply --repo me/mine --pr 12 --findings findings.json --dry-run

Exit status: 0 the PR has its labels; 2 an input cannot be read, or GitHub answers with an error.
"""
SYNC_EPILOG = """
Labels that are not in labels.yml are not changed.

example:
  torch-backend-ci label sync --repo me/mine --dry-run

Exit status: 0 the labels are defined; 2 GitHub answers with an error.
"""

_Subverbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`label` has sub-verbs."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    _add_plan(_add(subverbs, "plan", "print the labels for changed files, each with its reasons"))
    _add_apply(_add(subverbs, "apply", "add the planned labels to a PR on GitHub"))
    _add_sync(_add(subverbs, "sync", "define the labels of labels.yml in a repository on GitHub"))


def _add(subverbs: _Subverbs, name: str, line: str) -> argparse.ArgumentParser:
    sub = subverbs.add_parser(name, help=line, description=line)
    sub.formatter_class = argparse.RawDescriptionHelpFormatter
    return sub


def _add_plan(sub: argparse.ArgumentParser) -> None:
    sub.epilog = PLAN_EPILOG
    sub.add_argument(
        "--files",
        required=True,
        metavar="F",
        help="the changed files: one per line, NUL-separated (git -z), a JSON list of names, or "
        "GitHub's list of a PR's files; - for standard input",
    )
    _add_findings(sub)
    sub.add_argument("--format", choices=("text", "json"), default="text")
    _add_rules(sub)
    sub.set_defaults(run=_plan)


def _add_apply(sub: argparse.ArgumentParser) -> None:
    sub.epilog = APPLY_EPILOG
    pull_request.add_argument(sub)
    _add_findings(sub)
    access.add_author_argument(sub)
    access.add_arguments(sub)
    _add_rules(sub)
    sub.set_defaults(run=_apply)


def _add_sync(sub: argparse.ArgumentParser) -> None:
    sub.epilog = SYNC_EPILOG
    access.add_arguments(sub)
    _add_rules(sub)
    sub.set_defaults(run=_sync)


def _add_findings(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--findings",
        type=Path,
        metavar="F",
        help="JSON of `surface diff` or `surface check`; without it there is no impact label",
    )


def _add_rules(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--labels", type=Path, default=rules.LABELS, help="default: %(default)s")
    sub.add_argument("--surfaces", type=Path, default=catalogue.RULES, help="default: %(default)s")


def _plan(args: argparse.Namespace) -> int:
    the_rules = rules.load(args.labels, args.surfaces)
    changed = changed_files.read(args.files)
    if len(changed) == changed_files.REST_LIMIT:
        _warn(
            f"exactly {changed_files.REST_LIMIT} files, where GitHub's list ends: there may be more"
        )
    findings, not_covered = _findings(args.findings)
    planned = plan(changed, findings, the_rules, not_covered)
    print(as_json(planned) if args.format == "json" else as_text(planned))
    return Exit.OK


def _apply(args: argparse.Namespace) -> int:
    the_rules = rules.load(args.labels, args.surfaces)
    findings, not_covered = _findings(args.findings)
    repo = access.repository(args)
    with access.failures(f"label #{args.pr}"):
        planned = apply.planned_labels(repo, args.pr, findings, the_rules, not_covered)
        say(as_text(planned))
        changes = apply.changes(repo, args.pr, planned, the_rules, args.author)
        perform(changes, args.dry_run)
    return Exit.OK


def _sync(args: argparse.Namespace) -> int:
    the_rules = rules.load(args.labels, args.surfaces)
    repo = access.repository(args)
    with access.failures("define labels"):
        perform(sync.changes(repo, the_rules.labels), args.dry_run)
    return Exit.OK


def _findings(file: Path | None) -> tuple[Sequence[Finding] | None, Sequence[str]]:
    """The findings, None if nobody looked for any; and the files that were not covered."""
    if file is None:
        return None, ()
    report = findings_json.read(file)
    if report.not_compared:
        domains = ", ".join(domain.value for domain in report.not_compared)
        _warn(f"the impact is judged without what was not compared: {domains}")
    return report.findings, report.not_covered


def _warn(text: str) -> None:
    say(f"warning: {text}")


def as_json(planned: Iterable[PlannedLabel]) -> str:
    """The labels as schema/plan.schema.json says."""
    return json.dumps(document.plain(Plan(tuple(planned))), indent=2)


def as_text(planned: Iterable[PlannedLabel]) -> str:
    """The labels and their first reasons, for people."""
    lines = []
    for label in planned:
        lines.append(label.name)
        lines += [f"    {_reason_as_text(reason)}" for reason in label.reasons[:_SHOWN]]
        if (more := len(label.reasons) - _SHOWN) > 0:
            lines.append(f"    ... and {more} more (--format json has all)")
    return "\n".join(lines) or "no label"


def _reason_as_text(reason: Reason) -> str:
    if isinstance(reason, Touched):
        renamed = "" if reason.path == reason.file else f" (now {printable(reason.file)})"
        return f"{printable(reason.path)}{renamed} matches {printable(reason.glob)}"
    if isinstance(reason, Found):
        return f"{reason.severity.value} {reason.rule}: {printable(reason.message)}"
    if isinstance(reason, NotCovered):
        return f"{printable(reason.file)} is not covered: its effect on backends is not known"
    return f"{reason.findings} findings, none of which a backend would notice"
