# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.parity.compare EXPECTED FOUND``: do two drivers agree?

Prints one line for every case on which they do not, and last a line of JSON with the counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from torch import Tensor

from bench.gpu.parity.cases import Case, cases
from bench.gpu.parity.collect import SIZE, SMALL, Found, read
from torch_conformance.authoring import tolerances


def main() -> int:
    """0 if they agree on everything, else 1."""
    arguments = _parser().parse_args()
    every = list(cases(SMALL, ("float32",)) if arguments.small else cases(SIZE))
    expected, found = (dict(read(Path(file))) for file in (arguments.expected, arguments.found))
    apart = differences(every, expected, found)
    for line in apart:
        print(line)
    drawn = sum(case.name.startswith("random/") for case in every)
    print(json.dumps({"cases": len(every), "of random numbers": drawn, "apart": len(apart)}))
    return 1 if apart else 0


def differences(
    every: list[Case],
    expected: dict[str, tuple[Tensor, ...] | str],
    found: dict[str, tuple[Tensor, ...] | str],
) -> list[str]:
    """One line for each case that differs, raised, or is missing on either side."""
    lines = []
    for case in every:
        reason = _apart(case, expected.get(case.name), found.get(case.name))
        if reason:
            lines.append(f"{case.name}: {reason}")
    return lines


def _apart(case: Case, want: Found | object, got: Found | object) -> str | None:
    for side, value in (("the first", want), ("the second", got)):
        if value is None:
            return f"{side} has no result"
        if isinstance(value, str):
            return f"{side} raised {value}"
    assert isinstance(want, tuple) and isinstance(got, tuple)
    if len(want) != len(got):
        return f"{len(want)} results against {len(got)}"
    reasons = (_differs(case, a, b) for a, b in zip(want, got, strict=True))
    return next((reason for reason in reasons if reason), None)


def _differs(case: Case, want: Tensor, got: Tensor) -> str | None:
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{want.dtype} {tuple(want.shape)} against {got.dtype} {tuple(got.shape)}"
    if case.exact or not want.is_floating_point():
        wrong = _bits(want) != _bits(got)
    else:
        wrong = ~_close(want, got, case.slack)
    if not wrong.any():
        return None
    index = int(wrong.flatten().nonzero()[0])
    first, second = (tensor.flatten()[index].item() for tensor in (want, got))
    count = int(wrong.sum())
    return f"{count} of {wrong.numel()} elements; the first, {index}, is {first!r} and {second!r}"


def _close(want: Tensor, got: Tensor, slack: float) -> Tensor:
    rtol, atol = tolerances.load().dtypes[str(want.dtype).removeprefix("torch.")]
    return torch.isclose(
        got.double(), want.double(), rtol=slack * rtol, atol=slack * atol, equal_nan=True
    )


def _bits(tensor: Tensor) -> Tensor:
    """The same memory as whole numbers: NaN equals itself, and -0 is not 0."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(whole[tensor.element_size()])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.parity.compare", description=__doc__)
    parser.add_argument("expected", metavar="EXPECTED", help="of the driver that is trusted")
    parser.add_argument("found", metavar="FOUND", help="of the driver to be judged")
    parser.add_argument("--small", action="store_true", help="as collect was told")
    return parser


if __name__ == "__main__":
    sys.exit(main())
