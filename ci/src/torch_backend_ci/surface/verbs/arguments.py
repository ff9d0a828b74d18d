# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that several sub-verbs have."""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_backend_ci.torch_tree.cache import default_folder


def add_torch(parser: argparse.ArgumentParser) -> None:
    """--torch: anything that `locate` accepts."""
    parser.add_argument(
        "--torch",
        required=True,
        metavar="TORCH",
        help="a version, a wheel, a checkout, or a directory or Python with a torch installed",
    )


def add_cache(parser: argparse._ActionsContainer) -> None:
    """--cache: the directory to keep results in."""
    parser.add_argument(
        "--cache",
        type=Path,
        default=default_folder(),
        metavar="DIR",
        help="directory for snapshots and fetched torches (default: %(default)s)",
    )
