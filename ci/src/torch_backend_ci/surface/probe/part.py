# SPDX-License-Identifier: BSD-3-Clause
"""The part of the probe that can say something else after a change.

Two thirds of the probe's time go into functions of a line that a build writes, five thousand of
them, one for each operator. Where such a file mentions nothing that is at stake they compile as
before, and the probe is compiled without their bodies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch_backend_ci.surface.check.reach import Includes
from torch_backend_ci.surface.check.stakes import Stakes, covering
from torch_backend_ci.surface.probe import FOLDER, UNIT
from torch_backend_ci.torch_tree import TorchTree, layout

_SURFACE = re.compile(r'^#include "(surfaces/\w+\.h)"', re.MULTILINE)
_INLINE = re.compile(
    r"^(?!.*\b(?:auto|constexpr)\b)(?P<head>(?P<declared>[^\n(]*)\([^\n]*\)(?: const)?) *\{\n"
    r" *return [^\n]*;\n *\}",
    re.MULTILINE,
)
_HEADER = re.compile(r"^\s*#\s*include <([^>]+\.h(?:pp)?)>", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """`text` is compiled in place of probe.cpp, `bodiless` are files of the tree without bodies."""

    text: str
    bodiless: tuple[str, ...] = ()


def of(stakes: Stakes, graph: Includes) -> Part:
    """Of the headers that the probe includes those whose functions mention what is at stake, and
    such surfaces; without a text if there are none."""
    surfaces = {name: (FOLDER / name).read_text() for name in _SURFACE.findall(UNIT.read_text())}
    concerned = [name for name, source in surfaces.items() if stakes.mentioned(source)]
    included = {header for source in surfaces.values() for header in _HEADER.findall(source)}
    reached = graph.reached(included & graph.listed.keys())
    candidates = {h for h, paths in graph.listed.items() if not reached.isdisjoint(paths)}
    headers = covering(graph, stakes.files & reached, candidates)
    lines = [f"#include <{header}>\n" for header in headers]
    lines += [f'#include "{name}"\n' for name in concerned]
    written = (path for path in reached if layout.is_generated(path))
    return Part("".join(lines), tuple(sorted(set(written) - stakes.files)))


def overlay(tree: TorchTree, part: Part) -> dict[str, str]:
    """The files without bodies, as far as they have some, by their paths in the tree."""
    there = (path for path in part.bodiless if (tree.root / path).is_file())
    texts = ((path, (tree.root / path).read_text(errors="replace")) for path in there)
    return {path: _INLINE.sub(_bodiless, text) for path, text in texts if _INLINE.search(text)}


def _bodiless(match: re.Match[str]) -> str:
    """A declaration in as many lines; nothing for a member, which its class has declared."""
    lines = "\n" * match[0].count("\n")
    return lines if "::" in match["declared"].rpartition(" ")[2] else f"{match['head']};{lines}"
