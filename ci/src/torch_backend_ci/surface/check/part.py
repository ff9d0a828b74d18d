# SPDX-License-Identifier: BSD-3-Clause
"""The part of the probe that can say something else after a change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch_backend_ci.surface.check.abridged import Abridged, abridged
from torch_backend_ci.surface.check.reach import Includes
from torch_backend_ci.surface.check.stakes import Stakes, covering
from torch_backend_ci.surface.probe import FOLDER, UNIT
from torch_backend_ci.torch_tree import TorchTree

_SURFACE = re.compile(r'^#include "(surfaces/\w+\.h)"', re.MULTILINE)
_HEADER = re.compile(r"^\s*#\s*include <([^>]+\.h(?:pp)?)>", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """`text` is compiled in place of probe.cpp, with its `surfaces`, and `headers` abridged."""

    text: str
    surfaces: tuple[str, ...] = ()
    headers: Abridged = field(default_factory=Abridged)

    def overlay(self, tree: TorchTree) -> dict[str, str]:
        """The headers that are shorter, by their paths in the tree."""
        return self.headers.overlay(tree, "\n".join(map(_source, self.surfaces)))


def of(stakes: Stakes, graph: Includes) -> Part:
    """Of the headers that the probe includes those whose functions mention what is at stake, and
    such surfaces; without a text if there are none."""
    surfaces = {name: _source(name) for name in _SURFACE.findall(UNIT.read_text())}
    concerned = [name for name, source in surfaces.items() if stakes.mentioned(source)]
    reached = _reached(surfaces.values(), graph)
    candidates = {h for h, paths in graph.listed.items() if not reached.isdisjoint(paths)}
    headers = covering(graph, stakes.files & reached, candidates)
    lines = [f"#include <{header}>\n" for header in headers]
    lines += [f'#include "{name}"\n' for name in concerned]
    read = graph.reached(headers) | _reached((surfaces[name] for name in concerned), graph)
    return Part("".join(lines), tuple(concerned), abridged(read, stakes.files))


def _source(surface: str) -> str:
    return (FOLDER / surface).read_text()


def _reached(sources: Iterable[str], graph: Includes) -> set[str]:
    """The files that these sources include."""
    included = {header for source in sources for header in _HEADER.findall(source)}
    return graph.reached(included & graph.listed.keys())
