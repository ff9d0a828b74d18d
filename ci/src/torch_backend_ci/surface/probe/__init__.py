# SPDX-License-Identifier: BSD-3-Clause
"""The probe: a translation unit as a backend writes it, and what a torch makes of it.

probe.cpp and surfaces/ derive from, override, expand and call what out-of-tree backends do, by the
version of torch they are written for. Compiled with the headers of another torch, the lines that
no longer fit are a second opinion on what a comparison of declarations finds (agreement.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.extract.cpp import libclang
from torch_backend_ci.surface.extract.cpp.compiler import PROFILES, flags, system_flags
from torch_backend_ci.surface.extract.cpp.libclang import cindex
from torch_backend_ci.surface.extract.cpp.moved import moved_names
from torch_backend_ci.surface.extract.cpp.sources import Sources
from torch_backend_ci.surface.probe import errors, macros
from torch_backend_ci.surface.probe.result import Covered, Place, ProbeError, ProbeResult, Use
from torch_backend_ci.surface.probe.uses import Finder
from torch_backend_ci.torch_tree import TorchTree

FOLDER = Path(__file__).parent
UNIT = FOLDER / "probe.cpp"
OLDEST, NEWEST = Version("2.5"), Version("2.15")


def run(
    tree: TorchTree,
    *,
    written_for: str | None = None,
    overlay: Mapping[str, str] | None = None,
    part: str | None = None,
) -> ProbeResult:
    """Compile the probe with the headers of a torch.

    `written_for` is the version whose backends the probe stands for, its own if not given;
    `overlay` replaces files of the tree in memory: file relative to the tree -> its text. `part`
    is compiled in place of probe.cpp: some of the headers and surfaces that it includes; what it
    uses is left out.
    """
    version = written_for or tree.version
    sources = Sources(tree, overlay or {})
    unit = _parse(tree, version, sources, part)
    top = list(unit.cursor.get_children())
    own = [] if part is not None else [c for c in top if _is_own(c)]
    finder = Finder(FOLDER, sources, moved_names(top, catalogue.load()))
    return ProbeResult(
        torch=tree.version,
        written_for=version,
        errors=tuple(dict.fromkeys(errors.read(unit, finder, sources))),
        uses=tuple(dict.fromkeys([*finder.uses(own), *macros.expanded(version)])) if own else (),
    )


def _is_own(cursor: cindex.Cursor) -> bool:
    return bool(cursor.location.file) and cursor.location.file.name.startswith(str(FOLDER))


def _parse(
    tree: TorchTree, version: str, sources: Sources, part: str | None
) -> cindex.TranslationUnit:
    libclang.library()
    major, minor = Version(version).release[:2]
    if not OLDEST <= Version(f"{major}.{minor}") <= NEWEST:
        raise CiError(f"the probe is written for torch {OLDEST} to {NEWEST}, not for {version}")
    arguments = [
        *flags(tree, PROFILES[0]),
        *system_flags(),
        f"-DPROBE_FOR={major * 100 + minor}",
        "-ferror-limit=0",
    ]
    unsaved = sources.unsaved + ([] if part is None else [(str(UNIT), part)])
    try:
        return cindex.TranslationUnit.from_source(str(UNIT), arguments, unsaved_files=unsaved)
    except cindex.TranslationUnitLoadError as error:
        raise CiError(f"{tree.root}: libclang cannot parse the probe: {error}") from error


__all__ = ["Covered", "Place", "ProbeError", "ProbeResult", "Use", "run"]
