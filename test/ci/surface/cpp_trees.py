# SPDX-License-Identifier: BSD-3-Clause
"""Small torches of a few headers, and what the C++ extractor finds in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trees import write_tree

from torch_backend_ci.surface.catalogue import Catalogue, Surface
from torch_backend_ci.surface.extract import cpp
from torch_backend_ci.surface.model import Declaration

HEADER = "c10/core/Allocator.h"
CATALOGUE = Catalogue(
    (
        Surface(
            "allocator",
            "memory",
            headers=(HEADER, "c10/core/Device.h", "c10/core/Other.h"),
            symbols=("c10::*", "at::Exposed", "answer"),
            macros=("REGISTER_*",),
        ),
    )
)


def extract(
    root: Path, text: str, others: Mapping[str, str] | None = None, **options: Any
) -> list[Declaration]:
    """The declarations of one header, and of others by their name after #include."""
    files = {HEADER: f"#pragma once\n{text}", **(others or {})}
    tree = write_tree(root, {f"torch/include/{name}": body for name, body in files.items()})
    return cpp.extract(tree, CATALOGUE, **options)


def facts(root: Path, text: str, name: str, **options: Any) -> dict[str, Any]:
    """The facts of the only declaration with a name."""
    (found,) = (d for d in extract(root, text, **options) if d.name == name)
    return dict(found.facts)


def compared(declarations: list[Declaration]) -> list[tuple[str, str, dict[str, Any]]]:
    """What of declarations is compared, in an order of its own."""
    return sorted(
        ((d.kind, d.name, dict(d.facts)) for d in declarations), key=lambda entry: repr(entry)
    )
