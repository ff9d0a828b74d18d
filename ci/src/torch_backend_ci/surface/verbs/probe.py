# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface probe`: do backends compile with a torch?"""

from __future__ import annotations

import argparse
import sys

from torch_backend_ci.errors import Exit
from torch_backend_ci.surface import probe
from torch_backend_ci.surface.verbs import arguments
from torch_backend_ci.torch_tree import locate

DESCRIPTION = """
Compile the probe: a translation unit that uses PyTorch as out-of-tree backends do. It derives,
overrides, registers, expands macros and calls (surface/probe). A line that does not compile is a
line that backends have to change. No binary is made.
"""
EXAMPLES = """
examples:
  torch-backend-ci surface probe --torch 2.13.0                       does the probe compile?
  torch-backend-ci surface probe --torch 2.15.0 --written-for 2.13    what must backends change?

It takes about 6 s. Exit status: 0 every line compiles; 1 some lines do not; 2 the torch cannot be
read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    arguments.add_torch(parser)
    parser.add_argument(
        "--written-for",
        metavar="VERSION",
        help="compile the probe for backends of this version (default: the version of TORCH)",
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
