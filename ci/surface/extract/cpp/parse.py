# SPDX-License-Identifier: BSD-3-Clause
"""One translation unit of many headers; an error in it is never papered over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ci.errors import CiError
from ci.surface.extract.cpp import libclang
from ci.surface.extract.cpp.compiler import Profile, flags, system_flags
from ci.surface.extract.cpp.libclang import Diagnostic, TranslationUnit, cindex
from ci.surface.extract.cpp.sources import INCLUDE, Sources
from ci.torch_tree import TorchTree

_NOT_FOUND = re.compile(r"'(.+)' file not found")
_OWN = ("c10/", "ATen/", "torch/", "caffe2/", "torchgen/")


@dataclass(frozen=True)
class Unit:
    """A parsed translation unit."""

    tree: TorchTree
    headers: tuple[str, ...]  # that it includes, in this order
    clang: TranslationUnit
    sources: Sources
    broken: Mapping[str, str] = field(default_factory=dict)  # header -> why it cannot be included


def parse(
    tree: TorchTree, headers: Sequence[str], profile: Profile, overlay: Mapping[str, str]
) -> Unit:
    """Parse all `headers` that the tree has.

    A header that needs a file of somebody else which is not there is left out, as `broken`: that
    is a finding about the header. Any other error is one of the environment or of the tree.
    """
    there = tuple(header for header in headers if _has(tree, header, overlay))
    if not there:
        raise CiError(f"{tree.root}: has none of the headers asked for: {', '.join(headers[:3])}")
    broken: dict[str, str] = {}
    sources = Sources(tree, overlay)
    while there:
        unit = _parse(tree, there, profile, sources)
        fault = _missing_elsewhere(unit, sources)
        if fault is None:
            _refuse_errors(unit, sources, tree)
            return Unit(tree, there, unit, sources, broken)
        header = there[_included(unit) - 1]
        broken[header] = fault
        there = tuple(other for other in there if other != header)
    raise CiError(f"{tree.root}: no header compiles; the first: {next(iter(broken.values()))}")


def _has(tree: TorchTree, header: str, overlay: Mapping[str, str]) -> bool:
    return f"{INCLUDE}/{header}" in overlay or any((f / header).is_file() for f in tree.include)


def _parse(
    tree: TorchTree, headers: Sequence[str], profile: Profile, sources: Sources
) -> TranslationUnit:
    main = str(tree.root / "surface.cpp")  # never written
    text = "".join(f"#include <{header}>\n" for header in headers)
    libclang.library()
    options = (
        TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
        | TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    )
    try:
        return TranslationUnit.from_source(
            main,
            [*flags(tree, profile), *system_flags()],
            unsaved_files=[(main, text), *sources.unsaved],
            options=options,
        )
    except cindex.TranslationUnitLoadError as error:
        raise CiError(f"{tree.root}: libclang cannot parse the headers: {error}") from error


def _errors(unit: TranslationUnit) -> list[Diagnostic]:
    return [d for d in unit.diagnostics if d.severity >= Diagnostic.Error]


def _missing_elsewhere(unit: TranslationUnit, sources: Sources) -> str | None:
    """What is said about a file of others that is not there, if that is the first error."""
    for diagnostic in _errors(unit)[:1]:
        match = _NOT_FOUND.search(diagnostic.spelling)
        if match and not match[1].startswith(_OWN):
            return _described(diagnostic, sources)
    return None


def _included(unit: TranslationUnit) -> int:
    """How many of its headers the unit had begun to include when a fatal error stopped it."""
    return max(inclusion.location.line for inclusion in unit.get_includes() if inclusion.depth == 1)


def _refuse_errors(unit: TranslationUnit, sources: Sources, tree: TorchTree) -> None:
    if errors := _errors(unit):
        listed = "\n  ".join(_described(error, sources) for error in errors[:5])
        more = f"\n  and {len(errors) - 5} more" if len(errors) > 5 else ""
        raise CiError(
            f"the headers of torch {tree.version} do not compile, so nothing was read:"
            f"\n  {listed}{more}"
        )


def _described(diagnostic: Diagnostic, sources: Sources) -> str:
    file = diagnostic.location.file
    name = (sources.name(file.name) or file.name) if file else "command line"
    return f"{name}:{diagnostic.location.line}: {diagnostic.spelling}"
