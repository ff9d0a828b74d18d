# SPDX-License-Identifier: BSD-3-Clause
"""Tiny torches to audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch_backend_ci.surface.coupling.audit import audit
from torch_backend_ci.surface.coupling.rules import Hit, load

PACKAGE = {"torch/__init__.py": "", "torch/nn/__init__.py": ""}
SOURCE = {**PACKAGE, "aten/src/ATen/CMakeLists.txt": "", "c10/CMakeLists.txt": ""}


def write(root: Path, files: Mapping[str, str | bytes], frame: Mapping[str, str] = PACKAGE) -> Path:
    """A tree of these files and those of its frame."""
    for name, content in {**frame, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def found(root: Path, files: Mapping[str, str | bytes], vendor: str = "cuda") -> list[Hit]:
    """The hits in a package of these files."""
    return list(audit(write(root, files), load(vendor)).hits)
