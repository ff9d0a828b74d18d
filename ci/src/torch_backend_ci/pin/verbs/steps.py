# SPDX-License-Identifier: BSD-3-Clause
"""List what changes in PyTorch from each pin to the next newer one: a file BEFORE-AFTER.json for
each pair, with the findings of `surface diff`, for `results add`. A pin without a torch is skipped.
A torch that cannot be fetched does not stop the other pairs.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

from packaging.version import Version

from torch_backend_ci import output
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.pin import file
from torch_backend_ci.pin.compare import compare
from torch_backend_ci.pin.model import Pin
from torch_backend_ci.pin.verbs.each import each
from torch_backend_ci.surface.report import json as report_json
from torch_backend_ci.surface.report import shown
from torch_backend_ci.surface.verbs.arguments import add_cache

EXAMPLES = """\
example:
  torch-backend-ci pin steps -o findings
  torch-backend-ci results add --store D findings

Exit status: 0 success; 2 a torch cannot be fetched or read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """-o, --cache."""
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="for the files"
    )
    add_cache(parser)


def run(args: argparse.Namespace) -> Exit:
    """Compare the torches of neighbouring pins."""
    by_version = {
        Version(pin.torch.version): pin for pin in file.read_all(args.pins, args.root) if pin.torch
    }
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CiError(f"cannot make {args.output}: {error.strerror}") from error

    def write(step: tuple[Pin, Pin]) -> Exit:
        report = shown(compare(*step, args.cache))
        name = f"{report.before.version}-{report.after.version}.json"
        output.write(args.output / name, report_json.render(report).encode())
        output.say(f"{name}: {len(report.findings):,} findings")
        return Exit.OK

    return each(pairwise(by_version[version] for version in sorted(by_version)), write)
