# SPDX-License-Identifier: BSD-3-Clause
"""Puts liars before the conformance suite, and says who caught them.

    judge.py --lie ID...       these liars (names may hold *), each check that ran, and what it said
    judge.py --surface NAME    the liars that requirements of a surface must catch
    judge.py --layer NAME      the liars of a layer of the backend
    judge.py                   all of them; writes build/liars/kill_matrix.json and docs/liars.md

The backend that does not lie faces the same checks. The status is 0 if those pass, every liar is
caught, and at least 95 % of them as intended.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(f) for f in (ROOT, ROOT / "test", HERE / "backend", HERE / "source")]

# After sys.path is set, hence each E402. court comes first: it decides how torch is imported.
from court import Court  # noqa: E402
from liar import Liar, load  # noqa: E402
from matrix import Matrix  # noqa: E402
from trial import CATALOGUE, Verdict  # noqa: E402

from torch_conformance.pytest_plugin.suite import available_cores  # noqa: E402

MATRIX = ROOT / "build" / "liars" / "kill_matrix.json"
DOCUMENT = ROOT / "docs" / "liars.md"


def main(arguments: list[str]) -> int:
    """The command line; see above."""
    options = _parser().parse_args(arguments)
    liars = _chosen(load(), options)
    if not liars:
        print("no such liar", file=sys.stderr)
        return 4
    if options.list:
        for liar in liars:
            print(f"{liar.layer:<10} {liar.id:<50} {' '.join(liar.requirements)}")
        return 0
    try:
        matrix = _try(liars, options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 4
    print("\n".join([f"{matrix.summary()}, in {matrix.seconds:.0f} s", *matrix.complaints()]))
    selected = options.lie or options.surface or options.layer or options.fast
    if options.json or not selected:
        matrix.write(options.json or MATRIX)
    if not selected:
        DOCUMENT.write_text(matrix.markdown())
    return int(not matrix.good)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lie", nargs="+", default=[], metavar="ID")
    parser.add_argument("--surface", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--layer", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--fast", action="store_true", help="one for each surface and layer")
    parser.add_argument("--list", action="store_true", help="name the liars, try none")
    parser.add_argument("--json", type=Path, help="where to store the matrix")
    parser.add_argument("-n", "--processes", type=int, default=available_cores())
    return parser


def _try(liars: list[Liar], options: argparse.Namespace) -> Matrix:
    begin = time.perf_counter()
    progress = Progress(len(liars), verbose=bool(options.lie))
    with Court(options.processes) as session:
        verdicts = session.judge(liars, progress)
        matrix = Matrix(liars, verdicts, session.truths(liars, verdicts))
    matrix.seconds = time.perf_counter() - begin
    return matrix


def _chosen(liars: dict[str, Liar], options: argparse.Namespace) -> list[Liar]:
    listed = fast(liars.values()) if options.fast else list(liars.values())
    return [
        liar
        for liar in listed
        if (not options.lie or any(fnmatch.fnmatch(liar.id, name) for name in options.lie))
        and (not options.surface or liar.surfaces(CATALOGUE) & set(options.surface))
        and (not options.layer or liar.layer in options.layer)
    ]


def fast(liars: Iterable[Liar]) -> list[Liar]:
    """The first liar of each surface and of each layer; hangs take long, so the gross ones last."""
    found: dict[str, Liar] = {}
    for liar in sorted(liars, key=lambda liar: liar.layer == "gross"):
        for group in (f"layer {liar.layer}", *liar.surfaces(CATALOGUE)):
            found.setdefault(group, liar)
    return list({liar.id: liar for liar in found.values()}.values())


class Progress:
    """One line for each liar as it is judged; with `verbose`, one for each complaint, too."""

    def __init__(self, total: int, verbose: bool) -> None:
        self._total, self._verbose, self._done = total, verbose, 0

    def __call__(self, liar: Liar, verdict: Verdict) -> None:
        self._done += 1
        word = ("killed" if verdict.intended else "ACCIDENT") if verdict.killed else "ALIVE"
        by = verdict.kills[0].check if verdict.kills else verdict.cannot_load or ""
        count = f"[{self._done:>3}/{self._total}]"
        print(f"{count} {word:<8} {liar.id}  {by}  {verdict.seconds:.1f} s", flush=True)
        if self._verbose:
            print(f"    {liar.lie}\n    ran: {', '.join(verdict.outcomes) or 'nothing'}")
            for kill in verdict.kills:
                print(f"    {kill.check} {kill.outcome}: {kill.message}")
        if verdict.broken:
            print(f"    no trial: {verdict.broken}", flush=True)
        if verdict.missed:
            print(f"    missed: {', '.join(verdict.missed)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
