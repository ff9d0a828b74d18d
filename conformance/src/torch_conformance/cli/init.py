# SPDX-License-Identifier: BSD-3-Clause
"""Write the descriptor of a new backend: load it, probe its device, and write what was found.

The backend is loaded in a separate process, so it may crash or hang. The descriptor has comments;
read and correct it.

  python -m torch_conformance init mychip --import torch_mychip

Exit code 0: written; 4: the backend cannot be loaded, or the file exists.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torch_conformance.cli import CommandError
from torch_conformance.spec.outcome import CannotLoad

SUMMARY = "probe the device of a new backend, and write its descriptor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """NAME [--import MODULE]... [--setup PKG.MOD:FUNCTION] [-o FILE] [--force]"""
    parser.add_argument(
        "name", help="the device type, such as mychip; also the name of the backend"
    )
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="module that makes the device available, such as torch_mychip; repeat for several, in "
        "their order. Not needed if an installed package announces the backend to torch, or needs "
        "torch and has the name of the device in its own",
    )
    parser.add_argument(
        "--setup",
        metavar="PKG.MOD:FUNCTION",
        help="what makes the device, where it does not exist before a call: returns the device, or "
        "an object with `.device`",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the descriptor (default: NAME.yaml); - prints it"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument(
        "--deadline",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long loading may take (default: 120)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Probe, write, and say how to go on."""
    name: str = arguments.name
    file = None if arguments.output == "-" else Path(arguments.output or f"{name}.yaml")
    if not name.isidentifier():
        raise CommandError(f"{name!r} is not a device type: letters, digits and _ only")
    if file is not None and file.exists() and not arguments.force:
        raise CommandError(f"{file} exists; --force replaces it, -o names another file")
    setup: str | None = arguments.setup
    if setup is not None and not all(setup.partition(":")):
        raise CommandError(f"--setup {setup}: write it as pkg.mod:function")
    text = _text(name, arguments.imports, arguments.deadline, setup)
    if file is None:
        sys.stdout.write(text)
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    print(f"wrote {file}. Read it, then:")
    print(f"  pytest --pyargs torch_conformance --backend-file {file} --tier smoke")
    return 0


def _text(name: str, imports: list[str], deadline: float, setup: str | None) -> str:
    from torch_conformance.authoring.backend import prepare_parent
    from torch_conformance.bringup.draft import draft
    from torch_conformance.bringup.survey import survey

    try:
        prepare_parent()
        return draft(survey(name, imports, deadline, setup))
    except CannotLoad as error:
        raise CommandError(f"{name} cannot be loaded: {error}") from None
