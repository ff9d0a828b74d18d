# SPDX-License-Identifier: BSD-3-Clause
"""Judge mutations of headers by reading what is at stake and by reading everything: is the report
the same?

python test/ci/surface/part_bench.py compares those that are read in part, a minute of computing
each; with words as its argument those that have them in their title. Each line has the seconds of
computing of both.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unittest import mock

from installed import installed_snapshot
from mutation import Mutation, load, patch_of
from trees import installed_tree

from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.check import change, judge, stakes
from torch_backend_ci.surface.check.reading import ALL_HEADERS
from torch_backend_ci.surface.report import Report
from torch_backend_ci.torch_tree.cache import default_folder


@dataclass(frozen=True)
class Judged:
    """The report, whether all headers were read for it, and seconds of computing."""

    report: Report
    whole: bool
    seconds: float


def of_headers() -> list[Mutation]:
    """The mutations of headers, as patches of the installed torch."""
    every = [m for m in load() if not m.restores]
    return [m for m in every if any(f.startswith("torch/include/") for f in m.files)]


def in_part(mutation: Mutation) -> Judged:
    """By what is at stake; by everything if that cannot be told or turns out not to be all."""
    tree = installed_tree()
    patch = patch_of(tree.root, mutation.edits).encode()
    base = judge.Base(tree, installed_snapshot, default_folder())
    said: list[str] = []
    begun = _computed()
    changed = change.of_patch(tree, patch)
    report = judge.judge(base, changed, "the patch", catalogue.load(), said.append)
    whole = any(ALL_HEADERS in line for line in said)
    return Judged(report, whole, _computed() - begun)


def as_a_whole(mutation: Mutation) -> Judged:
    """By reading all headers and the whole probe."""
    with mock.patch.object(stakes, "at_stake", return_value=None):
        return in_part(mutation)


def differences(one: Report, other: Report) -> Iterator[str]:
    """What one report has and the other has not."""
    for sign, here, there in (("+", one, other), ("-", other, one)):
        yield from (f"{sign} {f}" for f in here.findings if f not in there.findings)
    if (one.verdict, one.notes, one.not_covered) != (other.verdict, other.notes, other.not_covered):
        yield f"{one.verdict} {one.notes} {one.not_covered}"
        yield f"{other.verdict} {other.notes} {other.not_covered}"
    elif one != other:
        yield "the reports have another order"


def _computed() -> float:
    whos = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, whos))


def compare(mutations: Iterable[Mutation]) -> bool:
    """Print how each is judged; whether the reports are the same."""
    same = True
    for mutation in mutations:
        part = in_part(mutation)
        if part.whole:
            print(f"all   {part.seconds:5.1f}        {mutation.title}", flush=True)
            continue
        whole = as_a_whole(mutation)
        different = list(differences(part.report, whole.report))
        word = "WRONG" if different else "same"
        print(f"{word:6}{part.seconds:5.1f} {whole.seconds:5.1f}  {mutation.title}", flush=True)
        print(*different, sep="\n", end="\n" if different else "", flush=True)
        same &= not different
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="?", default="", help="part of the titles")
    words = parser.parse_args().words
    return 0 if compare(m for m in of_headers() if words.lower() in m.title.lower()) else 1


if __name__ == "__main__":
    sys.exit(main())
