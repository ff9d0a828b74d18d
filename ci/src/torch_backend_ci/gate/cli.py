# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci gate`: from reports to a verdict."""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.gate import asked, inputs, policy, runs, verdict
from torch_backend_ci.gate.asked import Asked
from torch_backend_ci.gate.judge import judge
from torch_backend_ci.gate.policy import Limits, Policy
from torch_backend_ci.gate.report import annotate, junit, markdown, sarif, text
from torch_backend_ci.gate.runs import Run
from torch_backend_ci.gate.since import Findings
from torch_backend_ci.gate.verdict import Outcome, Verdict
from torch_backend_ci.output import say, show, write
from torch_backend_ci.surface.report import json as findings_json
from torch_backend_ci.untrusted import spoken
from torch_conformance.results.writing import dumps
from torch_conformance.spec import strict

EXITS = {
    Outcome.OK: Exit.OK,
    Outcome.REGRESSION: Exit.FINDINGS,
    Outcome.INFRASTRUCTURE: Exit.UNUSABLE,
}
EPILOG = """\
R is a report of the suite (.json, .json.gz), JUnit of any runner (.xml), or a directory. A
configuration is a pin (an exact torch version) with a driver. In a directory, each subdirectory is
a configuration and the reports below it are its shards; each file NAME.json is the configuration
NAME. The policy says which configurations are required, and how bad each kind of change is
(docs/ci/gate.md).

example:
  torch-backend-ci gate --candidate reports --baseline baseline \\
      --findings findings.json -o verdict.json

Exit status: 0 no regression; 1 regression; 2 no usable result: a required configuration is missing,
incomplete, contradicts itself, mixes several runs, or has run another torch, backend or driver than
it must. The verdict is written in all three cases.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to judge, by what, and where to write it."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--candidate", type=Path, nargs="+", required=True, metavar="R", help="runs to judge")
    add("--baseline", type=Path, nargs="+", metavar="R", help="runs to compare with; may be "
        "an empty directory")  # fmt: skip
    add("--policy", type=Path, default=policy.FILE, metavar="F", help="default: %(default)s")
    add("--findings", type=Path, metavar="F", help="JSON of `surface check` for the same change: "
        "possible causes of failures")  # fmt: skip
    add("--head-sha", type=_sha, metavar="SHA", help="the commit under test, for the verdict")
    add("--suite-commit", type=_sha, metavar="SHA", help="the commit that was checked out: reports "
        "of another commit are rejected")  # fmt: skip
    add("--ask", action="append", default=[], metavar="LANE.KEY=VALUE", help="what a configuration "
        "must have run, beside what the policy says: KEY is pin (a name in ci/pins), backend, "
        "driver or descriptor (the file)")  # fmt: skip
    add("-o", "--output", type=Path, metavar="F", help="the verdict as JSON")
    add("--summary", type=Path, metavar="F", help="the verdict as Markdown (on GitHub: "
        "$GITHUB_STEP_SUMMARY)")  # fmt: skip
    add("--junit", type=Path, metavar="F", help="the verdict as JUnit")
    add("--sarif", type=Path, metavar="F", help="the verdict as SARIF")
    add("--sarif-root", type=Path, metavar="DIR", help="the repository that the SARIF is shown in: "
        "only files in it are named, without it none")  # fmt: skip
    add("--annotations", action="store_true", help="print workflow commands of GitHub")
    add("--merged", type=Path, metavar="DIR", help="write each complete configuration to "
        "DIR, as a baseline for later runs")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, judge, write."""
    rules = policy.load(args.policy)
    wanted_runs = asked.of(rules, args.ask)
    candidate, problems = _runs(args.candidate, rules, args.suite_commit, wanted_runs)
    baseline: dict[str, Run] | None = None
    of_baseline: list[str] = []
    if args.baseline is not None:
        wanted = {*candidate, *filter(rules.requires, rules.lanes)}
        baseline, of_baseline = _runs(args.baseline, rules, only=wanted)
    findings, of_findings = _findings(args.findings)
    problems += [f"the runs to compare with: {problem}" for problem in of_baseline]
    made = judge(rules, candidate, baseline, findings, args.head_sha, problems + of_findings)
    _write(args, candidate, made)
    show(text.render(made), None)
    if args.annotations:
        annotate.show(made)
    return EXITS[made.outcome]


def _runs(
    paths: list[Path],
    rules: Policy,
    commit: str | None = None,
    must_have_run: Mapping[str, Asked] | None = None,
    only: Collection[str] | None = None,
) -> tuple[dict[str, Run], list[str]]:
    """The runs of all lanes below some paths, or of some, and what is wrong with the paths."""
    found = inputs.find(paths, rules.limits)
    made = {}
    for lane in sorted(found.lanes):
        if only is None or lane in only:
            files = found.lanes[lane]
            say(f"reading {lane}: {_counted(len(files.files))}")
            must = (must_have_run or {}).get(lane, runs.ANYTHING)
            made[lane] = runs.gather(files, rules.limits, commit, must)
    return made, found.problems


def _counted(reports: int) -> str:
    return f"{reports} report{'s' * (reports != 1)}"


def _findings(file: Path | None) -> tuple[Findings, list[str]]:
    """The findings of the change; unreadable ones are a problem, for they were asked for."""
    if file is None:
        return Findings(()), []
    name = spoken(file.name)
    try:
        content = inputs.content(inputs.File(file, name), Limits())
        return Findings(findings_json.decode(content, name).findings), []
    except strict.Malformed as error:
        return Findings(()), [f"{name}: {error}"]
    except CiError as error:
        return Findings(()), [str(error)]


def _write(args: argparse.Namespace, candidate: Mapping[str, Run], made: Verdict) -> None:
    """All that was asked for; the verdict last: where it is, the rest is too."""
    if args.merged:
        _write_merged(args.merged, candidate)
    renderers: list[tuple[Path | None, Callable[[Verdict], str]]] = [
        (args.summary, markdown.render),
        (args.junit, junit.render),
        (args.sarif, lambda made: sarif.render(made, args.sarif_root)),
        (args.output, verdict.render),
    ]
    for path, render in renderers:
        if path:
            write(path, render(made).encode())


def _write_merged(folder: Path, candidate: Mapping[str, Run]) -> None:
    """Every complete report of the suite, by configuration; the same bytes for the same runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CiError(f"cannot write {folder}: {error.strerror}") from error
    for lane, made in candidate.items():
        if made.whole and not made.whole.foreign:
            data = dumps(made.whole.report)
            write(folder / f"{lane}.json.gz", gzip.compress(data, mtime=0))


def _sha(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", value):
        raise argparse.ArgumentTypeError(f"{value!r} is not a full commit: 40 lower-case digits")
    return value
