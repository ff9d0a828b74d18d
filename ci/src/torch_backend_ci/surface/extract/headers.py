# SPDX-License-Identifier: BSD-3-Clause
"""The headers themselves: which are there, which can be included alone, the C++ they ask for.

Compiling each of a hundred headers alone takes a minute. Instead, all are parsed together, bodies
included, and a header stands alone if every name that its files use is declared in a file that
they include. That does not see an order of declarations that is wrong; compiling would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp.compiler import PROFILES
from torch_backend_ci.surface.extract.cpp.includes import Includes, includes
from torch_backend_ci.surface.extract.cpp.parse import Unit, parse
from torch_backend_ci.surface.extract.cpp.references import Need, needs
from torch_backend_ci.surface.extract.cpp.sources import INCLUDE
from torch_backend_ci.surface.model import Declaration, Domain
from torch_backend_ci.torch_tree import TorchTree, layout

_DEMANDED = re.compile(r"__cplusplus\s*<\s*(\d{4})\d\dL")
_OWN = ("ATen", "c10", "caffe2", "torch")
_VENDOR = re.compile(r"cuda|cudnn|hip|nccl|nvshmem|xpu|mkl|mps|nvrtc", re.IGNORECASE)
_ERROR = re.compile(r"\s*#\s*error\b")


def extract(
    tree: TorchTree,
    catalogue: Catalogue,
    *,
    headers: Sequence[str] | None = None,
    overlay: Mapping[str, str] | None = None,
) -> list[Declaration]:
    """One declaration per header that the tree has, and the language.

    Tried alone are those that surface/surfaces.yaml lists; of the others it is known that they are
    there.
    """
    chosen = [header for header in catalogue.headers if header in catalogue.chosen]
    unit = parse(tree, headers or chosen, PROFILES[0], overlay or {}, bodies=True)
    graph = includes(unit.clang)
    unmet = needs(unit.clang, graph, unit.sources)
    faults = {header: _fault(unit, graph, unmet, header) for header in unit.headers}
    found = [
        _header(unit, catalogue, header, fault)
        for header, fault in {**faults, **unit.faults}.items()
    ]
    others = _others(tree, catalogue) if headers is None else ()
    return [*found, *others, *_language(unit, catalogue)]


def _others(tree: TorchTree, catalogue: Catalogue) -> Iterator[Declaration]:
    """The headers of the tree that are not tried alone: that they are there."""
    root = tree.root / INCLUDE
    for folder in _OWN:
        for path in sorted((root / folder).rglob("*")):
            header = path.relative_to(root).as_posix()
            place = f"{INCLUDE}/{header}"
            if (
                path.suffix not in layout.HEADERS
                or header in catalogue.chosen
                or layout.is_generated(place)
            ):
                continue
            if not _VENDOR.search(header):  # whose are there or not by how the wheel was built
                yield Declaration(
                    domain=Domain.HEADER,
                    kind="header",
                    name=header,
                    surface=catalogue.surface_of_any_header(header),
                    text=f"#include <{header}>",
                    file=place,
                    line=0,
                    facts={"unread": True},
                )


def _header(unit: Unit, catalogue: Catalogue, header: str, fault: str | None) -> Declaration:
    return Declaration(
        domain=Domain.HEADER,
        kind="header",
        name=header,
        surface=catalogue.surface_of_header(header),
        text=f"#include <{header}>",
        file=unit.sources.name(unit.path(header)) or "",
        line=0,
        facts={"error": fault} if fault else {"alone": True},
    )


def _fault(unit: Unit, graph: Includes, unmet: Sequence[Need], header: str) -> str | None:
    """What the header lacks when it is included first."""
    closure = graph.closure(unit.path(header))
    for need in unmet:
        if graph.bit(need.file) & closure and not need.anywhere & closure:
            where = unit.sources.name(need.file)
            declared = unit.sources.name(need.declared) or "a system header"
            return f"{where}:{need.line}: {need.name} is declared in {declared}, not included"
    return None


def _language(unit: Unit, catalogue: Catalogue) -> list[Declaration]:
    """The highest C++ standard that an #error of the headers asks for."""
    demands = [demand for file in _own_files(unit) for demand in _demands(unit, file)]
    if not demands:
        return []
    year, file, line, text = max(demands)
    return [
        Declaration(
            domain=Domain.HEADER,
            kind="language",
            name="C++ standard",
            surface="build",
            text=text,
            file=file,
            line=line,
            facts={"minimum": year - 2000},
        )
    ]


def _demands(unit: Unit, path: str) -> Iterator[tuple[int, str, int, str]]:
    lines = unit.sources.lines(path)
    for number, line in enumerate(lines, 1):
        match = _DEMANDED.search(line)
        if match and any(map(_ERROR.match, lines[number : number + 2])):
            text = next(filter(_ERROR.match, lines[number:])).strip()
            yield int(match[1]), unit.sources.name(path) or "", number, text


def _own_files(unit: Unit) -> list[str]:
    files = {inclusion.include.name for inclusion in unit.clang.get_includes()}
    return sorted(file for file in files if unit.sources.name(file) is not None)
