# SPDX-License-Identifier: BSD-3-Clause
"""Which changed files an extractor would read at all: a change to no other has to be judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ci.surface.catalogue import Catalogue
from ci.surface.model import Domain
from ci.torch_tree import TorchTree, layout

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)

_OPERATORS = "torchgen/packaged/ATen/native/"
_HEADERS = {Domain.CPP, Domain.HEADER}
_PYTHON = {Domain.PYTHON, Domain.DEVICE_MODULE}


def domains(
    tree: TorchTree, changed: Mapping[str, bytes | None], catalogue: Catalogue
) -> dict[str, set[Domain]]:
    """For each changed file of the tree the domains that read it; none for most files."""
    headers = {path for path in changed if path.startswith("torch/include/")}
    included = _included(tree, changed, catalogue) if headers else set()
    return {path: _HEADERS if path in included else _by_name(path) for path in changed}


def _by_name(path: str) -> set[Domain]:
    if path.startswith("torch/") and path.endswith(layout.PYTHON):
        return _PYTHON
    return {Domain.OPERATOR} if path.startswith(_OPERATORS) else set()


def _included(
    tree: TorchTree, changed: Mapping[str, bytes | None], catalogue: Catalogue
) -> set[str]:
    """All files that the listed headers include, before or after the change, whatever the
    preprocessor says: rather one too many."""
    roots = [folder.relative_to(tree.root).as_posix() for folder in tree.include]
    found: set[str] = set()
    pending = [f"{root}/{header}" for header in catalogue.headers for root in roots]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        texts = [text for text in (_before(tree.root / path), changed.get(path)) if text]
        if texts or path in changed:
            found.add(path)
        beside = path.rpartition("/")[0]
        for name in {match for text in texts for match in _INCLUDE.findall(text)}:
            header = name.decode("utf-8", "replace")
            pending += [_normal(f"{folder}/{header}") for folder in (*roots, beside)]
    return found


def _before(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):  # a standard header, or nonsense
        return None


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
