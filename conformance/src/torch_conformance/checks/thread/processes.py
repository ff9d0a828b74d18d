# SPDX-License-Identifier: BSD-3-Clause
"""Processes that are spawned, and workers of data loaders."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.utils.data import DataLoader, TensorDataset

from torch_conformance.authoring.api import (
    Device,
    check,
    why_ended,
)
from torch_conformance.authoring.backend import prelude

_SPAWN = """
import torch, torch.multiprocessing
child = {child!r}
torch.ones(2, device={type!r}).sum().item()
context = torch.multiprocessing.get_context("spawn")
results = context.Queue()
process = context.Process(target=exec, args=(child, {{"results": results}}))
process.start()
process.join(50)
assert process.exitcode == 0, process.exitcode
value = results.get(timeout=5)
assert value == [1.0, 2.0, 3.0], value
print("spawned")
"""


@check("thread/spawn", "THREAD-013", needs=("accelerator",), deadline=180)
def spawned_processes_use_the_device(dev: Device) -> None:
    """A spawned process uses the device although its parent did before."""
    child = prelude(dev.descriptor, "load") + (
        f"import torch\nresults.put((torch.arange(3.0).to({dev.type!r}) + 1).tolist())\n"
    )
    done = dev.python(_SPAWN.format(child=child, type=dev.type))
    assert done.returncode == 0 and "spawned" in done.stdout, why_ended(done)


class _Loader(NamedTuple):
    """How a DataLoader brings batches to the device."""

    pinned: bool = False
    workers: int = 0
    non_blocking: bool = False


_LOADERS = {
    "plain": _Loader(),
    "pinned": _Loader(pinned=True),
    "pinned_non_blocking": _Loader(pinned=True, non_blocking=True),
    "workers": _Loader(workers=1),
    "workers_pinned": _Loader(workers=1, pinned=True),
}
_FORKED = {name: "fork" for name, loader in _LOADERS.items() if loader.workers}


@check("thread/data_loader", "THREAD-014", cases=_LOADERS, case_needs=_FORKED)
def data_loaders_feed_the_device(dev: Device, case: str) -> None:
    """A DataLoader, with worker processes or a pinning thread, feeds the device in order."""
    pinned, workers, non_blocking = _LOADERS[case]
    if pinned:
        dev.require("pinned_memory", "threads")
    torch.ones(1, device=dev.device()).item()  # in use before the workers are forked
    loader = DataLoader(
        TensorDataset(torch.arange(40.0).reshape(20, 2)),
        batch_size=5,
        pin_memory=pinned,
        num_workers=workers,
        timeout=30 if workers else 0,
    )
    seen = []
    for (batch,) in loader:
        assert batch.is_pinned() == pinned
        seen.append(batch.to(dev.device(), non_blocking=non_blocking))
    dev.assert_equal(torch.cat(seen), torch.arange(40.0).reshape(20, 2))
