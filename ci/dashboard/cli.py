# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci dashboard`: a store of results as a site of static files."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ci.dashboard import grid
from ci.errors import Exit
from ci.output import say

BUILD = """
Make the site of a store, or bring it up to date. The site is there whole, the old one or the new
one: it is made beside its place and takes it in one step. A hidden folder beside it keeps what
makes the next build short; it may be deleted. Builds of one site wait for each other.
"""
SERVE = (
    "Serve a site on this machine only, until Ctrl-C. A site that is built anew is seen at once."
)
EXAMPLES = """
example:
  python -m ci dashboard build --store results -o site
  python -m ci dashboard serve site
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`dashboard` has sub-verbs."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    _add_build(subverbs)
    _add_serve(subverbs)
    grid.add_arguments(subverbs.add_parser("grid", help="write the grid of a README, or check it"))


def _add_build(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = subverbs.add_parser(
        "build",
        help="make the site of a store",
        description=BUILD,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--store", type=Path, required=True, metavar="D", help="of `results add`")
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="SITE", help="a folder")
    sub.add_argument(
        "--jobs", type=_positive, metavar="N", help="processes at once (default: one for each core)"
    )
    sub.set_defaults(run=_build)


def _add_serve(subverbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = subverbs.add_parser("serve", help="serve a site on this machine", description=SERVE)
    sub.add_argument("site", type=Path, metavar="SITE", help="that `build` made")
    sub.add_argument("--port", type=int, default=8000, metavar="N", help="0: any (default: 8000)")
    sub.set_defaults(run=_serve)


def _build(args: argparse.Namespace) -> int:
    from ci.dashboard.build import build

    begun = time.monotonic()
    count = build(args.store, args.output, args.jobs)
    say(f"{args.output}: {count:,} files in {time.monotonic() - begun:.1f} s")
    return Exit.OK


def _serve(args: argparse.Namespace) -> int:
    from ci.dashboard.serve import server

    with server(args.site, args.port) as listening:
        say(f"http://{listening.server_address[0]!s}:{listening.server_port}/ (Ctrl-C ends it)")
        try:
            listening.serve_forever()
        except KeyboardInterrupt:
            return Exit.OK
    return Exit.OK


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes: 1 to 256")
    return int(text)
