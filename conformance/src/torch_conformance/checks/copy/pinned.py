# SPDX-License-Identifier: BSD-3-Clause
"""Copies from and to pinned memory are right, in any layout and from any thread."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, in_thread, ramp
from torch_conformance.checks.copy._copies import BASE, LAYOUTS, READABLE, UNTOUCHED, View


@check("copy/pinned_h2d", "COPY-016", needs=("pinned_memory",))
def a_pinned_source_is_copied_correctly(dev: Device) -> None:
    """A non_blocking copy from pinned memory is right after synchronisation."""
    source = ramp((1024, 257))
    pinned = source.pin_memory()
    assert pinned.is_pinned()
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source)


@check("copy/pinned_view:h2d", "COPY-016", needs=("pinned_memory",))
def a_view_of_pinned_memory_is_read_correctly(dev: Device) -> None:
    """A non_blocking copy from a strided part of pinned memory moves that part."""
    source = ramp((64, 48))
    pinned = source.pin_memory()[::2, 1:]
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source[::2, 1:])


@check("copy/pinned_view:d2h", "COPY-016", needs=("pinned_memory",))
def a_view_of_pinned_memory_is_written_correctly(dev: Device) -> None:
    """A non_blocking copy to a strided part of pinned memory writes that part only."""
    source = ramp((64, 48))
    expected = torch.full((64, 48), float(UNTOUCHED))
    target = expected.pin_memory()
    target[::2, 1:].copy_(source[::2, 1:].to(dev.device()), non_blocking=True)
    expected[::2, 1:] = source[::2, 1:]
    dev.synchronize()
    assert torch.equal(target, expected)


@check("copy/pinned_layout_h2d", "COPY-016", needs=("pinned_memory",), cases=READABLE)
def pinned_memory_of_any_layout_is_read(dev: Device, case: str) -> None:
    """A non_blocking copy from a view of pinned memory reads exactly its elements."""
    source = ramp(BASE)
    there = READABLE[case](source.pin_memory()).to(dev.device(), non_blocking=True)
    dev.assert_equal(there, READABLE[case](source))


@check("copy/pinned_layout_d2h", "COPY-016", needs=("pinned_memory",), cases=LAYOUTS)
def pinned_memory_of_any_layout_is_written(dev: Device, case: str) -> None:
    """A non_blocking copy to a view of pinned memory writes its elements and no others."""
    expected = torch.full(BASE, float(UNTOUCHED))
    source = ramp(LAYOUTS[case](expected).shape)
    target = expected.pin_memory()
    LAYOUTS[case](target).copy_(source.to(dev.device()), non_blocking=True)
    LAYOUTS[case](expected).copy_(source)
    dev.synchronize()
    assert torch.equal(target, expected)


@check("copy/pinned_reuse", "COPY-018", needs=("pinned_memory", "delay"))
def pinned_memory_is_not_reused_under_a_pending_copy(dev: Device) -> None:
    """Freeing a pinned source early must not hand its block to the next allocation."""
    expected = ramp((64 * 1024,))
    pinned = expected.pin_memory()
    dev.synchronize()
    dev.delay(60)
    target = pinned.to(dev.device(), non_blocking=True)
    del pinned
    thieves = [torch.full((64 * 1024,), -1.0).pin_memory() for _ in range(3)]
    dev.assert_equal(target, expected)
    assert all(thief.is_pinned() for thief in thieves)


@check("copy/data_loader", "COPY-029", needs=("pinned_memory", "threads"))
def a_data_loader_pins_its_batches(dev: Device) -> None:
    """DataLoader(pin_memory=True) yields pinned batches that copy correctly."""
    from torch.utils.data import DataLoader, TensorDataset

    source = ramp((12, 5))
    loader = DataLoader(TensorDataset(source), batch_size=4, pin_memory=True)
    batches = []
    for (batch,) in loader:
        assert batch.is_pinned()
        batches.append(batch.to(dev.device(), non_blocking=True))
    dev.assert_equal(torch.cat(batches), source)


@check("copy/pinned_in_thread", "COPY-029", needs=("pinned_memory", "threads"))
def any_thread_can_pin(dev: Device) -> None:
    """A thread that has not used the device pins memory, as a DataLoader with workers does."""
    source = ramp((12, 5))
    pinned = in_thread(source.pin_memory)
    assert pinned.is_pinned()
    dev.assert_equal(pinned.to(dev.device(), non_blocking=True), source)


_SENT: dict[str, View] = {"contiguous": lambda x: x, "strided": lambda x: x[::2, 1:]}


@check("copy/to_cpu_non_blocking", "COPY-016", cases=_SENT)
def to_cpu_non_blocking_is_right_after_synchronising(dev: Device, case: str) -> None:
    """to("cpu", non_blocking=True) holds the values once the device was synchronised."""
    if dev.is_accelerator:
        dev.require("pinned_memory")  # torch puts the result there
    source = ramp((300, 40))
    result = _SENT[case](source.to(dev.device())).to("cpu", non_blocking=True)
    dev.synchronize()
    assert torch.equal(result, _SENT[case](source))
