# SPDX-License-Identifier: BSD-3-Clause
"""Draws the hits that are judged by hand: the same ones for the same audit and seed.

python test/ci/surface/coupling_sample.py DIR SEED   prints a sample: each hit in its context
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from torch_backend_ci.surface.coupling.audit import audit
from torch_backend_ci.surface.coupling.rules import Hit, load

SIZE = 100
AT_LEAST = 3  # of each rule, however rare


def draw(hits: Iterable[Hit], seed: int) -> list[Hit]:
    """`SIZE` hits: some of every rule, the rest in proportion to how often a rule hits."""
    by_rule: dict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        by_rule[hit.rule].append(hit)
    chance = random.Random(seed)
    sample: list[Hit] = []
    rest: list[Hit] = []
    for rule in sorted(by_rule):
        shuffled = chance.sample(by_rule[rule], len(by_rule[rule]))
        sample += shuffled[:AT_LEAST]
        rest += shuffled[AT_LEAST:]
    sample += chance.sample(rest, min(SIZE - len(sample), len(rest)))
    return sorted(sample, key=lambda hit: (hit.rule, hit.file, hit.line, hit.symbol))


def _show(folder: Path, hit: Hit) -> None:
    print(f"== {hit.rule} {hit.file}:{hit.line} {hit.symbol}")
    if hit.line:
        lines = (folder / hit.file).read_text(errors="replace").splitlines()
        print("\n".join(line[:160] for line in lines[max(0, hit.line - 4) : hit.line + 3]))


if __name__ == "__main__":
    tree = Path(sys.argv[1])
    for hit in draw(audit(tree, load()).hits, int(sys.argv[2])):
        _show(tree, hit)
