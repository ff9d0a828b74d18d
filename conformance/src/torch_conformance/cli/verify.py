# SPDX-License-Identifier: BSD-3-Clause
"""Verify a bundle: recompute everything in it and compare.

- The archive contains exactly the expected files, of limited size.
- Digests, totals, selection, level and JUnit agree with the report.
- The report is of a complete run of the standard selection, and does not contradict itself.
- Descriptor and expectations are those of the run; every entry names a check.
- Every excused check has an entry, an absent capability, or an upstream issue of the catalogue.
- Checks and requirements are those of this suite, which must be the one that made the report.

Every problem is printed. This does not prove who made a bundle, or that a run took place.

  python -m torch_conformance verify mychip.zip

Exit code 0: valid (the run may still be red: that is printed); 1: not valid; 4: the file cannot be
read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import listed, own_suite, read
from torch_conformance.judging import verification
from torch_conformance.results import bundle, levels
from torch_conformance.results.reader import plain

SUMMARY = "verify a bundle: recompute everything and compare"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle."""
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="made by `submit`")
    parser.add_argument(
        "--without-list",
        action="store_true",
        help="do not compare with the checks of the installed suite and torch",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print every reason to refuse, or what the bundle shows."""
    data = read(arguments.bundle, bundle.MAX_BYTES)
    try:
        members = bundle.unpack(data)
    except bundle.BundleError as error:
        print(f"{arguments.bundle} is refused:\n{listed(error.problems)}")
        return 1
    document, problems = verification.findings(members, own_suite(arguments.without_list))
    if problems or document is None:
        print(f"{arguments.bundle} is refused:\n{listed(problems)}")
        return 1
    run, verdict = document.run, levels.assess(document.report)
    print(f"{arguments.bundle} is what it says")
    suite = f"suite {run.suite} ({run.source.commit or 'installed package'})"
    print(plain(f"  {run.backend} with torch {run.torch.version}, {suite}"))
    print(plain(f"  {len(document.checks)} checks, the run is {document.state}, level: {verdict}"))
    if arguments.without_list:
        print("  not compared with the suite's own list of checks and requirements")
    return 0
