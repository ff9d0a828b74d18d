# SPDX-License-Identifier: BSD-3-Clause
"""copy_ broadcasts its source, and refuses shapes that do not fit and memory that overlaps."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, raised, ramp
from torch_conformance.checks.copy._copies import BASE, DIRECTIONS


@check("copy/broadcast", "COPY-009", cases=DIRECTIONS)
def copy_broadcasts_its_source(dev: Device, case: str) -> None:
    """copy_ broadcasts a smaller source into the destination."""
    source_on, target_on = DIRECTIONS[case](dev)
    for shape in ((4,), (3, 1), (1, 1), ()):
        source = ramp(shape)
        target = torch.zeros(3, 4, device=target_on)
        target.copy_(source.to(source_on))
        dev.assert_equal(target, source.expand(3, 4))


@check("copy/shape_mismatch", "COPY-009", cases=DIRECTIONS)
def copy_rejects_shapes_that_do_not_broadcast(dev: Device, case: str) -> None:
    """copy_ with an incompatible shape raises RuntimeError and leaves the destination alone."""
    source_on, target_on = DIRECTIONS[case](dev)
    target = torch.ones(3, 4, device=target_on)
    error = raised(lambda: target.copy_(torch.zeros(5, device=source_on)), by=dev.synchronize)
    assert isinstance(error, RuntimeError)
    dev.assert_equal(target, torch.ones(3, 4))


@check("copy/self", "COPY-010")
def copying_a_tensor_to_itself_changes_nothing(dev: Device) -> None:
    """x.copy_(x) returns x and leaves its values, for dense and strided views."""
    source = ramp(BASE)
    x = source.to(dev.device())
    assert x.copy_(x) is x
    view = x[::2, 1:]
    view.copy_(view)
    dev.assert_equal(x, source)


@check("copy/overlap:expanded", "COPY-010")
def a_destination_that_overlaps_itself_is_rejected(dev: Device) -> None:
    """copy_ into an expanded tensor raises RuntimeError."""
    source = torch.ones(3, 4, device=dev.device())
    target = torch.zeros(4, device=dev.device()).expand(3, 4)
    assert isinstance(raised(lambda: target.copy_(source), by=dev.synchronize), RuntimeError)


@check("copy/overlap:shifted", "COPY-010")
def a_destination_that_overlaps_its_source_is_rejected(dev: Device) -> None:
    """copy_ into a part of its own source raises RuntimeError."""
    x = torch.zeros(6, device=dev.device())
    assert isinstance(raised(lambda: x[1:].copy_(x[:-1]), by=dev.synchronize), RuntimeError)
