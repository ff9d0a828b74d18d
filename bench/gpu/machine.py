# SPDX-License-Identifier: BSD-3-Clause
"""What a result was measured on, and of which source."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

QUERY = ("name", "driver_version", "memory.total")
# Asked in a fresh process: the one that runs the steps never imports torch.
ASK_TORCH = """
import torch
print(torch.__version__, torch.version.cuda, torch.version.git_version, sep="\\n")
"""


def describe() -> dict[str, Any]:
    """The machine, as plain values; what cannot be found out is None."""
    cards = gpus()
    return {
        "gpu": cards[0]["name"] if cards else None,
        "gpus": cards,
        "nvcc": nvcc_version(),
        **torch_versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def gpus() -> list[dict[str, str]]:
    """Name, version of the kernel driver and memory of every GPU; none without nvidia-smi."""
    text = _output(["nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"])
    rows = [line.split(", ") for line in (text or "").splitlines()]
    return [
        dict(zip(("name", "driver", "memory"), row, strict=True)) for row in rows if len(row) == 3
    ]


def torch_versions() -> dict[str, str | None]:
    """Of the torch that this Python imports: its version, its CUDA, its commit."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    lines = (_output([sys.executable, "-c", ASK_TORCH], environment) or "").splitlines()
    found = [None if line == "None" else line for line in lines] or [None, None, None]
    return dict(zip(("torch", "torch_cuda", "torch_commit"), found, strict=True))


def path() -> str:
    """PATH, and last where the CUDA toolkit usually is: not every machine names it."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"])


def tool(name: str) -> str | None:
    """Where a program is, if anywhere."""
    return shutil.which(name, path=path())


def nvcc_version() -> str | None:
    """Such as 13.0.88."""
    match = re.search(r"\bV([\d.]+)", _output([tool("nvcc") or "nvcc", "--version"]) or "")
    return match.group(1) if match else None


def source(root: Path) -> dict[str, Any]:
    """The commit, and whether the checkout differs from it; None where git cannot tell."""
    # The checkout may be a copy that belongs to somebody else.
    git = ["git", "-c", "safe.directory=*", "-C", str(root)]
    commit = _output([*git, "rev-parse", "HEAD"])
    # Results that are not committed yet are no change of what was measured.
    changes = _output([*git, "status", "--porcelain", "--", ".", ":!docs/results"])
    return {
        "commit": commit.strip() if commit else None,
        "dirty": None if changes is None else bool(changes.strip()),
    }


def _output(command: Sequence[str], environment: dict[str, str] | None = None) -> str | None:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
