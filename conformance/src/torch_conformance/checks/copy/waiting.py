# SPDX-License-Identifier: BSD-3-Clause
"""Blocking copies are complete when they return; non_blocking ones do not wait for earlier work."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check, ramp, while_held

#: Pinned memory that a blocking copy reads: elements, the step from one to the next, and the data
#: type that it becomes on the device.
_BLOCKING: dict[str, tuple[int, int, torch.dtype]] = {
    "small": (777, 1, torch.int32),
    "large": (300_001, 1, torch.int32),
    "strided": (777, 3, torch.int32),
    "cast": (777, 1, torch.float32),
}
_BLOCKING_NEEDS = ("pinned_memory", "delay")


@check("copy/blocking_h2d", "COPY-032", cases=_BLOCKING, needs=_BLOCKING_NEEDS)
def a_blocking_copy_has_read_its_pinned_source(dev: Device, case: str) -> None:
    """After a blocking copy from pinned memory the source may be changed at once."""
    count, step, dtype = _BLOCKING[case]
    source = ramp((count,), torch.int32).pin_memory()[::step]
    expected = source.clone()
    target = torch.zeros(source.shape, dtype=dtype, device=dev.device())
    dev.synchronize()
    dev.delay(40)
    target.copy_(source)
    source.fill_(-99)
    dev.assert_equal(target, expected.to(dtype))


@check("copy/blocking_d2h", "COPY-032", cases=_BLOCKING, needs=_BLOCKING_NEEDS)
def a_blocking_copy_has_written_its_pinned_target(dev: Device, case: str) -> None:
    """After a blocking copy to pinned memory the target has the values, without another wait."""
    count, step, dtype = _BLOCKING[case]
    values = ramp((count,), torch.int32)[::step]
    source = values.to(dev.device())
    target = torch.zeros(count, dtype=dtype).pin_memory()[::step]
    dev.synchronize()
    dev.delay(40)
    target.copy_(source)
    assert torch.equal(target, values.to(dtype)), "the copy returned before it wrote"


@check("copy/blocking:on_side_stream", "COPY-032", needs=("streams", *_BLOCKING_NEEDS))
def a_blocking_copy_waits_for_its_own_stream(dev: Device) -> None:
    """A blocking copy on a side stream of the last device is complete when it returns."""
    values = ramp((777,))
    source = values.to(dev.device(dev.count - 1))
    target = torch.zeros(777).pin_memory()
    dev.synchronize()
    with dev.stream(dev.count - 1):
        dev.delay(40)
        target.copy_(source)
        assert torch.equal(target, values), "the copy returned before it wrote"


@check("copy/pinned_h2d_lazy", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_pinned_copy_to_the_device_does_not_wait(dev: Device) -> None:
    """With work queued before it, a non_blocking copy from pinned memory returns at once."""
    source = ramp((1024, 64)).pin_memory()
    target = torch.zeros(1024, 64, device=dev.device())
    dev.synchronize()
    while_held(dev, lambda: target.copy_(source, non_blocking=True))
    dev.assert_equal(target, source)


@check("copy/pinned_h2d_lazy:strided", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_pinned_copy_to_a_strided_target_does_not_wait(dev: Device) -> None:
    """A non_blocking copy from pinned memory returns at once for a target that is not dense."""
    source = ramp((1024, 64)).pin_memory()
    target = torch.zeros(1024, 128, device=dev.device())[:, ::2]
    dev.synchronize()
    while_held(dev, lambda: target.copy_(source, non_blocking=True))
    dev.assert_equal(target, source)


@check("copy/pinned_d2h_lazy", "COPY-017", needs=("pinned_memory", "async_copy", "delay"))
def a_copy_to_pinned_memory_does_not_wait(dev: Device) -> None:
    """A non_blocking copy to pinned memory returns at once and is complete after synchronising."""
    source = ramp((1024, 64))
    there = source.to(dev.device())
    target = torch.zeros(1024, 64).pin_memory()
    dev.synchronize()
    while_held(dev, lambda: target.copy_(there, non_blocking=True))
    dev.synchronize()
    assert torch.equal(target, source)


#: Elements of 12 MiB of float32, and some.
_LARGE_COUNT = 3 * (1 << 20) + 5

#: Which of the two tensors is on the host, in pinned memory: the source or the target.
_PINNED_SIDE = {"h2d": (True, False), "d2h": (False, True), "d2d": (False, False)}


@check(
    "copy/large_lazy",
    "COPY-017",
    cases=_PINNED_SIDE,
    needs=("streams", "pinned_memory", "async_copy", "delay"),
)
def a_large_copy_does_not_wait(dev: Device, case: str) -> None:
    """A non_blocking copy of 12 MiB returns before work ahead of it ends, and comes after it."""
    source, target = (
        torch.full((_LARGE_COUNT,), value).pin_memory()
        if pinned
        else torch.full((_LARGE_COUNT,), value, device=dev.device())
        for value, pinned in zip((5.0, 0.0), _PINNED_SIDE[case], strict=True)
    )
    stream = dev.stream()
    dev.synchronize()

    def look() -> bool:
        target.copy_(source, non_blocking=True)
        return stream.query()

    with stream:
        assert while_held(dev, look) is False, "it waited for the work ahead of it"
    dev.synchronize()
    assert bool((target.cpu() == 5).all()), "the copy is not complete"
