# SPDX-License-Identifier: BSD-3-Clause
"""Copies between devices: their values, and their order with the work of both devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from torch_conformance.authoring.api import DTYPES, Device, apart, check, ramp
from torch_conformance.checks.copy._copies import BASE, UNTOUCHED, CopyTo, View

_PEER_VIEWS: dict[str, View] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1::2, ::3],
    "expanded": lambda x: x[:1].expand(5, -1),
    "conj": lambda x: x.conj(),
    "empty": lambda x: x[:0],
}


@check("copy/peer", "COPY-021", needs=("multi_device", "complex64"), cases=_PEER_VIEWS)
def peer_copies_carry_any_layout(dev: Device, case: str) -> None:
    """A view on one device arrives on another with its values, in both directions."""
    source = ramp(BASE, torch.complex64)
    expected = _PEER_VIEWS[case](source).resolve_conj()
    for first, second in ((0, 1), (1, 0)):
        there = _PEER_VIEWS[case](source.to(dev.device(first))).to(dev.device(second))
        assert there.device == dev.device(second)
        dev.assert_equal(there.resolve_conj(), expected)


#: The (4, 6) part of an (8, 12) tensor that is written, and the data type of what is copied.
_PEER_TARGETS: dict[str, tuple[View, torch.dtype]] = {
    "strided": (lambda x: x.t()[1::2, ::2].t(), torch.float32),
    "row": (lambda x: x[2:6, :6], torch.float32),
    "cast": (lambda x: x.t()[1::2, ::2].t(), torch.int32),
}


@check("copy/peer_into", "COPY-021", needs=("multi_device",), cases=_PEER_TARGETS)
def peer_copies_write_any_layout(dev: Device, case: str) -> None:
    """copy_ from another device writes exactly the elements of a view, in both directions."""
    part, dtype = _PEER_TARGETS[case]
    source = ramp((4, 6), dtype)
    for first, second in ((0, 1), (1, 0)):
        expected = torch.full((8, 12), float(UNTOUCHED))
        actual = expected.to(dev.device(second), copy=True)
        part(expected).copy_(source)
        part(actual).copy_(source.to(dev.device(first)))
        dev.assert_equal(actual, expected)


@check("copy/peer_cast", "COPY-021", needs=("multi_device",), dtypes=DTYPES)
def peer_copies_convert(dev: Device, dtype: torch.dtype) -> None:
    """A copy between devices keeps a data type and converts to another one."""
    source = ramp((5, 6), dtype, positive=True)
    for first, second in ((dev.device(0), dev.device(1)), (dev.device(1), dev.device(0))):
        dev.assert_equal(source.to(first).to(second), source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = torch.zeros(5, 6, device=second).copy_(source.to(first))
            dev.assert_equal(actual, source.to(torch.float32))


_NON_BLOCKING = {"blocking": False, "non_blocking": True}


@check("copy/peer_large", "COPY-021", needs=("multi_device",), cases=_NON_BLOCKING)
def peer_copies_carry_every_element(dev: Device, case: str) -> None:
    """Some ten million odd-sized elements arrive whole, in both directions."""
    source = torch.arange(10_000_019, dtype=torch.int32)
    for first, second in ((0, 1), (1, 0)):
        x = source.to(dev.device(first))
        there = x.to(dev.device(second), non_blocking=_NON_BLOCKING[case])
        dev.assert_equal(there, source)


def _copied(x: torch.Tensor, _: torch.device) -> torch.Tensor:
    result = x.to(x.device, copy=True)
    assert apart(result, x)
    return result


#: Copies of a tensor that end on its own device; the other device is given, too.
_PEER_SELF: dict[str, CopyTo] = {
    "copy": lambda x, _: x.copy_(x),
    "to": _copied,
    "chain": lambda x, other: x.to(other).to(x.device),
}


@check("copy/peer_self", "COPY-021", needs=("multi_device",), cases=_PEER_SELF)
def copies_may_end_where_they_began(dev: Device, case: str) -> None:
    """A copy to the own device, whichever is current, and one there and back keep the values."""
    source = ramp((33, 5))
    for first, second in ((0, 1), (1, 0)):
        result = _PEER_SELF[case](source.to(dev.device(first)), dev.device(second))
        assert result.device == dev.device(first)
        dev.assert_equal(result, source)


@check("copy/peer_waits_for_source", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_waits_for_the_source_device(dev: Device) -> None:
    """Work queued on the source device before the copy is seen by the copy."""
    x = torch.zeros(1024, device=dev.device(0))
    dev.synchronize(0)
    dev.delay(40)
    x.fill_(7)
    dev.assert_equal(x.to(dev.device(1), non_blocking=True), torch.full((1024,), 7.0))


@check("copy/peer_before_source_changes", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_comes_before_later_work_of_the_source(dev: Device) -> None:
    """Work queued on the source device after the copy does not reach the copy."""
    source = ramp((1024,))
    x = source.to(dev.device(0))
    dev.synchronize(0)
    dev.delay(40)
    there = x.to(dev.device(1), non_blocking=True)
    x.fill_(-1)
    dev.assert_equal(there, source)


@check("copy/peer_after_target_work", "COPY-022", needs=("multi_device", "delay"))
def a_peer_copy_comes_after_earlier_work_of_the_target(dev: Device) -> None:
    """Work queued on the destination device before the copy does not overwrite it."""
    source = ramp((1024,))
    x = source.to(dev.device(1))
    target = torch.zeros(1024, device=dev.device(0))
    dev.synchronize(0)
    dev.synchronize(1)
    dev.delay(40)
    target.fill_(-1)
    target.copy_(x, non_blocking=True)
    dev.assert_equal(target, source)


@check("copy/peer_on_side_stream", "COPY-022", needs=("multi_device", "streams", "delay"))
def a_peer_copy_on_a_side_stream_is_ordered(dev: Device) -> None:
    """A copy on a side stream of the source follows that stream and is seen by the target."""
    x = torch.zeros(1024, device=dev.device(0))
    dev.synchronize()
    side = dev.stream(0)
    with side:
        dev.delay(40)
        x.fill_(7)
        there = x.to(dev.device(1), non_blocking=True)
    dev.assert_equal(there + 1, torch.full((1024,), 8.0))
    side.synchronize()


@check("copy/peer_target_stream", "COPY-022", needs=("multi_device", "streams", "delay"))
def a_peer_copy_follows_the_side_stream_of_its_target(dev: Device) -> None:
    """Where a side stream is current on the destination, the copy is in order with its work."""
    source = ramp((1024,))
    x = source.to(dev.device(1))
    target = torch.zeros(1024, device=dev.device(0))
    dev.synchronize()
    with dev.stream(0):
        dev.delay(40)
        target.fill_(-1)
        target.copy_(x, non_blocking=True)
        seen = target + 1
        target.fill_(-1)
        assert torch.equal(seen.cpu(), source + 1)


@check("copy/peer_source_freed", "COPY-022", needs=("multi_device", "delay"))
def memory_of_a_peer_copy_is_not_used_again_too_early(dev: Device) -> None:
    """A source may be dropped while its copy is queued; what gets its memory comes after that."""
    source = ramp((4096,))
    dev.synchronize()
    x = source.to(dev.device(0))
    dev.delay(40)
    there = x.to(dev.device(1), non_blocking=True)
    del x
    later = [torch.full((4096,), -1.0, device=dev.device(0)) for _ in range(4)]
    dev.assert_equal(there, source)
    dev.assert_equal(later[0], torch.full((4096,), -1.0))


@check("copy/peer_keeps_current_device", "COPY-030", needs=("multi_device",))
def a_peer_copy_leaves_the_current_device(dev: Device) -> None:
    """Copying to, from and between other devices does not change the current device."""
    before = torch.accelerator.current_device_index()
    first, second = (ramp((4,)).to(dev.device(index)) for index in (0, 1))
    copies: dict[str, Callable[[], object]] = {
        "from the host": lambda: ramp((4,)).to(dev.device(1)),
        "to another device": lambda: first.to(dev.device(1)),
        "from another device": lambda: second.to(dev.device(0)),
        "into another device": lambda: second.copy_(first),
        "to the host": second.cpu,
        "to Python": second[0].item,
    }
    for name, copy in copies.items():
        copy()
        assert torch.accelerator.current_device_index() == before, name
