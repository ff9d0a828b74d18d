# SPDX-License-Identifier: BSD-3-Clause
"""Print the matrix of a workflow on one line: a job per pin, driver and shard. A pin without a
version gets no job; a message on standard error names it."""

from __future__ import annotations

import argparse
import sys

from torch_backend_ci.errors import Exit
from torch_backend_ci.output import say
from torch_backend_ci.pin import file, show

EXAMPLES = """\
examples:
  torch-backend-ci pin matrix --driver sim --shards 4
  torch-backend-ci pin matrix development newest --shards 2       only these

Exit status: 0 the matrix is printed; 2 a pin cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--driver, --shards."""
    parser.add_argument(
        "--driver", action="append", metavar="D", help="may be given more than once; default: sim"
    )
    parser.add_argument("--shards", type=int, default=1, metavar="N", help="default: 1")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    pins = file.read_all(args.pins, args.root)
    made = show.matrix(pins, args.driver or ["sim"], args.shards)
    for pin in pins:
        if pin.torch is None:
            say(f"pin {pin.name} has no job: {pin.unresolved}")
    sys.stdout.write(made + "\n")
    return Exit.OK
