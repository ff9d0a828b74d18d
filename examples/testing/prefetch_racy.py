# SPDX-License-Identifier: BSD-3-Clause
"""prefetch.py with two mistakes, which its tests find: nothing orders the two streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch


def prefetched(batches: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The batches on the accelerator; each is copied, on a second stream, while its predecessor is
    in use.

    The batches must be in pinned memory: then the copies do not block the program.
    """
    device = torch.accelerator.current_accelerator()
    assert device is not None
    copies = torch.Stream(device)
    ready: torch.Tensor | None = None
    for batch in batches:
        current = ready
        with copies:
            ready = batch.to(device, non_blocking=True)
        if current is not None:
            yield current
    if ready is not None:
        yield ready


def mean(batches: Iterable[torch.Tensor]) -> float:
    """The mean of the means of the batches, computed on the accelerator."""
    means = [batch.mean() for batch in prefetched(batches)]
    return torch.stack(means).mean().item()
