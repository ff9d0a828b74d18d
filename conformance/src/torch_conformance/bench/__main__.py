# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_conformance.bench --device NAME``: the speed of a device against the CPU.

Device and CPU take turns in short rounds, so that whatever else the machine does hits both; the
medians over the rounds are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from torch_conformance.authoring.backend import AUTOLOAD
from torch_conformance.running.loading import bring_up
from torch_conformance.spec.descriptor import Descriptor, DescriptorError, find, load
from torch_conformance.spec.outcome import CannotLoad


def main() -> int:
    """Parse, measure, print."""
    arguments = _parser().parse_args()
    os.environ[AUTOLOAD] = "0"
    # One thread on both sides: a ratio must not depend on how many cores the CPU side found.
    os.environ.setdefault("OMP_NUM_THREADS", str(arguments.threads))
    try:
        target = _descriptor(arguments)
        device = bring_up(target)
    except (DescriptorError, CannotLoad) as error:
        print(f"{arguments.device or arguments.backend_file}: {error}", file=sys.stderr)
        return 2
    import torch

    from torch_conformance.authoring.device import Device
    from torch_conformance.bench import latency, operators
    from torch_conformance.bench.timing import HEADER

    torch.set_num_threads(arguments.threads)
    dev = Device(target, device)
    print(f"device {device} against cpu, torch {torch.__version__}, medians")
    print(HEADER, flush=True)
    rows = []
    for group, measure in (("basics", latency.measure), ("operators", operators.measure)):
        if arguments.only in (None, group):
            for row in measure(dev, arguments.rounds):
                print(row.line(), flush=True)
                rows.append(row)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([row.to_json() for row in rows], indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m torch_conformance.bench", description=__doc__)
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--device", metavar="NAME", help="backend, as for pytest's --backend")
    subject.add_argument("--backend-file", metavar="FILE", help="descriptor of another backend")
    parser.add_argument(
        "--only",
        choices=("basics", "operators"),
        help="basics: calls, copies, waiting; operators: pointwise, reductions, matmul, training",
    )
    parser.add_argument("--rounds", type=int, default=15, help="rounds of every operation")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file, too")
    return parser


def _descriptor(arguments: argparse.Namespace) -> Descriptor:
    if arguments.backend_file:
        return load(Path(arguments.backend_file))
    return find(arguments.device)


if __name__ == "__main__":
    sys.exit(main())
