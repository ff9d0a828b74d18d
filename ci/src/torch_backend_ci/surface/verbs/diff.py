# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface diff`: two torches, compared by meaning."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.surface import catalogue, snapshot_file, usage
from torch_backend_ci.surface.diff import diff, skipped_domains
from torch_backend_ci.surface.model import Severity, Snapshot
from torch_backend_ci.surface.report import Report, rules, shown
from torch_backend_ci.surface.verbs import arguments

DESCRIPTION = """
List what changed between two PyTorch versions for out-of-tree backends: what no longer compiles,
what compiles but behaves differently, what needs a rebuild, what is new.

Declarations are compared by meaning, not as text: a comment, a parameter's name, another order or
another file is not a difference. --rules lists every rule.
"""
EXAMPLES = """
BEFORE and AFTER are snapshot files (made by `surface snapshot`), versions, wheels, checkouts, or
directories with a torch installed. Snapshots of some versions come with this tool; other torches
are read first, and cached.

examples:
  torch-backend-ci surface diff 2.11.0 2.13.0                       as text
  torch-backend-ci surface diff 2.13.0 mine.json --surface allocator --all
  torch-backend-ci surface diff 2.13.0 ~/pytorch --fail-on compile_break   status 1 if it breaks
  torch-backend-ci surface diff 2.11.0 2.13.0 --format json -o findings.json

severities, worst first:
  compile_break   code that compiled before does not compile
  silent_break    code compiles, but behaves differently
  rebuild         the source still works, but binaries must be rebuilt
  semantic        the declaration means something else
  new_capability  something new to implement or to call
  deprecated      still works; breaks builds with -Werror
  cosmetic        no effect; only shown with --all

Exit status: 0 success; 1 a finding is as severe as --fail-on; 2 a torch cannot be read.
"""
FORMATS = ("text", "json", "markdown", "sarif")
COMMITTED = Path(__file__).parents[1] / "snapshots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("before", metavar="BEFORE", help="the older torch, or its snapshot")
    parser.add_argument("after", metavar="AFTER", help="the newer torch, or its snapshot")
    add_report_arguments(parser)
    parser.add_argument(
        "--rules", action=ShowRules, nargs=0, help="list every rule as Markdown, and end"
    )
    arguments.add_cache(parser)
    parser.set_defaults(run=run, fail_on=None)


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """What every verb that reports findings has: format, file, selection, exit status."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: the terminal")
    parser.add_argument(
        "--whole", action="store_true", help="Markdown longer than a comment on GitHub may be"
    )
    parser.add_argument("--all", action="store_true", help="show cosmetic findings too")
    parser.add_argument(
        "--surface",
        action="append",
        default=[],
        metavar="NAME",
        help="only this surface of surface/surfaces.yaml; may be given more than once",
    )
    parser.add_argument(
        "--fail-on",
        choices=[*(severity.value for severity in Severity), "never"],
        metavar="SEVERITY",
        help="exit with 1 if a finding is at least this severe; never: always 0",
    )


class ShowRules(argparse.Action):
    """An option that answers by itself, as --help does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(rules.render())
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Compare and report."""
    check_surfaces(args.surface)
    before, after = (snapshot_of(where, args.cache) for where in (args.before, args.after))
    return conclude(report_of(before, after), args)


def report_of(before: Snapshot, after: Snapshot) -> Report:
    """All findings between the two, weighed by who uses what."""
    findings = usage.weigh(diff(before, after), usage.load())
    not_compared = tuple(skipped_domains(before, after))
    return Report(before.torch, after.torch, tuple(findings), not_compared)


def check_surfaces(names: list[str]) -> None:
    """CiError for an unknown surface."""
    known = [surface.name for surface in catalogue.load().surfaces]
    if unknown := [name for name in names if name not in known]:
        raise CiError(f"no such surface: {', '.join(unknown)}; there are: {', '.join(known)}")


def snapshot_of(where: str, cache: Path, index: str | None = None) -> Snapshot:
    """The snapshot that `where` names: a file, one that comes with this tool, or one to take.
    `index` is the address of the index that has a version; None: pip's own."""
    path = Path(where)
    if path.is_file() and path.name.endswith((".json", ".json.gz")):
        return snapshot_file.read(path)
    for committed in (COMMITTED / f"{where}.json", COMMITTED / f"{where}.json.gz"):
        if not path.exists() and committed.parent == COMMITTED and committed.is_file():
            return snapshot_file.read(committed)
    from torch_backend_ci.surface import snapshot
    from torch_backend_ci.torch_tree import locate

    return snapshot.take(locate(where, cache, index_url=index), cache)


def conclude(report: Report, args: argparse.Namespace) -> int:
    """Write the report where it is wanted; the exit status that is asked for."""
    selected = shown(report, args.surface, cosmetic=args.all)
    render = renderer(args.format, to_file=args.output is not None, whole=args.whole)
    rendered = render(selected)
    output.show(rendered, args.output)
    if args.fail_on in (None, "never"):
        return Exit.OK
    limit = Severity(args.fail_on).rank
    everything = shown(report, args.surface, cosmetic=True)
    if any(f.severity.rank <= limit for f in everything.findings):
        return Exit.FINDINGS
    found = any(f.severity is not Severity.COSMETIC for f in report.findings)
    return Exit.NOT_COVERED if report.not_covered and not found else Exit.OK


def renderer(format_: str, *, to_file: bool, whole: bool = False) -> Callable[[Report], str]:
    """The function that makes a report of this format."""
    module = importlib.import_module(f"torch_backend_ci.surface.report.{format_}")
    if format_ == "text":
        colour = not to_file and module.wants_colour(sys.stdout)
        return lambda report: str(module.render(report, colour=colour))
    if format_ == "markdown" and whole:
        return lambda report: str(module.render(report, sys.maxsize))
    return lambda report: str(module.render(report))
