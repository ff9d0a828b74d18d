# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: small inputs, and what their programs run in."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import deterministic, noise, ramp


def x2(device: torch.device) -> Tensor:
    """A matrix of small, distinct numbers."""
    return ramp((4, 6)).to(device, copy=True)


def x3(device: torch.device) -> Tensor:
    """The same in three dimensions."""
    return ramp((2, 3, 4)).to(device, copy=True)


def ints(device: torch.device, *values: int) -> Tensor:
    """The numbers as int64, of which there may be none."""
    return torch.tensor(values, dtype=torch.int64, device=device)


def image(device: torch.device, *shape: int, seed: int = 0) -> Tensor:
    """Normal values of this shape."""
    return noise(shape, seed=seed).to(device)


def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention without a mask."""
    return functional.scaled_dot_product_attention(query, key, value)


@contextmanager
def filled_memory() -> Iterator[None]:
    """New memory holds NaN, so that what is not written shows; nothing is refused for it."""
    with deterministic(warn_only=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def invertible(device: torch.device, *, complex_: bool = False) -> Tensor:
    """Three matrices of 4 x 4 that are far from singular."""
    a = noise((3, 4, 4)) + 4 * torch.eye(4)
    return (torch.complex(a, noise((3, 4, 4), seed=1)) if complex_ else a).to(device)


@contextmanager
def scoped_library() -> Iterator[torch.library.Library]:
    """Operators defined for one check only."""
    with torch.library._scoped_library("conformance_check", "FRAGMENT") as library:
        yield library
