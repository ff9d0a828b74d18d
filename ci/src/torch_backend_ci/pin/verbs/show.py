# SPDX-License-Identifier: BSD-3-Clause
"""Print pins, without access to an index; `pin check` compares them with one."""

from __future__ import annotations

import argparse
import sys

from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.pin import file, show

EXAMPLES = """\
examples:
  torch-backend-ci pin show                                   all, as text
  torch-backend-ci pin show newest --format json              as schema/pins.schema.json says
  torch-backend-ci pin show newest --format requirements      for `pip install --no-deps -r`
  torch-backend-ci pin show newest --format requirements --build cpu

Exit status: 0 the pins are printed; 2 a pin cannot be read.
"""
FORMATS = {"text": show.text, "json": show.as_json}
REQUIREMENTS = "requirements"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--format, --build."""
    choices = (*FORMATS, REQUIREMENTS)
    parser.add_argument("--format", choices=choices, default="text", help="default: text")
    parser.add_argument(
        "--build",
        choices=["cpu"],
        help="with --format requirements: the build for CPUs of this version, without CUDA's "
        "libraries; the pin has no hash of it, its commit is in the reports",
    )


def run(args: argparse.Namespace) -> int:
    """Print them."""
    pins = file.read_all(args.pins, args.root)
    if args.format == REQUIREMENTS:
        sys.stdout.write(show.requirements(pins, args.build))
    elif args.build:
        raise CiError("--build goes with --format requirements")
    else:
        sys.stdout.write(FORMATS[args.format](pins))
    return Exit.OK
