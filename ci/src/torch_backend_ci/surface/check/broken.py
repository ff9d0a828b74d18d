# SPDX-License-Identifier: BSD-3-Clause
"""A change after which something cannot be read at all: that too is a finding about it.

An extractor that cannot read a torch names the file, and mostly the line, in its error. What names
no file of the torch is an error of the environment (no compiler, no memory) and stays one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.diff.rules import finding as make
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Snapshot
from torch_backend_ci.torch_tree import TorchTree

_PLACE = re.compile(r"(?:^\s*|: )((?:torch|torchgen)/[^\s:]+)(?::(\d+))?: (.+)", re.MULTILINE)
_INCLUDE = "torch/include/"


@dataclass(frozen=True)
class Fault:
    """Something that cannot be read."""

    file: str  # relative to the tree
    line: int
    words: str


def faults(error: Exception, tree: TorchTree) -> list[Fault]:
    """What an extractor's error says about files of the tree, the first of each file; none if it
    is about the environment."""
    found: dict[str, Fault] = {}
    for file, line, words in _PLACE.findall(str(error).replace(f"{tree.root}/", "")):
        found.setdefault(file, Fault(file, int(line or 0), words.strip()))
    return list(found.values())


def finding(broken: Fault, before: Snapshot, catalogue: Catalogue) -> Finding:
    """The finding about it; of a header it is one that the compiler made."""
    is_header = broken.file.startswith(_INCLUDE)
    name = broken.file.removeprefix(_INCLUDE)
    was = next((d for d in before.declarations if d.kind == "header" and d.name == name), None)
    now = Declaration(
        domain=Domain.HEADER if is_header else _domain(broken.file),
        kind="header" if is_header else "file",
        name=name,
        surface=_surface(name, catalogue),
        text=f"#include <{name}>" if is_header else name,
        file=broken.file,
        line=broken.line,
        facts={"error": broken.words},
    )
    rule = "header_not_alone" if is_header else "file_unreadable"
    return make(rule, was, now, error=broken.words.rstrip("."))


def _domain(file: str) -> Domain:
    return Domain.PYTHON if file.startswith("torch/") else Domain.OPERATOR


def _surface(name: str, catalogue: Catalogue) -> str:
    """The surface that lists the header, or a name of the module."""
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for surface in catalogue.surfaces:
        if name in surface.headers or module in {p.partition(":")[0] for p in surface.python}:
            return surface.name
    return "operators" if name.startswith("torchgen/") else "build"
