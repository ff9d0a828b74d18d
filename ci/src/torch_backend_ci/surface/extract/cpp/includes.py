# SPDX-License-Identifier: BSD-3-Clause
"""Which file includes which: what of a translation unit a header brings along by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torch_backend_ci.surface.extract.cpp.libclang import Kind, TranslationUnit, included_file


class Includes:
    """Sets of files as integers: a bit per file, because there are 6,000 files and many sets."""

    def __init__(self, edges: Iterable[tuple[str, str]]) -> None:
        self._bits: dict[str, int] = {}
        targets: defaultdict[str, set[str]] = defaultdict(set)
        for source, target in edges:
            targets[source].add(target)
        self._closures = self._close(targets)

    def bit(self, file: str) -> int:
        """The set of one file."""
        return self._bits.setdefault(file, 1 << len(self._bits))

    def closure(self, file: str) -> int:
        """The file and all that it includes, directly or not."""
        return self._closures.get(file) or self.bit(file)

    def _close(self, targets: dict[str, set[str]]) -> dict[str, int]:
        closures = {file: self.bit(file) for file in _inner_first(targets)}
        changed = True
        while changed:  # once more for each level of files that include each other in a circle
            changed = False
            for file, known in list(closures.items()):
                wider = known
                for target in targets.get(file, ()):
                    wider |= closures[target]
                if wider != known:
                    closures[file] = wider
                    changed = True
        return closures


def _inner_first(targets: dict[str, set[str]]) -> list[str]:
    """Every file after those that it includes, but for circles."""
    done: dict[str, None] = {}
    for start in list(targets):
        stack = [(start, False)]
        seen: set[str] = set()
        while stack:
            file, left = stack.pop()
            if left:
                done.setdefault(file)
            elif file not in done and file not in seen:
                seen.add(file)
                stack.append((file, True))
                stack += [(target, False) for target in sorted(targets.get(file, ()))]
    return list(done)


def includes(unit: TranslationUnit) -> Includes:
    """Every #include that the preprocessor met, also those of files that were there already."""
    directives = (c for c in unit.cursor.get_children() if c.kind == Kind.INCLUSION_DIRECTIVE)
    edges = ((c.location.file.name, included_file(c)) for c in directives)
    return Includes((source, target) for source, target in edges if target is not None)
