# SPDX-License-Identifier: BSD-3-Clause
"""Errors are raised in the thread that caused them, and in no other."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, in_thread, in_threads, raised


def _refused_view(dev: Device) -> str:
    """Do something wrong; return the name of the exception that was raised."""
    x = torch.ones(3, device=dev.device())
    return type(raised(lambda: x.view(7))).__name__


def _sums(dev: Device) -> str:
    """Compute, and compare with what is right."""
    for _ in range(20):
        x = torch.ones(3, device=dev.device())
        dev.assert_equal(x + 1, torch.full((3,), 2.0))
    return "right"


@check("error/thread:delivered_there", "ERR-010", needs=("threads",))
def errors_are_raised_in_their_thread(dev: Device) -> None:
    """An error is raised in the thread that caused it."""
    assert in_thread(lambda: _refused_view(dev)) == "RuntimeError"


@check("error/thread:others_unharmed", "ERR-010", needs=("threads",))
def errors_do_not_disturb_other_threads(dev: Device) -> None:
    """An error in one thread does not disturb what other threads compute."""
    results = in_threads([lambda: _refused_view(dev), lambda: _sums(dev)] * 4)
    assert results == ["RuntimeError", "right"] * 4
