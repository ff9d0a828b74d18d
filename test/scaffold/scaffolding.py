# SPDX-License-Identifier: BSD-3-Clause
"""Running the scaffold as a vendor does who has a checkout that is not built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "reference_backend/torch_puone/new"


def new(*arguments: str | Path, tool: Path = TOOL) -> subprocess.CompletedProcess[str]:
    """The finished command. It needs nothing but Python, so the interpreter sees no packages."""
    command = [sys.executable, "-I", "-S", str(tool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def written(directory: Path, *arguments: str, name: str = "mychip") -> Path:
    """The directory with a repository that the command has written."""
    done = new(name, "--out", directory, *arguments)
    assert done.returncode == 0, done.stderr
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """Every file by its path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
