# SPDX-License-Identifier: BSD-3-Clause
"""What every reader of a torch is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TorchTree:
    """One torch on disk, laid out as in site-packages. Nobody writes into it."""

    root: Path  # the directory that holds torch/ and torchgen/
    version: str  # "2.13.0"; a local part ("+cpu") is dropped
    git_version: str | None  # 40 hexadecimal digits, of torch/version.py
    include: tuple[Path, ...]  # for -I, in this order
    libraries: Path | None  # where the shared libraries are, if they are there
