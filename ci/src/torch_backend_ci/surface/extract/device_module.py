# SPDX-License-Identifier: BSD-3-Clause
"""The device-module contract: what PyTorch's own Python reads off `torch.<device>`.

docs/surface/python.md says what counts as such a read and what cannot be seen.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract import module_reads
from torch_backend_ci.surface.model import Declaration, Domain
from torch_backend_ci.torch_tree.tree import TorchTree

SURFACE = "device-module"
MODULE = "torch.<device>"

# Files without any of these read nothing; parsing all of torch would take 15 s.
_WORTH_PARSING = re.compile(
    rb"get_device_module|device_module|device_handle|device_mod\b"
    rb"|getattr\(\s*torch,|_get_device_attr|_get_custom_mod_func"
)
# A device's own package reads itself.
_OWN_PACKAGES = ("cuda", "xpu", "mps", "mtia", "cpu")

# Since 2.4 using a PrivateUse1 device from Python imports its module: the list of devices with
# lazy initialisation is in this header, the import itself in a .cpp that no wheel has.
LAZY_INIT_HEADER = "torch/include/torch/csrc/utils/device_lazy_init.h"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PRIVATEUSE1 = re.compile(r"\bPrivateUse1\b|\bis_privateuseone\b")


@dataclass(frozen=True)
class _Read:
    """A read and the file in which it was found."""

    file: str
    read: module_reads.Read


def extract(tree: TorchTree, catalogue: Catalogue) -> list[Declaration]:
    """One declaration per attribute read, and one for the module if it must exist at all."""
    reads: dict[str, list[_Read]] = defaultdict(list)
    for path in _sources(tree.root):
        file = path.relative_to(tree.root).as_posix()
        for read in module_reads.reads(_parse(path)):
            reads[read.name].append(_Read(file, read))
    attributes = [_attribute(name, found) for name, found in sorted(reads.items())]
    return [*_module(tree), *attributes]


def _sources(root: Path) -> Iterator[Path]:
    folder = root / "torch"
    if not (folder / "__init__.py").is_file():
        raise CiError(f"{root}: there is no torch/__init__.py")
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] in _OWN_PACKAGES:
            continue
        if _WORTH_PARSING.search(_bytes(path)):
            yield path


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CiError(f"{path}: {error}") from error


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(_bytes(path))
    except SyntaxError as error:
        raise CiError(f"{path}:{error.lineno}: {error.msg}") from error
    except ValueError as error:  # null bytes
        raise CiError(f"{path}: {error}") from error


def _attribute(name: str, found: Iterable[_Read]) -> Declaration:
    ordered = sorted(found, key=lambda r: (r.read.guarded, r.file, r.read.line))
    called = any(r.read.called for r in ordered)
    facts = {
        "called": called,
        "guarded": all(r.read.guarded for r in ordered),
        "readers": sorted({r.file for r in ordered}),
        "required_by": sorted({r.file for r in ordered if not r.read.guarded}),
    }
    text = f"{MODULE}.{name}" + ("(...)" if called else "")
    return _declaration("attribute", f"{MODULE}.{name}", text, ordered[0], facts)


def _module(tree: TorchTree) -> Iterator[Declaration]:
    path = tree.root / LAZY_INIT_HEADER
    if not path.is_file():
        return
    text = _bytes(path).decode(errors="replace")
    code = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    if match := _PRIVATEUSE1.search(code):
        line = code.count("\n", 0, match.start()) + 1
        first = _Read(LAZY_INIT_HEADER, module_reads.Read("", line, called=False, guarded=False))
        yield _declaration(
            "module", MODULE, f"import {MODULE}", first, {"readers": [LAZY_INIT_HEADER]}
        )


def _declaration(
    kind: str, name: str, text: str, first: _Read, facts: Mapping[str, object]
) -> Declaration:
    there = {fact: value for fact, value in facts.items() if value}
    return Declaration(
        Domain.DEVICE_MODULE, kind, name, SURFACE, text, first.file, first.read.line, there
    )
