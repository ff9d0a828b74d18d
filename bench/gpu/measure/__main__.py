# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.measure``: time the backend against torch.cuda, in one process.

Sides take turns in short rounds over the same inputs; medians are kept. A result is verified before
it is timed. One line of JSON is appended to --rows for every measurement, as soon as it is there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.gpu.measure import allocator, copies, graph, issue, matmul, streaming
from bench.gpu.measure.case import Case, measure, release
from bench.gpu.measure.scale import REAL, TINY, Scale
from bench.gpu.measure.side import sides

GROUPS: dict[str, Callable[[Scale], Iterator[Case]]] = {
    # Copies first: they gauge what the others are held against.
    "copies": copies.cases,
    "issue": issue.cases,
    "allocator": allocator.cases,
    "streaming": streaming.cases,
    "matmul": matmul.cases,
    "graph": graph.cases,
}


def main() -> int:
    """Measure, and print what is found."""
    arguments = _parser().parse_args()
    scale = TINY if arguments.tiny else REAL
    both = list(sides())
    print("comparing", " and ".join(side.name for side in both), flush=True)
    with Path(arguments.rows).open("a") as rows:
        for group in arguments.only or GROUPS:
            for case in GROUPS[group](scale):
                print(f"{case.group}: {case.name}", end=" ", flush=True)
                row = measure(case, both, scale.pace)
                rows.write(json.dumps(row) + "\n")
                rows.flush()
                medians = [row[side.name] and row[side.name]["median_us"] for side in both]
                print(*medians, *row["problems"].values(), sep=" | ", flush=True)
            release(both)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu.measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", metavar="FILE", required=True, help="JSON lines, appended to")
    parser.add_argument("--tiny", action="store_true", help="sizes that prove nothing, in seconds")
    parser.add_argument("--only", action="append", choices=GROUPS, help="this group; repeatable")
    return parser


if __name__ == "__main__":
    sys.exit(main())
