# SPDX-License-Identifier: BSD-3-Clause
"""Draws the findings that are judged by hand: the same ones for the same snapshots and seed.

python test/ci/surface/diff_sample.py SEED [FOLDER] prints a sample; with what stands at the place
of each in the trees of FOLDER, one per version (`surface snapshot` leaves them in torch/ of its
cache)
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.surface import snapshot_file
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Declaration, Finding

SIZE = 100
STEPS = (("2.11.0", "2.13.0"), ("2.13.0", "2.15.0"))
SNAPSHOTS = Path(snapshot_file.__file__).parent / "snapshots"


class Drawn(NamedTuple):
    """A finding about the step from one version to the next."""

    step: str
    finding: Finding

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from all others."""
        finding = self.finding
        texts = (d.text if d else "" for d in (finding.before, finding.after))
        return (self.step, finding.rule, finding.name, *texts)


@cache
def findings() -> tuple[Drawn, ...]:
    """All findings of the steps."""
    taken = {v: snapshot_file.read(SNAPSHOTS / f"{v}.json.gz") for step in STEPS for v in step}
    return tuple(
        Drawn(f"{before}-{after}", finding)
        for before, after in STEPS
        for finding in diff(taken[before], taken[after])
    )


def draw(every: Sequence[Drawn], seed: int) -> list[Drawn]:
    """`SIZE` findings: one of every rule of every surface in turn, until there are enough, so that
    neither a rule that finds much nor a large surface hides the others."""
    groups: Mapping[tuple[str, str], list[Drawn]] = defaultdict(list)
    for drawn in sorted(every, key=lambda d: d.key):
        groups[drawn.finding.surface, drawn.finding.rule].append(drawn)
    chance = random.Random(seed)
    piles = [chance.sample(pile, len(pile)) for _, pile in sorted(groups.items())]
    chance.shuffle(piles)
    sample: list[Drawn] = []
    while len(sample) < SIZE and any(piles):
        sample += [pile.pop() for pile in piles if pile]
    return sorted(sample[:SIZE], key=lambda d: d.key)


def _show(number: int, drawn: Drawn, folder: Path | None) -> None:
    finding = drawn.finding
    print(f"== {number} {drawn.step} {finding.severity.value} {finding.surface} {finding.rule}")
    print(f"   {finding.name}: {finding.message}")
    for version, side in zip(drawn.step.split("-"), (finding.before, finding.after), strict=True):
        if side is not None:
            print(f" {version}: {side.text[:300]}  ({side.file}:{side.line})")
            _show_place(side, folder and folder / version)


def _show_place(side: Declaration, root: Path | None) -> None:
    if root is not None and side.line and (root / side.file).is_file():
        lines = (root / side.file).read_text(errors="replace").splitlines()
        print(
            "".join(f"   | {line[:150]}\n" for line in lines[side.line - 2 : side.line + 4]), end=""
        )


if __name__ == "__main__":
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    for at, each in enumerate(draw(findings(), int(sys.argv[1])), 1):
        _show(at, each, place)
