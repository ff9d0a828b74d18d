# SPDX-License-Identifier: BSD-3-Clause
"""What work does to memory that is not its own: neighbours, the host's, and what is far away."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, footprint, heap_bytes, resident_bytes

MIB = 1 << 20

# ---- neighbours ------------------------------------------------------------------------------

#: Sizes beside what vector instructions and blocks of threads work on.
_LENGTHS = (1, 3, 7, 31, 33, 127, 257, 1025)
_MARGIN = 67
_CANARY = 77


def _source(target: Tensor, seed: int = 3) -> Tensor:
    return (torch.arange(target.numel()) % seed).to(target.dtype).to(target.device)


_WRITERS: dict[str, Callable[[Tensor], object]] = {
    "fill": lambda x: x.fill_(1),
    "zero": lambda x: x.zero_(),
    "copy": lambda x: x.copy_(_source(x)),
    "from_host": lambda x: x.copy_(_source(x).cpu()),
    "cast": lambda x: x.copy_(_source(x).to(torch.float64)),
    "add": lambda x: torch.add(_source(x), _source(x), out=x),
    "in_place": lambda x: x.mul_(0),
    "scalar": lambda x: torch.mul(_source(x), 2, out=x),
    "where": lambda x: x.masked_fill_(_source(x) == 1, 2),
    "cumsum": lambda x: torch.cumsum(_source(x), 0, out=x),
    "sort": lambda x: torch.sort(_source(x), out=(x, torch.empty_like(x, dtype=torch.int64))),
    "cat": lambda x: torch.cat([_source(x)[:1], _source(x)[1:]], out=x),
    "index_select": lambda x: torch.index_select(_source(x), 0, _source(x).long(), out=x),
    "scatter": lambda x: x.scatter_(0, _source(x).long(), 5),
    "random": lambda x: x.random_(0, 5),
    "arange": lambda x: torch.arange(x.numel(), out=x),
}


@check(
    "footprint/bounds",
    "FOOT-001",
    cases=tuple(_WRITERS),
    case_needs={"cast": "float64"},
    dtypes=("uint8", "int32", "float32"),
    needs=("accelerator",),
)
def neighbours_are_left_alone(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A result in the middle of a larger buffer leaves the elements around it as they were."""
    for length in _LENGTHS:
        buffer = torch.full((length + 2 * _MARGIN,), _CANARY, dtype=dtype, device=dev.device())
        _WRITERS[case](buffer[_MARGIN:-_MARGIN])
        around = dev.cpu(buffer)
        for side, margin in (("before", around[:_MARGIN]), ("behind", around[-_MARGIN:])):
            hit = (margin != _CANARY).nonzero().flatten().tolist()
            assert not hit, f"{case} of {length} elements changed {len(hit)} {side} its result"


# ---- the host's ------------------------------------------------------------------------------

_STEPS = 48
_ALLOWED = 12 * MIB


def _train(x: Tensor) -> None:
    weight = x.detach().requires_grad_()
    (x @ weight).relu().sum().backward()


_STEADY: dict[str, Callable[[Tensor], object]] = {
    "operators": lambda x: (x + 1).sum(0).mul_(2),
    "copies": lambda x: x.cpu().to(x.device),
    "backward": _train,
    "views": lambda x: x.t()[1:].contiguous(),
    "failures": lambda x: _refused(lambda: x @ x[1:]),
}


def _refused(call: Callable[[], object]) -> None:
    try:
        call()
    except RuntimeError:
        return
    raise AssertionError("the operator was to raise")


@check("footprint/host_leak", "FOOT-002", cases=tuple(_STEADY), needs=("accelerator",))
def steady_work_takes_no_more_host_memory(dev: Device, case: str) -> None:
    """The process does not grow by what the same work does again and again."""
    x = torch.ones(32, 32, device=dev.device())

    def work() -> int:
        for _ in range(_STEPS):
            _STEADY[case](x)
        dev.synchronize()
        gc.collect()
        return resident_bytes()

    work()
    before = work()
    grown = work() - before
    assert grown < _ALLOWED, f"{_STEPS} times the same work took {grown / MIB:.0f} MiB of the host"


def _waits(x: Tensor, beside: torch.Stream) -> None:
    here = torch.accelerator.current_stream(x.device.index)
    beside.wait_stream(here)
    here.wait_stream(beside)


def _used_by(x: Tensor, beside: torch.Stream) -> None:
    y = x.clone()
    beside.wait_stream(torch.accelerator.current_stream(x.device.index))
    with beside:
        y.zero_()
    y.record_stream(beside)


def _make_stream(x: Tensor, beside: torch.Stream) -> None:
    here = torch.accelerator.current_stream(x.device.index)
    with torch.Stream(x.device) as made:
        made.wait_stream(here)
        x.zero_()
    here.wait_stream(made)


#: What is done again and again with a tensor, and with a stream beside the current one.
_REPEATED: dict[str, Callable[[Tensor, torch.Stream], object]] = {
    "launch": lambda x, beside: x.add_(1),
    "allocate": lambda x, beside: torch.empty(999, device=x.device),
    "copy": lambda x, beside: x[:3].copy_(x[5:8]),
    "copy_in": lambda x, beside: x.copy_(torch.zeros(32, 32)),
    "copy_in_queued": lambda x, beside: x.copy_(torch.zeros(32, 32), non_blocking=True),
    "copy_out": lambda x, beside: x.cpu(),
    "item": lambda x, beside: x[0, 0].item(),
    "pin": lambda x, beside: x.copy_(torch.zeros(32, 32).pin_memory(), non_blocking=True),
    "stream": _make_stream,
    "wait": _waits,
    "record_stream": _used_by,
    "synchronize": lambda x, beside: beside.record_event().synchronize(),
    "query": lambda x, beside: beside.record_event().query(),
}
_REPEATED_NEEDS = {
    "pin": "pinned_memory",
    "record_stream": "record_stream",
    "wait": "events",
    "synchronize": "events",
    "query": "events",
}
#: Repeats of a round, rounds, and bytes that a repeat may leave on average.
_REPEATS, _ROUNDS, _KEPT = 500, 24, 8


@check(
    "footprint/heap",
    "FOOT-002",
    cases=tuple(_REPEATED),
    case_needs=_REPEATED_NEEDS,
    needs=("accelerator", "streams"),
)
def repeated_calls_leave_nothing_on_the_heap(dev: Device, case: str) -> None:
    """What native code allocates for a launch, copy, wait or stream is freed with it."""
    x, beside = torch.ones(32, 32, device=dev.device()), dev.stream()

    def kept() -> int:
        held = heap_bytes()
        for repeat in range(_REPEATS):
            _REPEATED[case](x, beside)
            if repeat % 10 == 0:  # so that a pool grows to what ten calls in flight need
                dev.synchronize()
        dev.synchronize()
        gc.collect()
        return heap_bytes() - held

    before, rounds = footprint(), [kept(), kept()]
    # Pools and caches fill at first; a leak goes on in every round.
    while len(rounds) < _ROUNDS and max(rounds[-2:]) >= _KEPT * _REPEATS:
        rounds.append(kept())
    assert max(rounds[-2:]) < _KEPT * _REPEATS, f"{_REPEATS} times keep, by round, {rounds} bytes"
    after = footprint()
    assert after.descriptors <= before.descriptors + 4, (
        f"file descriptors: {before.descriptors} -> {after.descriptors}"
    )


# ---- far away --------------------------------------------------------------------------------

_FAR = 1 << 31

_AT_A_DISTANCE: dict[str, Callable[[Tensor], object]] = {
    "fill": lambda x: x.fill_(3),
    "copy": lambda x: x.copy_(torch.tensor([3, 3], dtype=x.dtype).to(x.device)),
    "from_host": lambda x: x.copy_(torch.tensor([3, 3], dtype=x.dtype)),
    "add": lambda x: x.add_(2),
    "masked_fill": lambda x: x.masked_fill_(x == 1, 3),
    "out": lambda x: torch.add(x.clone(), 2, out=x),
}


@check("footprint/far", "FOOT-003", cases=tuple(_AT_A_DISTANCE), needs=("memory_info",))
def far_elements_have_their_own_place(dev: Device, case: str) -> None:
    """Two elements of one byte, 2^31 apart, are computed in place; nothing between is touched."""
    if torch.accelerator.get_memory_info(0)[0] < _FAR + 64 * MIB:
        dev.unsupported("needs 2 GiB of free device memory")
    buffer = torch.empty(_FAR + 16, dtype=torch.uint8, device=dev.device(0))
    near, far = buffer[:8].fill_(7), buffer[-16:].fill_(7)
    pair = buffer.as_strided((2,), (_FAR,)).fill_(1)
    _AT_A_DISTANCE[case](pair)
    found = [dev.cpu(tensor).tolist() for tensor in (near, far, pair)]
    assert found == [[3] + [7] * 7, [3] + [7] * 15, [3, 3]], f"{found}"
    del buffer, near, far, pair
    torch.accelerator.empty_cache()
