# SPDX-License-Identifier: BSD-3-Clause
"""Large tensors: more elements than 31 or 32 bits count, and more bytes than 31 bits count.

A tensor is filled with one value, and other values are planted at its ends and about 2^31 and 2^32.
Only those places are read back. One check at a time, on the whole machine, has such a tensor: a
simulated device takes it from the memory of the host.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import STANDARD, Device, check, ramp

GIB = 1 << 30
#: Elements at each place that is looked at, and bytes for what is small.
_WIDTH, _SLACK = 64, 64 << 20
#: Seconds for a check, once it has the memory.
_DEADLINE = 180.0

#: Number of elements, odd and just beyond what so many bits can count.
_LENGTHS = {"31": 2**31 + 4099, "32": 2**32 + 4099}


@contextmanager
def _memory(dev: Device, size: int, on_host: int = 0) -> Iterator[None]:
    """Have `size` bytes of the device to oneself, and as many of the host, or be unsupported."""
    size += _SLACK
    if torch.accelerator.get_memory_info(0)[1] < size:
        dev.unsupported(f"needs a device with {size / GIB:.1f} GiB of memory")
    with _alone(dev):
        torch.accelerator.empty_cache()
        if torch.accelerator.get_memory_info(0)[0] < size:
            dev.unsupported(f"needs {size / GIB:.1f} GiB of free device memory")
        if _free_on_host() < size + on_host:
            dev.unsupported(f"needs {(size + on_host) / GIB:.1f} GiB of free host memory")
        try:
            yield
        finally:
            torch.accelerator.empty_cache()


@contextmanager
def _alone(dev: Device) -> Iterator[None]:
    """Wait for the large tensors of other processes. They have deadlines; this one begins after."""
    path = os.path.join(tempfile.gettempdir(), f"torch_conformance_large_{os.getuid()}")
    with open(path, "w") as lock:
        while True:
            if dev.journal is not None:
                dev.journal.beat()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.1)
        yield


def _free_on_host() -> int:
    """Bytes that the host can still give; a device that is simulated has its memory there."""
    if not os.path.exists("/proc/meminfo"):
        return sys.maxsize
    with open("/proc/meminfo", encoding="ascii") as table:
        sizes = dict(line.split(":") for line in table)
    return int(sizes["MemAvailable"].split()[0]) << 10


def _places(length: int) -> list[slice]:
    """The ends of a tensor, and where counters of 31 and 32 bits would turn over."""
    starts = (0, 2**31 - _WIDTH // 2, 2**32 - _WIDTH // 2, length - _WIDTH)
    return [slice(s, s + _WIDTH) for s in starts if s + _WIDTH <= length]


def _planted(device: torch.device, length: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    """A large tensor of ones with a ramp, which differs from place to place, at each place."""
    x = torch.ones(length, dtype=dtype, device=device)
    for number, place in enumerate(_places(length)):
        x[place] = _ramp(number, dtype).to(device)
    return x


def _ramp(place: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    return (ramp((_WIDTH,), torch.int64, positive=True) // 2 + place).to(dtype)


def _is_there(dev: Device, name: str, x: Tensor, expected: list[Tensor]) -> None:
    """A large tensor has at each place what is expected."""
    for place, values in zip(_places(x.numel()), expected, strict=True):
        found = dev.cpu(x[place])
        assert torch.equal(found, values), f"{name}: {found.tolist()} at {place.start}"


# ---- every element ---------------------------------------------------------------------------

Function = Callable[[Tensor], Tensor]

_IN_PLACE: dict[str, Function] = {
    "add": lambda x: x.add_(5),
    "bitwise_not": lambda x: x.bitwise_not_(),
    "clamp": lambda x: x.clamp_(10, 40),
    "rows": lambda x: x.view(-1, 1).mul_(torch.full((1, 1), 2).to(x)).view(-1),
    "broadcast": lambda x: x.copy_(torch.full((1,), 9).to(x).expand_as(x)),
    "fill": lambda x: x.fill_(7),
    "zero": lambda x: x.zero_(),
}
_OUT_OF_PLACE: dict[str, Function] = {
    "clone": lambda x: x.clone(),
    "sum": lambda x: x + x,
    "compare": lambda x: (x > 20).view(torch.uint8),
    "cast": lambda x: x.to(torch.int8).view(torch.uint8),
    "cat": lambda x: torch.cat([x[:-1], x[-1:]]),
}


@check(
    "large/in_place",
    "LARGE-001",
    cases=_LENGTHS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def every_element_is_changed_once(dev: Device, case: str) -> None:
    """In-place operators, one after the other, change the elements at all ends, and once each."""
    with _memory(dev, _LENGTHS[case]):
        x = _planted(dev.device(0), _LENGTHS[case])
        expected = [_ramp(number) for number in range(len(_places(x.numel())))]
        for name, function in _IN_PLACE.items():
            function(x)
            expected = [function(part.clone()) for part in expected]
            _is_there(dev, name, x, expected)
        del x


@check(
    "large/result",
    "LARGE-001",
    cases=_LENGTHS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def every_element_is_computed(dev: Device, case: str) -> None:
    """Operators that return a new large tensor compute the elements at all its ends."""
    with _memory(dev, 2 * _LENGTHS[case]):
        x = _planted(dev.device(0), _LENGTHS[case])
        for name, function in _OUT_OF_PLACE.items():
            expected = [function(_ramp(number)) for number in range(len(_places(x.numel())))]
            _is_there(dev, name, function(x), expected)
        del x


@check(
    "large/random",
    "LARGE-001",
    cases=_LENGTHS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def every_element_is_drawn(dev: Device, case: str) -> None:
    """Random numbers reach all ends of the tensor, and are others at each."""
    with _memory(dev, _LENGTHS[case]):
        x = torch.full((_LENGTHS[case],), 255, dtype=torch.uint8, device=dev.device(0))
        x.random_(0, 200)
        found = [dev.cpu(x[place]) for place in _places(x.numel())]
        del x
    for number, drawn in enumerate(found):
        assert int(drawn.max()) < 200, f"place {number} was not reached: {drawn.tolist()}"
        assert not any(torch.equal(drawn, other) for other in found[:number]), "numbers repeat"


@check("large/arange", "LARGE-001", needs=("memory_info",), deadline=_DEADLINE, breadth=STANDARD)
def counting_goes_on(dev: Device) -> None:
    """arange of more than 2^31 numbers counts to the end."""
    length = _LENGTHS["31"]
    with _memory(dev, 8 * length):
        x = torch.arange(length, device=dev.device(0))
        for place in _places(length):
            dev.assert_equal(x[place], torch.arange(place.start, place.stop))
        del x


# ---- reductions, scans and searches ----------------------------------------------------------


def _rows(x: Tensor) -> Tensor:
    """The tensor as two long rows; of an odd length the last element is left out."""
    return x[: x.numel() // 2 * 2].view(2, -1)


#: Of n ones and one other value at index n - 3: what is computed, and the results.
_Reduced = dict[str, tuple[Function, Callable[[int], list[int]]]]
_OF_A_NINE: _Reduced = {
    "sum": (lambda x: x.sum(), lambda n: [n + 8]),
    "sum of rows": (lambda x: _rows(x).sum(1), lambda n: [n // 2, n // 2 + 8]),
    "max": (lambda x: x.max(), lambda n: [9]),
    "argmax": (lambda x: x.argmax(), lambda n: [n - 3]),
    "position of max": (lambda x: x.max(0).indices, lambda n: [n - 3]),
    "cumsum": (lambda x: x.cumsum_(0)[-2:], lambda n: [(n + 7) % 256, (n + 8) % 256]),
}
_OF_A_ZERO: _Reduced = {
    "count_nonzero": (lambda x: x.count_nonzero(), lambda n: [n - 1]),
    "amin": (lambda x: x.amin(), lambda n: [0]),
    "all": (lambda x: x.view(torch.bool).all(), lambda n: [0]),
    "argmin of a row": (lambda x: x.view(1, -1).argmin(1), lambda n: [n - 3]),
    "nonzero": (lambda x: x.sub_(1).nonzero(), lambda n: [n - 3]),
}
_POSITIONS = ("argmax", "position of max", "argmin of a row", "nonzero")
#: name -> (the number of elements, the value that is not one, what is computed).
_REDUCTIONS = {
    f"{name}_{bits}": (length, value, reduced)
    for bits, length in _LENGTHS.items()
    for name, value, reduced in (("nine", 9, _OF_A_NINE), ("zero", 0, _OF_A_ZERO))
}


def _for_fallback(dev: Device, length: int, reduced: _Reduced) -> int:
    """Bytes of the host that a CPU takes which computes for the device: it adds bytes as int64."""
    if not dev.has("fallback_counter"):
        return 0
    for function, _ in reduced.values():
        function(torch.ones(8, dtype=torch.uint8, device=dev.device(0)))
    return 9 * length if dev.fallbacks() else 0


@check(
    "large/reduction",
    "LARGE-002",
    cases=_REDUCTIONS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def reductions_see_every_element(dev: Device, case: str) -> None:
    """What differs near the end counts, and its position is that of an int64."""
    length, value, reduced = _REDUCTIONS[case]
    with _memory(dev, length, on_host=_for_fallback(dev, length, reduced)):
        x = torch.ones(length, dtype=torch.uint8, device=dev.device(0))
        x[length - 3] = value
        for operator, (function, expected) in reduced.items():
            result = dev.cpu(function(x))
            assert [int(v) for v in result.flatten()] == expected(length), operator
            assert operator not in _POSITIONS or result.dtype == torch.int64, operator
        del x


# ---- indices ---------------------------------------------------------------------------------


def _far(x: Tensor) -> list[int]:
    """Indices of three elements: before, behind and far behind what 31 bits count."""
    return [5, 2**31 + 1, x.numel() - 2]


_READ: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "item": lambda x, i: torch.tensor([x[j].item() for j in i.tolist()]),
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "take": lambda x, i: x.take(i),
    "gather": lambda x, i: x.gather(0, i),
    "index_select of rows": lambda x, i: x.view(-1, 1).index_select(0, i).flatten(),
    "embedding": lambda x, i: functional.embedding(i, x.view(-1, 1)).flatten(),
    "slice": lambda x, i: torch.cat([x[j : j + 1] for j in i.tolist()]),
}

_WRITTEN: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "index_put": lambda x, i, v: x.index_put_((i,), v),
    "index_copy": lambda x, i, v: x.index_copy_(0, i, v),
    "index_add": lambda x, i, v: x.index_add_(0, i, v),
    "index_fill": lambda x, i, v: x.index_fill_(0, i, 2),
    "scatter": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_add": lambda x, i, v: x.scatter_add_(0, i, v),
    "put": lambda x, i, v: x.put_(i, v),
}
_NEW = (11, 12, 13)
#: What is there after each write: of those that add, to the ones and what the one before left.
_LEFT = {"index_add": (22, 24, 26), "index_fill": (2, 2, 2), "scatter_add": (22, 24, 26)}


@check(
    "large/index_read",
    "LARGE-003",
    cases=_LENGTHS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def far_elements_are_read(dev: Device, case: str) -> None:
    """An index beyond 2^31 (2^32) reads the element that was planted there."""
    with _memory(dev, _LENGTHS[case]):
        x = torch.ones(_LENGTHS[case], dtype=torch.uint8, device=dev.device(0))
        for value, index in zip(_NEW, _far(x), strict=True):
            x[index] = value
        for name, read in _READ.items():
            assert tuple(read(x, torch.tensor(_far(x)).to(x.device)).tolist()) == _NEW, name
        del x


@check(
    "large/index_write",
    "LARGE-003",
    cases=_LENGTHS,
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def far_elements_are_written(dev: Device, case: str) -> None:
    """A write at indices beyond 2^31 (2^32) changes the elements there and no others."""
    with _memory(dev, _LENGTHS[case]):
        x = torch.ones(_LENGTHS[case], dtype=torch.uint8, device=dev.device(0))
        new, index = torch.tensor(_NEW, dtype=torch.uint8), torch.tensor(_far(x))
        for name, write in _WRITTEN.items():
            write(x, index.to(x.device), new.to(x.device))
            assert tuple(x[i].item() for i in _far(x)) == _LEFT.get(name, _NEW), name
        assert int(x.sum()) == x.numel() - 3 + sum(_NEW), "other elements were changed"
        del x


# ---- wide elements ---------------------------------------------------------------------------

_COLUMNS = 1024


def _last_row(x: Tensor) -> Tensor:
    return torch.cat([torch.ones(_COLUMNS - _WIDTH, dtype=x.dtype), x])


#: name -> (what is done, where its result is looked at, what the tensor's last numbers give there).
_WIDE: dict[str, tuple[Function, Function, Function]] = {
    "index": (
        lambda x: x[torch.tensor([x.numel() - 2, -1]).to(x.device)],
        lambda y: y,
        lambda v: v[-2:],
    ),
    "sums of rows": (
        lambda x: x.view(-1, _COLUMNS).sum(1),
        lambda y: y[-1:],
        lambda v: _last_row(v).sum(0, keepdim=True),
    ),
    "add": (lambda x: x.add_(5), lambda y: y[-_WIDTH:], lambda v: v + 5),
}
_WIDE_COPIES: dict[str, tuple[Function, Function, Function]] = {
    "clone": (lambda x: x.clone(), lambda y: y[-_WIDTH:], lambda v: v),
    "flip": (lambda x: x.flip(0), lambda y: y[:_WIDTH], lambda v: v.flip(0)),
    "transposed": (
        lambda x: x.view(-1, _COLUMNS).t().contiguous(),
        lambda y: y[:, -1],
        _last_row,
    ),
}
_WIDE_WORK = {"work": (1, _WIDE), "copies": (2, _WIDE_COPIES)}


@check(
    "large/wide",
    "LARGE-004",
    cases=_WIDE_WORK,
    dtypes=("bfloat16", "int64", "complex128"),
    needs=("memory_info",),
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def wide_elements_are_computed(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Elements more than 2^31 bytes behind the first one are computed as the rest."""
    times, work = _WIDE_WORK[case]
    length = 2**31 // dtype.itemsize + 4 * _COLUMNS
    with _memory(dev, times * length * dtype.itemsize):
        x = _planted(dev.device(0), length, dtype)
        planted = _ramp(len(_places(length)) - 1, dtype)
        for function, there, expected in work.values():
            dev.assert_close(there(function(x)), expected(planted))
        del x


# ---- host and device -------------------------------------------------------------------------


def _to_pinned(dev: Device, length: int) -> Tensor:
    result = torch.empty(length, dtype=torch.uint8, pin_memory=True)
    result.copy_(_planted(dev.device(0), length), non_blocking=True)
    dev.synchronize()
    return result


_TRANSFERS: dict[str, Callable[[Device, int], Tensor]] = {
    "to_host": lambda dev, length: _planted(dev.device(0), length).cpu(),
    "from_host": lambda dev, length: _planted(torch.device("cpu"), length).to(dev.device(0)),
    "to_pinned": _to_pinned,
}


@check(
    "large/copy",
    "LARGE-005",
    cases=_TRANSFERS,
    needs=("memory_info",),
    case_needs={"to_pinned": "pinned_memory"},
    deadline=_DEADLINE,
    breadth=STANDARD,
)
def transfers_are_whole(dev: Device, case: str) -> None:
    """A copy of more than 2^31 bytes arrives with all of its ends."""
    length = _LENGTHS["31"]
    expected = [_ramp(number) for number in range(len(_places(length)))]
    with _memory(dev, length, on_host=length):
        result = _TRANSFERS[case](dev, length)
        _is_there(dev, case, result, expected)
        del result
