# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface snapshot`: the surface of one torch, as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.output import say
from torch_backend_ci.surface import snapshot, snapshot_file
from torch_backend_ci.surface.extract.libraries import with_libraries
from torch_backend_ci.surface.verbs import arguments
from torch_backend_ci.torch_tree import locate

DESCRIPTION = """
Read the integration surface of one PyTorch: the C++ declarations and macros, the Python API, the
operators, and everything else that out-of-tree backends use. surfaces.yaml lists it. Nothing
is compiled, and no code of that torch is run.

The file is JSON with one declaration per line, in a stable order: compare two files with `surface
diff`, or commit them and read a text diff. If its name ends with .gz, it is gzipped.
"""
EXAMPLES = """
examples:
  torch-backend-ci surface snapshot --torch 2.13.0 -o 2.13.0.json      a version, fetched if needed
  torch-backend-ci surface snapshot --torch .venv -o mine.json         what is installed there
  torch-backend-ci surface snapshot --torch torch-2.15.0*.whl -o -     a wheel, to standard output
  torch-backend-ci surface snapshot --torch ~/pytorch -o main.json     a checkout

It takes 40 s on two cores, or 1 s if that torch is in the cache. It needs the standard headers of
g++.
Exit status: 0 written; 2 the torch cannot be read or a header does not compile; nothing is written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    arguments.add_torch(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the snapshot; - for standard output"
    )
    parser.add_argument(
        "--libraries",
        action="store_true",
        help="of a version, fetch the libraries too (150 MB), for the symbols that they export",
    )
    cache = parser.add_mutually_exclusive_group()
    arguments.add_cache(cache)
    cache.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not Path(args.output).absolute().parent.is_dir():
        raise CiError(f"there is no directory for {args.output}")
    tree = locate(args.torch, args.cache)
    if args.libraries:
        tree = with_libraries(tree, args.cache, say)
    taken = snapshot.take(tree, None if args.no_cache else args.cache)
    if args.output == "-":
        sys.stdout.write(snapshot_file.dumps(taken))
        return Exit.OK
    snapshot_file.write(taken, Path(args.output))
    print(f"{len(taken.declarations)} declarations in {args.output}", file=sys.stderr)
    return Exit.OK
