# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci surface`: the table of its sub-verbs."""

from __future__ import annotations

import argparse
import importlib

SUBVERBS: dict[str, str] = {
    # name -> its line of help; the module is ci/surface/verbs/<name>.py
    "probe": "compile a backend's view of every C++ surface with the headers of one torch",
    "snapshot": "read the surface of one torch into a file",
    "diff": "compare two torches: what breaks a backend, what is new",
    "check": "judge a PR against a pinned torch, without building PyTorch",
    "witness": "prove by compiling that what breaks between two torches does break",
    "coupling": "find where generic code of a torch is coupled to one vendor",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser every sub-verb."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    for name, line in SUBVERBS.items():
        sub = subverbs.add_parser(name, help=line, description=line)
        importlib.import_module(f"ci.surface.verbs.{name}").add_arguments(sub)
