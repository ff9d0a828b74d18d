# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci surface probe`: whether backends as they are written compile with a torch."""

from __future__ import annotations

import argparse
import sys

from ci.errors import Exit
from ci.surface import probe
from ci.surface.verbs import arguments
from ci.torch_tree import locate

DESCRIPTION = """
Compile the probe, without making anything of it: a translation unit that derives from, overrides,
registers, expands and calls what out-of-tree backends do (ci/surface/probe). A refused line is a
line that backends have to change.
"""
EXAMPLES = """
examples:
  python -m ci surface probe --torch 2.13.0                       does the probe fit its torch?
  python -m ci surface probe --torch 2.15.0 --written-for 2.13    what must backends change?

It takes some 6 s. The status is 0 if every line compiles, 1 if not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    arguments.add_torch(parser)
    parser.add_argument(
        "--written-for",
        metavar="VERSION",
        help="the version whose backends the probe stands for (default: that of TORCH)",
    )
    arguments.add_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    result = probe.run(locate(args.torch, args.cache), written_for=args.written_for)
    for error in result.errors:
        print(error)
        for name in error.unimplemented:
            print(f"    not implemented: {name}")
    covered = f"{len(result.covers)} declarations used"
    about = f"torch {result.torch}, backends for {result.written_for}"
    verdict = f"{len(result.errors)} lines refused" if result.errors else "clean"
    print(f"{about}: {verdict}; {covered}", file=sys.stderr)
    return Exit.FINDINGS if result.errors else Exit.OK
