# SPDX-License-Identifier: BSD-3-Clause
"""Print pins, without access to an index; `pin check` compares them with one."""

from __future__ import annotations

import argparse
import sys

from ci.errors import Exit
from ci.pin import file, show

EXAMPLES = """\
examples:
  python -m ci pin show                                   all, as text
  python -m ci pin show newest --format json              as ci/pin/schema/pins.schema.json says
  python -m ci pin show newest --format requirements      for `pip install --no-deps -r`

Exit status: 0 the pins are printed; 2 a pin cannot be read.
"""
FORMATS = {"text": show.text, "json": show.as_json, "requirements": show.requirements}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--format."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    sys.stdout.write(FORMATS[args.format](file.read_all(args.pins, args.root)))
    return Exit.OK
