# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.parity.collect``: compute every case on the driver that PUONE_DRIVER names.

Results go to --out one after another, so that those before a crash are there. With --small it is
also what the memory checker watches: every kind of kernel, few elements.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from bench.gpu.parity.cases import cases

SIZE, SMALL = 100_003, 1_003
# A case's name with its tensors, or with the words of the exception.
Found = tuple[str, "tuple[Tensor, ...] | str"]


def main() -> int:
    """Compute and write."""
    arguments = _parser().parse_args()
    import torch_puone

    print("driver:", torch_puone.driver_info()["path"], flush=True)
    device = torch.device(torch_puone._registration.NAME, 0)
    with Path(arguments.out).open("wb") as out:
        for found in compute(device, arguments.small):
            pickle.dump(found, out)
            out.flush()
    return 0


def compute(device: torch.device, small: bool) -> Iterator[Found]:
    """All cases in order; what raises is a result, too."""
    chosen = cases(SMALL, ("float32",)) if small else cases(SIZE)
    for case in chosen:
        print(case.name, flush=True)
        try:
            yield case.name, tuple(tensor.cpu() for tensor in case.compute(device))
        except Exception as error:
            yield case.name, f"{type(error).__name__}: {error}"


def read(file: Path) -> Iterator[Found]:
    """What was written, up to where the process ended."""
    with file.open("rb") as stream:
        while True:
            try:
                yield pickle.load(stream)
            except (EOFError, pickle.UnpicklingError):
                return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu.parity.collect",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="where results go")
    parser.add_argument("--small", action="store_true", help="few elements, float32 only")
    return parser


if __name__ == "__main__":
    sys.exit(main())
