# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci dashboard`: a store of results as a site of static files."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from torch_backend_ci.dashboard import grid
from torch_backend_ci.errors import Exit
from torch_backend_ci.output import say

BUILD = """
Build the site of a store, or update it. The site is replaced atomically. A hidden directory beside
it is a cache for the next build; it may be deleted. Concurrent builds of one site wait for each
other.
"""
SERVE = (
    "Serve a site on 127.0.0.1 until Ctrl-C, for local use only. A rebuilt site is visible at once."
)
EXAMPLES = """
example:
  torch-backend-ci dashboard build --store results -o site
  torch-backend-ci dashboard serve site

Exit status: 0 the site is built; 2 the store cannot be read, or the site cannot be written: it is
unchanged.
"""
SERVE_EXAMPLE = """
example:
  torch-backend-ci dashboard serve site --port 8080

Exit status: 0 ended by Ctrl-C; 2 there is no site, or the port is in use.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`dashboard` has sub-verbs."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    _add_build(subverbs)
    _add_serve(subverbs)
    grid.add_arguments(
        subverbs.add_parser("grid", help="write the table for a README, or check it")
    )


def _add_build(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = subverbs.add_parser(
        "build",
        help="build the site of a store",
        description=BUILD,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="made by `results add`")
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="SITE", help="a directory")
    sub.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="number of processes (default: one for each core)",
    )
    sub.set_defaults(run=_build)


def _add_serve(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = subverbs.add_parser(
        "serve",
        help="serve a site on this machine",
        description=SERVE,
        epilog=SERVE_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("site", type=Path, metavar="SITE", help="made by `build`")
    sub.add_argument(
        "--port", type=int, default=8000, metavar="N", help="0: any free port (default: 8000)"
    )
    sub.set_defaults(run=_serve)


def _build(args: argparse.Namespace) -> int:
    from torch_backend_ci.dashboard.build import build

    begun = time.monotonic()
    count = build(args.store, args.output, args.jobs)
    say(f"{args.output}: {count:,} files in {time.monotonic() - begun:.1f} s")
    return Exit.OK


def _serve(args: argparse.Namespace) -> int:
    from torch_backend_ci.dashboard.serve import server

    with server(args.site, args.port) as listening:
        say(f"http://{listening.server_address[0]!s}:{listening.server_port}/ (Ctrl-C ends it)")
        try:
            listening.serve_forever()
        except KeyboardInterrupt:
            return Exit.OK
    return Exit.OK


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes: 1 to 256")
    return int(text)
