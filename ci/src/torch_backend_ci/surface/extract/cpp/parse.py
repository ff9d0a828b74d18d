# SPDX-License-Identifier: BSD-3-Clause
"""One translation unit of many headers; an error in it is never papered over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.extract.cpp import libclang
from torch_backend_ci.surface.extract.cpp.compiler import Profile, flags, system_flags
from torch_backend_ci.surface.extract.cpp.libclang import Diagnostic, TranslationUnit, cindex
from torch_backend_ci.surface.extract.cpp.sources import INCLUDE, Sources
from torch_backend_ci.torch_tree import TorchTree

_LOCAL = re.compile(
    r"does not override any member|marked 'override' hides|abstract (?:class|type)|hides overload"
)
_FOREIGN = re.compile(rb"#\s*include\s*<(?:nlohmann|llvm|gloo|tensorpipe|oneapi|cuda|xnnpack)")
_NOT_FOUND = re.compile(r"'(.+)' file not found")
# What must be there: files of torch itself, and of the Python that this runs in.
_OWN = ("c10/", "ATen/", "torch/", "caffe2/", "torchgen/", "Python.h")


# Headers that do not stand alone are found one by one, each at the price of a parse.
MOST_FAULTY = 4


@dataclass(frozen=True)
class Unit:
    """A parsed translation unit."""

    tree: TorchTree
    headers: tuple[str, ...]  # that it includes, in this order
    clang: TranslationUnit
    sources: Sources
    faults: Mapping[str, str]  # header -> why it cannot be included first, or not at all

    def path(self, header: str) -> str:
        """The file of a header, as libclang calls it."""
        return Sources.path_in(self.tree, f"{INCLUDE}/{header}")


def parse(
    tree: TorchTree,
    headers: Sequence[str],
    profile: Profile,
    overlay: Mapping[str, str],
    *,
    bodies: bool = False,
) -> Unit:
    """Parse all `headers` that the tree has, with the bodies of functions or without.

    Two faults of a header are findings, not errors: one that needs a file of somebody else which
    is not there is left out; one that compiles only behind others is parsed behind them. What is
    wrong beyond that is wrong with the tree, and CiError.
    """
    there = [header for header in headers if _has(tree, header, overlay)]
    order = sorted(there, key=lambda header: not _asks_others(tree, header))
    if not order:
        raise CiError(f"{tree.root}: has none of the headers asked for: {', '.join(headers[:3])}")
    sources = Sources(tree, overlay)
    faults: dict[str, str] = {}
    while order:
        unit = _parse(tree, order, profile, sources, bodies)
        every = _errors(unit)
        errors = [error for error in every if not _is_local(error)]
        if not errors:
            local = _local_faults(unit, every, order, sources)
            return Unit(tree, tuple(order), unit, sources, {**local, **faults})
        header = order[_included_when(unit, errors[0]) - 1]
        missing = _NOT_FOUND.search(errors[0].spelling)
        elsewhere = missing is not None and not missing[1].startswith(_OWN)
        if len(faults) == MOST_FAULTY or not (elsewhere or _may_move(header, order, faults)):
            raise _refusal(errors, sources, tree)
        faults[header] = _described(errors[0], sources)
        order.remove(header)
        if not elsewhere:
            order.append(header)
    raise CiError(f"{tree.root}: no header compiles; the first: {next(iter(faults.values()))}")


def _asks_others(tree: TorchTree, header: str) -> bool:
    """Whether the header includes what may not be there. Such ones go first: the parser stops at a
    file that it does not find, and has not much to do again."""
    place = next((f / header for f in tree.include if (f / header).is_file()), None)
    return place is not None and _FOREIGN.search(place.read_bytes()) is not None


def _may_move(header: str, order: Sequence[str], faults: Mapping[str, str]) -> bool:
    return header not in faults and header != order[-1]


def _has(tree: TorchTree, header: str, overlay: Mapping[str, str]) -> bool:
    return f"{INCLUDE}/{header}" in overlay or any((f / header).is_file() for f in tree.include)


def _parse(
    tree: TorchTree, headers: Sequence[str], profile: Profile, sources: Sources, bodies: bool
) -> TranslationUnit:
    main = str(tree.root / "surface.cpp")  # never written
    text = "".join(f"#include <{header}>\n" for header in headers)
    libclang.library()
    options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    if not bodies:
        options |= TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
    try:
        return TranslationUnit.from_source(
            main,
            [*flags(tree, profile), *system_flags()],
            unsaved_files=[(main, text), *sources.unsaved],
            options=options,
        )
    except cindex.TranslationUnitLoadError as error:
        raise CiError(f"{tree.root}: libclang cannot parse the headers: {error}") from error


def _is_local(error: Diagnostic) -> bool:
    """Whether an error leaves all types as they are: a function that overrides nothing any more, an
    object of a class that has become abstract."""
    return error.severity == Diagnostic.Error and _LOCAL.search(error.spelling) is not None


def _local_faults(
    unit: TranslationUnit, errors: Sequence[Diagnostic], order: Sequence[str], sources: Sources
) -> dict[str, str]:
    """Such errors by the header whose inclusion shows them, the first of each."""
    faults: dict[str, str] = {}
    for error in errors:
        faults.setdefault(order[_included_when(unit, error) - 1], _described(error, sources))
    return faults


def _errors(unit: TranslationUnit) -> list[Diagnostic]:
    return [d for d in unit.diagnostics if d.severity >= Diagnostic.Error]


def _included_when(unit: TranslationUnit, error: Diagnostic) -> int:
    """Which of its headers, from 1, the unit was including where the error is."""
    place = error.location.file
    last = 1
    for inclusion in unit.get_includes():
        if inclusion.depth == 1:
            last = inclusion.location.line
        if place is not None and inclusion.include.name == place.name:
            break
    return last


def _refusal(errors: Sequence[Diagnostic], sources: Sources, tree: TorchTree) -> CiError:
    listed = "\n  ".join(_described(error, sources) for error in errors[:5])
    more = f"\n  and {len(errors) - 5} more" if len(errors) > 5 else ""
    hint = "\n  the headers of Python come with python3-dev" if "Python.h" in listed else ""
    return CiError(
        f"the headers of torch {tree.version} do not compile, so nothing was read:"
        f"\n  {listed}{more}{hint}"
    )


def _described(diagnostic: Diagnostic, sources: Sources) -> str:
    file = diagnostic.location.file
    name = (sources.name(file.name) or file.name) if file else "command line"
    return f"{name}:{diagnostic.location.line}: {diagnostic.spelling}"
