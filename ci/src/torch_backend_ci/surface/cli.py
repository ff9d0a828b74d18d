# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci surface`: the table of its sub-verbs."""

from __future__ import annotations

import argparse
import importlib

SUBVERBS: dict[str, str] = {
    # name -> its line of help; the module is surface/verbs/<name>.py
    "probe": "compile what backends use of every C++ surface with the headers of one torch",
    "snapshot": "write the surface of one torch into a file",
    "diff": "compare two torches: what breaks backends, what is new",
    "check": "find what a PR breaks in backends, without building PyTorch",
    "witness": "prove by compiling that the reported breaks between two torches are real",
    "usage": "collect what backends use of a torch: the evidence for what is watched",
    "coupling": "find generic code of a torch that depends on one vendor",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser every sub-verb."""
    subverbs = parser.add_subparsers(metavar="SUBVERB", required=True)
    for name, line in SUBVERBS.items():
        sub = subverbs.add_parser(name, help=line, description=line)
        importlib.import_module(f"torch_backend_ci.surface.verbs.{name}").add_arguments(sub)
