# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the scaffold."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path

from . import edits, sources
from .license import BadLicense, expression
from .names import BadName, check_name
from .write import BSD, Backend, TargetError, write

DESCRIPTION = """\
Write a repository for a PyTorch backend of your own: runtime, core operators, a driver over host
memory to replace call by call, Python package, build, tests, CI and the descriptor for the
conformance suite. It is made from this project's own sources, with your names. It builds and passes
the suite's core tier before you change anything.
"""
EPILOG = """\
The name is that of the device: tensor.to("mychip"). From it follow the package torch_mychip, the
module torch.mychip, the namespace mychip, the library libtorch_mychip.so, the environment variables
MYCHIP_... and the process group mychip_ccl.

    python -m torch_puone.new mychip --out torch-mychip
    cd torch-mychip && less README.md

What is left out cannot be added later by this command: it writes new repositories only.
Exit codes: 0 written, 2 a name, an option or a directory that cannot be used.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    without = [part for part in edits.OPTIONAL if getattr(options, f"without_{part.name}")]
    try:
        check_name(options.name, sources.identifiers(sources.root()))
        if options.out == "":
            raise TargetError("--out is empty; give a directory, such as torch-mychip")
        directory = Path(options.out or f"torch-{options.name}")
        backend = Backend(options.name, expression(options.license), without)
        written = write(backend, directory, _version())
    except (BadName, BadLicense, TargetError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {len(written)} files into {directory}; next, as its README.md says:")
    print(f"  cd {shlex.quote(str(directory))} && make build")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_puone.new",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="of the device: lower-case letters, which PyTorch reads alone")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="a new or an empty directory, which may have a .git (default: torch-NAME)",
    )
    parser.add_argument(
        "--license",
        default=BSD,
        metavar="SPDX",
        help=f"of what you add (default: {BSD}, which the sources keep in any case)",
    )
    for part in edits.OPTIONAL:
        parser.add_argument(
            f"--without-{part.name}", action="store_true", help=f"without {part.what}"
        )
    parser.add_argument("--version", action="version", version=f"torch-puone {_version()}")
    return parser


def _version() -> str:
    """The version of this project, whose package may not be importable yet."""
    text = Path(__file__).parents[1].joinpath("_version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.+)"', text)[0]
