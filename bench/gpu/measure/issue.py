# SPDX-License-Identifier: BSD-3-Clause
"""What it costs the host to issue an operation so small that nothing else counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.gpu.measure import inputs
from bench.gpu.measure.case import Case, Operation
from bench.gpu.measure.scale import Scale
from bench.gpu.measure.side import Side


@dataclass(frozen=True)
class Small:
    """A call that is timed, what it returns, and how its result is made if it does not compute."""

    call: Callable[[], Tensor]
    expected: tuple[float, ...]
    finish: Callable[[Tensor], Tensor] = torch.Tensor.flatten


def _empty(device: torch.device) -> Small:
    # What it returns holds anything, but must be usable.
    return Small(lambda: torch.empty(1, device=device), (1.0,), lambda x: x.fill_(1.0))


def _add(device: torch.device) -> Small:
    x = torch.ones(1, device=device)
    return Small(lambda: torch.add(x, x), (2.0,))


def _add_in_place(device: torch.device) -> Small:
    x, y = torch.ones(1, device=device), torch.zeros(1, device=device)
    return Small(lambda: x.add_(y), (1.0,))


def _sum(device: torch.device) -> Small:
    x = torch.ones(4, device=device)
    return Small(lambda: x.sum(), (4.0,))


def _copy(device: torch.device) -> Small:
    x, y = torch.ones(1, device=device), torch.zeros(1, device=device)
    return Small(lambda: y.copy_(x), (1.0,))


def _mm(device: torch.device) -> Small:
    x = torch.ones(2, 2, device=device)
    return Small(lambda: torch.mm(x, x), (2.0,) * 4)


OPERATIONS: dict[str, Callable[[torch.device], Small]] = {
    "empty, 1 element": _empty,
    "add, 1 element": _add,
    "add_, 1 element": _add_in_place,
    "sum, 4 elements": _sum,
    "copy_ on the device, 1 element": _copy,
    "mm, 2x2": _mm,
}


def cases(scale: Scale) -> Iterator[Case]:
    """The same at every scale: nothing here is large."""
    for name, prepare in OPERATIONS.items():
        yield Case("issue", name, "host", _maker(prepare))


def _maker(prepare: Callable[[torch.device], Small]) -> Callable[[Side], Operation]:
    def make(side: Side) -> Operation:
        small = prepare(side.device)

        def verify() -> None:
            inputs.verify(small.finish(small.call()), torch.tensor(small.expected))

        return Operation(lambda turn: small.call(), verify)

    return make
