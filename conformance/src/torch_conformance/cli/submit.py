# SPDX-License-Identifier: BSD-3-Clause
"""Make a bundle of a run: one ZIP file that others can verify.

It contains the report, its JUnit form, the descriptor and the expectations that the run used, the
log, and a manifest with the versions, the suite's commit and digest, the seed, the level and the
digest of every file. Only a complete run of the whole standard selection can be submitted:

  pytest conformance --backend-file mychip.yaml 2>&1 | tee run.log
  python -m torch_conformance submit build/conformance/mychip.json --log run.log \\
      --descriptor mychip.yaml

Merge the reports of shards first. Before the bundle is written, it is verified as by `verify`.

Exit code 0: written; 1: it would not pass `verify`, and nothing was written; 4: an input is
unusable.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_conformance.cli.inputs import listed, load, own_suite, read, write
from torch_conformance.judging import verification
from torch_conformance.results import bundle
from torch_conformance.spec.descriptor import BUILT_IN

SUMMARY = "make a bundle of a run that others can verify"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The report and what goes with it."""
    add = parser.add_argument
    add("report", type=Path, metavar="REPORT", help="report of the run (JSON)")
    add("--log", type=Path, required=True, metavar="FILE", help="the output of the run")
    add(
        "--descriptor",
        type=Path,
        metavar="FILE",
        help="the descriptor that the run used (not needed for a built-in one)",
    )
    add("--expectations", type=Path, metavar="FILE", help="the expectations that the run used")
    add("-o", "--output", type=Path, metavar="FILE", help="the bundle (default: REPORT.zip)")
    add(
        "--without-list",
        action="store_true",
        help="do not compare with the checks of the installed suite and torch",
    )


def run(arguments: argparse.Namespace) -> int:
    """Pack, verify, write."""
    document = load(arguments.report)
    others = {bundle.LOG: read(arguments.log, bundle.LIMITS[bundle.LOG])}
    files = {bundle.DESCRIPTOR: arguments.descriptor, bundle.EXPECTATIONS: arguments.expectations}
    used = document.run.descriptor
    if used and not files[bundle.DESCRIPTOR] and (BUILT_IN / Path(used.file).name).is_file():
        files[bundle.DESCRIPTOR] = BUILT_IN / Path(used.file).name
    for name, file in files.items():
        if file:
            others[name] = read(file, bundle.LIMITS[name])
    packed = bundle.pack(document, read(arguments.report), others)
    try:
        members = bundle.unpack(packed)
    except bundle.BundleError as error:
        problems = error.problems
    else:
        _, problems = verification.findings(members, own_suite(arguments.without_list))
    if problems:
        print(f"not submitted:\n{listed(problems)}")
        return 1
    write(arguments.output or arguments.report.with_suffix(".zip"), packed)
    return 0
