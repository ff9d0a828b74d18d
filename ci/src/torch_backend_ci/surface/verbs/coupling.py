# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface coupling`: generic code of a torch that depends on one vendor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from torch_backend_ci import output
from torch_backend_ci.errors import Exit
from torch_backend_ci.surface.coupling.audit import audit
from torch_backend_ci.surface.coupling.report import FORMATS, make
from torch_backend_ci.surface.coupling.rules import load, vendors

DESCRIPTION = """
Find generic code of a torch that depends on one vendor: files that belong to the vendor as a whole,
and lines of generic files that name it (docs/surface/coupling.md).
"""
EXAMPLES = """
examples:
  torch-backend-ci surface coupling --tree ~/pytorch
  torch-backend-ci surface coupling --tree new --against old --format markdown -o new.md

Exit status: 0 the report is written; 2 a tree cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser its options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "--tree", type=Path, required=True, metavar="DIR",
        help="a torch source tree, unpacked wheel or installed package",
    )  # fmt: skip
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="an earlier torch: report what is new and gone"
    )
    parser.add_argument("--vendor", choices=vendors(), default="cuda", help="default: cuda")
    parser.add_argument(
        "--subsystem", metavar="NAME", help="only this part, as named in the report"
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="default: text")
    parser.add_argument("-o", "--output", type=Path, metavar="F", help="default: the terminal")
    parser.add_argument(
        "--limit", type=_natural, default=20, metavar="N",
        help="rows of each list in text and Markdown (default: 20); JSON has all",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Exit:
    """Audit, count, show."""
    rules = load(args.vendor)
    found = audit(args.tree, rules, _progress(str(args.tree)))
    earlier = None
    if args.against is not None:
        earlier = audit(args.against, rules, _progress(str(args.against)))
    text = FORMATS[args.format](make(rules, found, earlier, args.subsystem), args.limit)
    output.show(text, args.output)
    return Exit.OK


def _natural(text: str) -> int:
    if (number := int(text)) < 0:
        raise ValueError
    return number


def _progress(name: str) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            print(f"\r{name}: {done} of {total} files", end=end, file=sys.stderr, flush=True)

    return show
