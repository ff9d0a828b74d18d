# SPDX-License-Identifier: BSD-3-Clause
"""Process groups: several processes, each a rank with a device, against one process.

The functions that take a Rank run in the rank processes; the checks compare what they return.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch._utils import _get_available_device_type

from torch_conformance.authoring.api import (
    FULL,
    Device,
    Died,
    Rank,
    becomes_true,
    check,
    noise,
    on_ranks,
    raised,
    while_held,
)

RANKS = 2
#: Elements: one; a number that no number of ranks divides; more than one block of threads.
SIZES = (1, 7, 3001)
REAL = ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
#: Data types that are only moved.
MOVED = (*REAL, "bool")
#: Seconds that a call may wait for a rank that does not come, and in which its error has to arrive.
SHORT_S = 2.0
PATIENCE_S = 25.0

NEEDS = ("collectives",)
HELD = ("collectives", "streams", "delay")


def _values(rank: int, count: int, dtype: torch.dtype, salt: int = 0) -> Tensor:
    """Small numbers that differ by rank and place; sums and products of two ranks are exact."""
    steps = torch.arange(count, dtype=torch.int64)
    values = (steps * (7 + 2 * rank) + 3 * rank + salt) % 5 + 1
    if dtype == torch.bool:
        return values % 2 == 0
    return values.to(dtype)


def _parts(rank: int, count: int, dtype: torch.dtype) -> list[Tensor]:
    """What a rank has for each rank."""
    return [_values(rank, count, dtype, salt) for salt in range(RANKS)]


# ---- each collective by dtype and size -------------------------------------------------------


class Collective(NamedTuple):
    """What a rank does with a device, and what it must have afterwards."""

    run: Callable[[Rank, int, torch.dtype], list[Tensor]]
    expected: Callable[[int, int, torch.dtype], list[Tensor]]


def _mine(rank: Rank, count: int, dtype: torch.dtype) -> Tensor:
    return _values(rank.index, count, dtype).to(rank.device)


def _new(rank: Rank, count: int, dtype: torch.dtype) -> Tensor:
    return torch.zeros(count, dtype=dtype, device=rank.device)


def _by_rank(count: int, dtype: torch.dtype) -> list[Tensor]:
    return [_values(rank, count, dtype) for rank in range(RANKS)]


def _broadcast(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    tensors = [_mine(rank, count, dtype) for _ in range(RANKS)]
    for root, tensor in enumerate(tensors):
        dist.broadcast(tensor, root)
    return tensors


def _all_gather(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    parts = [_new(rank, count, dtype) for _ in range(RANKS)]
    dist.all_gather(parts, _mine(rank, count, dtype))
    return parts


def _all_gather_into_tensor(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    whole = _new(rank, RANKS * count, dtype)
    dist.all_gather_into_tensor(whole, _mine(rank, count, dtype))
    return [whole]


def _gather(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    parts = [_new(rank, count, dtype) for _ in range(RANKS)] if rank.index == 1 else None
    dist.gather(_mine(rank, count, dtype), parts, dst=1)
    return parts or []


def _scatter(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    part = _new(rank, count, dtype)
    parts = [p.to(rank.device) for p in _parts(1, count, dtype)] if rank.index == 1 else None
    dist.scatter(part, parts, src=1)
    return [part]


def _all_to_all_single(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    whole = _new(rank, RANKS * count, dtype)
    dist.all_to_all_single(whole, torch.cat(_parts(rank.index, count, dtype)).to(rank.device))
    return [whole]


def _uneven(rank: int, count: int, dtype: torch.dtype) -> list[Tensor]:
    """Rank r has count + 2 * r + s elements for rank s."""
    return [_values(rank, count + 2 * rank + to, dtype, to) for to in range(RANKS)]


def _all_to_all_uneven(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    parts = _uneven(rank.index, count, dtype)
    come = [count + 2 * source + rank.index for source in range(RANKS)]
    whole = _new(rank, sum(come), dtype)
    go = [len(part) for part in parts]
    dist.all_to_all_single(whole, torch.cat(parts).to(rank.device), come, go)
    return [whole]


def _all_to_all(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    come = [_new(rank, count, dtype) for _ in range(RANKS)]
    dist.all_to_all(come, [p.to(rank.device) for p in _parts(rank.index, count, dtype)])
    return come


def _exchanged(rank: int, parts: Callable[[int], list[Tensor]]) -> list[Tensor]:
    return [parts(source)[rank] for source in range(RANKS)]


MOVING: dict[str, Collective] = {
    "broadcast": Collective(_broadcast, lambda rank, count, dtype: _by_rank(count, dtype)),
    "all_gather": Collective(_all_gather, lambda rank, count, dtype: _by_rank(count, dtype)),
    "all_gather_into_tensor": Collective(
        _all_gather_into_tensor, lambda rank, count, dtype: [torch.cat(_by_rank(count, dtype))]
    ),
    "gather": Collective(
        _gather, lambda rank, count, dtype: _by_rank(count, dtype) if rank == 1 else []
    ),
    "scatter": Collective(_scatter, lambda rank, count, dtype: [_parts(1, count, dtype)[rank]]),
    "all_to_all_single": Collective(
        _all_to_all_single,
        lambda rank, count, dtype: [
            torch.cat(_exchanged(rank, lambda source: _parts(source, count, dtype)))
        ],
    ),
    "all_to_all_uneven": Collective(
        _all_to_all_uneven,
        lambda rank, count, dtype: [
            torch.cat(_exchanged(rank, lambda source: _uneven(source, count, dtype)))
        ],
    ),
    "all_to_all": Collective(
        _all_to_all,
        lambda rank, count, dtype: _exchanged(rank, lambda source: _parts(source, count, dtype)),
    ),
}


def _sum(tensors: list[Tensor]) -> Tensor:
    return reduce(torch.add, tensors)


def _all_reduce(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    tensor = _mine(rank, count, dtype)
    dist.all_reduce(tensor)
    return [tensor]


def _reduce(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    tensor = _mine(rank, count, dtype)
    dist.reduce(tensor, dst=1)
    return [tensor] if rank.index == 1 else []


def _reduce_scatter(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    part = _new(rank, count, dtype)
    dist.reduce_scatter(part, [p.to(rank.device) for p in _parts(rank.index, count, dtype)])
    return [part]


def _reduce_scatter_tensor(rank: Rank, count: int, dtype: torch.dtype) -> list[Tensor]:
    part = _new(rank, count, dtype)
    dist.reduce_scatter_tensor(part, torch.cat(_parts(rank.index, count, dtype)).to(rank.device))
    return [part]


def _reduced_part(rank: int, count: int, dtype: torch.dtype) -> list[Tensor]:
    return [_sum([_parts(source, count, dtype)[rank] for source in range(RANKS)])]


REDUCING: dict[str, Collective] = {
    "all_reduce": Collective(
        _all_reduce, lambda rank, count, dtype: [_sum(_by_rank(count, dtype))]
    ),
    "reduce": Collective(
        _reduce, lambda rank, count, dtype: [_sum(_by_rank(count, dtype))] if rank == 1 else []
    ),
    "reduce_scatter": Collective(_reduce_scatter, _reduced_part),
    "reduce_scatter_tensor": Collective(_reduce_scatter_tensor, _reduced_part),
}
COLLECTIVES = MOVING | REDUCING


def collect(
    rank: Rank, name: str, dtype: torch.dtype, sizes: tuple[int, ...]
) -> list[list[Tensor]]:
    """In a rank: the results of one collective for each size."""
    with rank.group():
        results = [COLLECTIVES[name].run(rank, count, dtype) for count in sizes]
        wrong = [t.device for tensors in results for t in tensors if t.device != rank.device]
        assert not wrong, f"a result is on {wrong[0]}, not on {rank.device}"
        return [[tensor.cpu() for tensor in tensors] for tensors in results]


def _compare_collective(
    dev: Device, name: str, dtype: torch.dtype, sizes: tuple[int, ...] = SIZES
) -> None:
    results = on_ranks(dev, collect, name=name, dtype=dtype, sizes=sizes)
    for rank, by_size in enumerate(results):
        for count, tensors in zip(sizes, by_size, strict=True):
            expected = COLLECTIVES[name].expected(rank, count, dtype)
            assert len(tensors) == len(expected)
            for got, wanted in zip(tensors, expected, strict=True):
                dev.assert_equal(got, wanted)


@check("process_group/moves", "PG-004", cases=MOVING, dtypes=MOVED, needs=NEEDS)
def collectives_move_bits(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Each rank has what the collective promises, bit by bit."""
    _compare_collective(dev, case, dtype)


@check("process_group/reduces", "PG-005", cases=REDUCING, dtypes=REAL, needs=NEEDS)
def collectives_reduce(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Sums over the ranks are those of plain Python."""
    _compare_collective(dev, case, dtype)


@check("process_group/empty", "PG-006", cases=COLLECTIVES, needs=NEEDS)
def empty_tensors(dev: Device, case: str) -> None:
    """A collective of tensors without elements returns."""
    _compare_collective(dev, case, torch.float32, (0, 3))


@check("process_group/large", "PG-007", cases=COLLECTIVES, needs=NEEDS)
def large_tensors(dev: Device, case: str) -> None:
    """Tensors of several MiB arrive whole."""
    _compare_collective(dev, case, torch.float32, ((1 << 21) + 5,))


_OPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
}


def reduce_with(rank: Rank, name: str, dtype: torch.dtype) -> Tensor:
    """In a rank: an all_reduce with another operation."""
    with rank.group():
        tensor = _mine(rank, SIZES[-1], dtype)
        dist.all_reduce(tensor, getattr(dist.ReduceOp, name.upper()))
        return tensor.cpu()


@check(
    "process_group/operation", "PG-008", cases=_OPS, dtypes=("int32", "int64", "float32"),
    needs=NEEDS,
)  # fmt: skip
def operations(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Product, minimum and maximum over the ranks are those of plain Python."""
    wanted = reduce(_OPS[case], _by_rank(SIZES[-1], dtype))
    for got in on_ranks(dev, reduce_with, name=case, dtype=dtype):
        dev.assert_equal(got, wanted)


@check("process_group/average", "PG-009", dtypes=("float32", "bfloat16"), needs=NEEDS)
def averages(dev: Device, dtype: torch.dtype) -> None:
    """ReduceOp.AVG divides the sum by the number of ranks."""
    wanted = _sum(_by_rank(SIZES[-1], dtype)) / RANKS
    for got in on_ranks(dev, reduce_with, name="avg", dtype=dtype):
        dev.assert_close(got, wanted)


# ---- the group -------------------------------------------------------------------------------


def default_backend(rank: Rank) -> tuple[str, list[int], int, int]:
    """In a rank: what a group says that was made without the name of a backend."""
    with rank.group(named=False) as group:
        tensor = torch.ones(3, device=rank.device)
        dist.all_reduce(tensor)
        return dist.get_backend(group), tensor.tolist(), dist.get_rank(), dist.get_world_size()


@check("process_group/default", "PG-001", needs=(*NEEDS, "accelerator"))
def default_of_the_device(dev: Device) -> None:
    """init_process_group without a name makes a group that takes tensors of the device."""
    default = dist.Backend.default_device_backend_map.get(dev.type)
    assert default, f"torch.distributed has no default backend for {dev.type!r}"
    for index, (_, values, rank, size) in enumerate(on_ranks(dev, default_backend)):
        assert values == [RANKS] * 3
        assert (rank, size) == (index, RANKS)


@check("process_group/names", "PG-001", needs=(*NEEDS, "accelerator"))
def default_map_has_device_types_only(dev: Device) -> None:
    """The registration left no entry that is not a device type."""
    letters = [key for key in dist.Backend.default_device_backend_map if len(key) < 2]
    assert not letters, (
        f"the map of default backends has the keys {letters}: register_backend was given "
        "devices as a string"
    )


def by_device_id(rank: Rank) -> list[int]:
    """In a rank: a group that was made for a device."""
    with rank.group(named=False, device_id=rank.device):
        tensor = torch.ones(3, device=rank.device)
        dist.all_reduce(tensor)
        return tensor.tolist()


@check("process_group/device_id", "PG-002", needs=(*NEEDS, "accelerator"))
def initialised_by_device(dev: Device) -> None:
    """init_process_group(device_id=...) alone makes a group for the device."""
    assert on_ranks(dev, by_device_id) == [[RANKS] * 3] * RANKS


def again(rank: Rank) -> list[int]:
    """In a rank: groups one after the other."""
    results = []
    for turn in range(3):
        with rank.group(name=f"turn{turn}"):
            tensor = torch.full((5,), turn + 1, device=rank.device)
            dist.all_reduce(tensor)
            results += tensor.tolist()
    return results


@check("process_group/again", "PG-003", needs=NEEDS)
def created_again(dev: Device) -> None:
    """A group can be made again after the former one was destroyed."""
    assert on_ranks(dev, again) == [[2] * 5 + [4] * 5 + [6] * 5] * RANKS


def subgroups(rank: Rank, bound: bool) -> list[float]:
    """In one of three ranks: a sum over ranks 0 and 2, and one over all."""
    with rank.group(device_id=rank.device if bound else None):
        pair = dist.new_group([0, 2])
        small = torch.full((4,), 10.0**rank.index, device=rank.device)
        if rank.index != 1:
            dist.all_reduce(small, group=pair)
        whole = torch.full((4,), 10.0**rank.index, device=rank.device)
        dist.all_reduce(whole)
        return [small[0].item(), whole[0].item()]


SUMS_OF_SUBGROUPS = [[101.0, 111.0], [10.0, 111.0], [101.0, 111.0]]


@check("process_group/subgroup", "PG-010", needs=NEEDS)
def groups_of_some_ranks(dev: Device) -> None:
    """A group of some ranks works next to the group of all."""
    assert on_ranks(dev, subgroups, size=3, bound=False) == SUMS_OF_SUBGROUPS


@check("process_group/subgroup_by_device", "PG-010", needs=(*NEEDS, "accelerator"))
def groups_of_some_ranks_by_device(dev: Device) -> None:
    """A group of some ranks can be made when the group of all was made for a device."""
    assert on_ranks(dev, subgroups, size=3, bound=True) == SUMS_OF_SUBGROUPS


def two_groups(rank: Rank) -> list[list[float]]:
    """In a rank: collectives of two groups, in an order that differs by rank."""
    with rank.group():
        other = dist.new_group([0, 1])
        tensors = [torch.full((1000,), rank.index + 1.0, device=rank.device) for _ in range(8)]
        calls = [(tensor, other if i % 2 else None) for i, tensor in enumerate(tensors)]
        if rank.index == 1:
            calls = [calls[i ^ 1] for i in range(len(calls))]
        works = [dist.all_reduce(t, group=g, async_op=True) for t, g in calls]
        for work in works:
            work.wait()
        return [tensor.unique().tolist() for tensor in tensors]


@check("process_group/two_groups", "PG-011", needs=NEEDS)
def two_groups_at_once(dev: Device) -> None:
    """Ranks that call two groups in different order do not wait for each other for ever."""
    assert on_ranks(dev, two_groups) == [[[3.0]] * 8] * RANKS


def barrier(rank: Rank, folder: str) -> bool:
    """In a rank: rank 0 comes late to the barrier."""
    with rank.group():
        dist.all_reduce(torch.ones(1, device=rank.device))  # connections exist
        mark = os.path.join(folder, "mark")
        if rank.index == 0:
            time.sleep(0.3)
            open(mark, "w").close()
        dist.barrier()
        return os.path.exists(mark)


@check("process_group/barrier", "PG-012", needs=NEEDS)
def barrier_waits(dev: Device) -> None:
    """No rank leaves a barrier before all have entered it."""
    with tempfile.TemporaryDirectory() as folder:
        assert on_ranks(dev, barrier, folder=folder) == [True] * RANKS


def objects(rank: Rank) -> tuple[list[Any], list[Any]]:
    """In a rank: Python objects from every rank, and from rank 1."""
    with rank.group():
        gathered: list[Any] = [None] * RANKS
        dist.all_gather_object(gathered, {"rank": rank.index, "text": "x" * (1 + 50 * rank.index)})
        told = [("from", rank.index), None if rank.index else 7]
        dist.broadcast_object_list(told, src=1)
        return gathered, told


@check("process_group/objects", "PG-013", needs=NEEDS)
def objects_travel(dev: Device) -> None:
    """Collectives of Python objects give every rank the objects."""
    gathered = [{"rank": rank, "text": "x" * (1 + 50 * rank)} for rank in range(RANKS)]
    assert on_ranks(dev, objects) == [(gathered, [("from", 1), None])] * RANKS


def _salted(rank: int, *, whole: bool) -> list[Tensor]:
    """Tensors of a rank, one of each size, none of which begins like another."""
    length = RANKS if whole else 1
    return [_values(rank, length * count, torch.float32, salt) for salt, count in enumerate(SIZES)]


def coalesced(rank: Rank) -> list[Tensor]:
    """In a rank: several tensors in one call, of each kind that has such a call."""
    import torch.distributed.distributed_c10d as c10d

    with rank.group():
        mine = [tensor.to(rank.device) for tensor in _salted(rank.index, whole=False)]
        sums = [tensor.clone() for tensor in mine]
        with c10d._coalescing_manager():
            for tensor in sums:
                dist.all_reduce(tensor)
        gathered = [_new(rank, RANKS * count, torch.float32) for count in SIZES]
        with c10d._coalescing_manager():
            for whole, tensor in zip(gathered, mine, strict=True):
                dist.all_gather_into_tensor(whole, tensor)
        parts = [_new(rank, count, torch.float32) for count in SIZES]
        with c10d._coalescing_manager():
            for part, whole in zip(parts, _salted(rank.index, whole=True), strict=True):
                dist.reduce_scatter_tensor(part, whole.to(rank.device))
        return [tensor.cpu() for tensor in (*sums, *gathered, *parts)]


@check("process_group/coalesced", "PG-014", needs=NEEDS)
def several_tensors_in_one_call(dev: Device) -> None:
    """Calls inside a coalescing manager give what they give one by one."""
    mine = list(zip(*(_salted(rank, whole=False) for rank in range(RANKS)), strict=True))
    whole = [
        _sum(list(ranks))
        for ranks in zip(*(_salted(rank, whole=True) for rank in range(RANKS)), strict=True)
    ]
    for index, tensors in enumerate(on_ranks(dev, coalesced)):
        expected = [
            *(_sum(list(ranks)) for ranks in mine),
            *(torch.cat(ranks) for ranks in mine),
            *(total.chunk(RANKS)[index] for total in whole),
        ]
        for got, wanted in zip(tensors, expected, strict=True):
            dev.assert_equal(got, wanted)


def functional(rank: Rank) -> list[Tensor]:
    """In a rank: the functional collectives, which compiled programs use."""
    import torch.distributed._functional_collectives as functional_collectives

    with rank.group() as group:
        mine = _mine(rank, 6, torch.float32)
        results = [
            functional_collectives.all_reduce(mine, "sum", group),
            functional_collectives.all_gather_tensor(mine, 0, group),
            functional_collectives.reduce_scatter_tensor(mine, "sum", 0, group),
            functional_collectives.broadcast(mine, 1, group),
            functional_collectives.all_to_all_single(mine, None, None, group),
        ]
        waited = map(functional_collectives.wait_tensor, results)
        return [result.cpu() for result in (*waited, mine)]


@check("process_group/functional", "PG-015", needs=NEEDS)
def functional_collectives_agree(dev: Device) -> None:
    """Functional collectives give what the others give, and leave their inputs."""
    by_rank = _by_rank(6, torch.float32)
    half = 6 // RANKS
    for rank, tensors in enumerate(on_ranks(dev, functional)):
        mine = slice(rank * half, (rank + 1) * half)
        expected = [
            _sum(by_rank),
            torch.cat(by_rank),
            _sum(by_rank)[mine],
            by_rank[1],
            torch.cat([values[mine] for values in by_rank]),
            by_rank[rank],
        ]
        for got, wanted in zip(tensors, expected, strict=True):
            dev.assert_equal(got, wanted)


# ---- messages --------------------------------------------------------------------------------


def there_and_back(rank: Rank, dtype: torch.dtype) -> list[Tensor]:
    """In a rank: a message from 0 to 1 and one back, of each size."""
    with rank.group():
        got = []
        for count in SIZES:
            mine, other = _mine(rank, count, dtype), _new(rank, count, dtype)
            if rank.index == 0:
                dist.send(mine, 1)
                dist.recv(other, 1)
            else:
                dist.recv(other, 0)
                dist.send(mine, 0)
            got.append(other.cpu())
        return got


@check("process_group/send", "PG-016", dtypes=MOVED, needs=NEEDS)
def messages_arrive(dev: Device, dtype: torch.dtype) -> None:
    """A message has the bits that were sent."""
    for rank, tensors in enumerate(on_ranks(dev, there_and_back, dtype=dtype)):
        for got, count in zip(tensors, SIZES, strict=True):
            dev.assert_equal(got, _values(1 - rank, count, dtype))


def both_at_once(rank: Rank, batch: bool) -> list[Tensor]:
    """In a rank: each rank sends a long message before it receives one."""
    with rank.group():
        count = 1 << 19
        mine, other = _mine(rank, count, torch.float32), _new(rank, count, torch.float32)
        works: list[dist.Work | None]
        if batch:
            works = [
                *dist.batch_isend_irecv(
                    [
                        dist.P2POp(dist.isend, mine, 1 - rank.index),
                        dist.P2POp(dist.irecv, other, 1 - rank.index),
                    ]
                )
            ]
        else:
            works = [dist.isend(mine, 1 - rank.index), dist.irecv(other, 1 - rank.index)]
        for work in works:
            assert work is not None
            work.wait()
        return [other.cpu()]


_BOTH = {"one_by_one": False, "batch": True}


@check("process_group/isend", "PG-017", cases=_BOTH, needs=NEEDS)
def sending_does_not_wait_for_receiving(dev: Device, case: str) -> None:
    """Two ranks may send to each other before they receive."""
    for rank, (got,) in enumerate(on_ranks(dev, both_at_once, batch=_BOTH[case])):
        dev.assert_equal(got, _values(1 - rank, 1 << 19, torch.float32))


def from_any(rank: Rank) -> list[tuple[int, float]]:
    """In one of three ranks: rank 0 receives from whom it may be."""
    with rank.group():
        if rank.index:
            dist.send(torch.full((3,), 10.0 * rank.index, device=rank.device), 0)
            return []
        got = []
        for _ in range(2):
            tensor = _new(rank, 3, torch.float32)
            source = dist.recv(tensor)
            got.append((source, tensor[0].item()))
        return sorted(got)


@check("process_group/any_source", "PG-018", needs=NEEDS)
def received_from_any_rank(dev: Device) -> None:
    """A receive without a source takes a message from any rank and names the rank."""
    assert on_ranks(dev, from_any, size=3)[0] == [(1, 10.0), (2, 20.0)]


# ---- in the order of streams -----------------------------------------------------------------


def returns_at_once(rank: Rank) -> tuple[bool, bool, bool, list[float]]:
    """In a rank: an all_reduce behind held work, and what is queued behind it."""
    with rank.group():
        dist.all_reduce(torch.ones(4, device=rank.device))

        def look() -> tuple[Tensor, bool, bool, dist.Work]:
            tensor = torch.full((4,), rank.index + 1.0, device=rank.device)
            work = dist.all_reduce(tensor, async_op=True)
            early = work.is_completed()
            work.wait()
            copy = tensor.clone()  # which every backend queues
            return copy, early, work.is_completed(), work

        copy, before, after, work = while_held(rank.dev, look)
        values = copy.tolist()
        return before, after, becomes_true(work.is_completed), values


@check("process_group/asynchronous", ("PG-019", "PG-020"), needs=HELD)
def collectives_are_queued(dev: Device) -> None:
    """Behind held work, an all_reduce and its wait() return at once, and are done later."""
    for before, after, finally_done, values in on_ranks(dev, returns_at_once):
        assert not before, "is_completed() while the work before the all_reduce was held"
        assert not after, "is_completed() after wait(), while the stream was held"
        assert finally_done
        assert values == [3.0] * 4, f"what was queued behind wait() read {values}"


def after_late_input(rank: Rank) -> list[list[float]]:
    """In a rank: inputs that are written late, on the current and on a side stream."""
    with rank.group():
        results = []
        for stream in (rank.dev.current_stream(), rank.dev.stream(rank.device.index)):
            with stream:
                tensor = torch.zeros(1000, device=rank.device)
                rank.dev.delay(60.0)
                tensor.fill_(rank.index + 1.0)
                dist.all_reduce(tensor)
                results.append((tensor + 0).unique().tolist())
        return results


@check("process_group/input_order", "PG-021", needs=HELD)
def collectives_read_what_was_queued_before(dev: Device) -> None:
    """A collective reads its input after the work that the current stream had queued."""
    assert on_ranks(dev, after_late_input) == [[[3.0], [3.0]]] * RANKS


def waited_on_another_stream(rank: Rank) -> list[float]:
    """In a rank: the stream that waits is not the one that the collective was called on."""
    with rank.group():
        dist.all_reduce(torch.ones(4, device=rank.device))
        tensor = torch.zeros(1000, device=rank.device)
        caller, other = rank.dev.stream(rank.device.index), rank.dev.stream(rank.device.index)
        caller.wait_stream(rank.dev.current_stream(rank.device.index))
        with caller:
            rank.dev.delay(60.0)
            tensor.fill_(rank.index + 1.0)
            work = dist.all_reduce(tensor, async_op=True)
        with other:
            work.wait()
            copy = tensor + 0
            other.synchronize()
        return copy.unique().tolist()


@check("process_group/wait_orders", "PG-020", needs=HELD)
def wait_orders_the_current_stream(dev: Device) -> None:
    """wait() makes the stream wait that is current when it is called."""
    assert on_ranks(dev, waited_on_another_stream) == [[3.0]] * RANKS


def released_inputs(rank: Rank) -> list[list[float]]:
    """In a rank: tensors that are dropped right after the call, and memory that is taken again."""
    with rank.group():
        works, results = [], []
        for turn in range(6):
            rank.dev.delay(15.0)
            whole = torch.zeros(2 * 5000, device=rank.device)
            part = torch.full((5000,), float(10 * turn + rank.index), device=rank.device)
            works.append(dist.all_gather_into_tensor(whole, part, async_op=True))
            del part
            results.append(whole)
            side = rank.dev.stream(rank.device.index)
            with side:  # not ordered behind the collective
                [torch.full((5000,), -1.0, device=rank.device) for _ in range(4)]
            torch.full((5000,), -2.0, device=rank.device)
        for work in works:
            work.wait()
        return [result.unique().tolist() for result in results]


@check("process_group/released", "PG-022", needs=HELD)
def inputs_may_be_released(dev: Device) -> None:
    """A tensor may be released while the collective that reads it is queued."""
    wanted = [[10.0 * turn, 10.0 * turn + 1] for turn in range(6)]
    assert on_ranks(dev, released_inputs) == [wanted] * RANKS


def many(rank: Rank) -> list[float]:
    """In a rank: a chain of collectives of one tensor, none of them waited for by the host."""
    with rank.group():
        tensor = torch.ones(100, dtype=torch.float64, device=rank.device)
        for _ in range(20):
            dist.all_reduce(tensor)
        return tensor.unique().tolist()


@check("process_group/chain", "PG-021", needs=(*NEEDS, "float64"))
def collectives_follow_each_other(dev: Device) -> None:
    """Collectives of one tensor are in the order of their calls."""
    assert on_ranks(dev, many) == [[float(RANKS**20)]] * RANKS


def future(rank: Rank) -> tuple[list[list[float]], list[float]]:
    """In a rank: the future of a collective, and a function that is called with it."""
    with rank.group():
        tensor = torch.full((4,), rank.index + 1.0, device=rank.device)
        work = dist.all_reduce(tensor, async_op=True)
        doubled = work.get_future().then(lambda done: done.value()[0] * 2)
        value = work.get_future().wait()
        assert all(t.device == rank.device for t in value)
        return [t.tolist() for t in value], doubled.wait().tolist()


@check("process_group/future", "PG-023", needs=NEEDS)
def futures_have_the_result(dev: Device) -> None:
    """get_future() has the result, and functions that are added to it read it in order."""
    assert on_ranks(dev, future) == [([[3.0] * 4], [6.0] * 4)] * RANKS


def current_state(rank: Rank) -> bool:
    """In a rank: whether collectives leave the current device and stream."""
    with rank.group():
        side = rank.dev.stream(rank.device.index)
        with side:
            before = torch.accelerator.current_device_index(), rank.dev.current_stream()
            dist.all_reduce(torch.ones(4, device=rank.device), async_op=True).wait()
            dist.barrier()
            return before == (torch.accelerator.current_device_index(), rank.dev.current_stream())


@check("process_group/current", "PG-024", needs=(*NEEDS, "streams", "device_guard"))
def current_device_and_stream_stay(dev: Device) -> None:
    """A collective leaves the current device and the current stream."""
    assert on_ranks(dev, current_state) == [True] * RANKS


# ---- errors ----------------------------------------------------------------------------------


def _local_mistakes(rank: Rank) -> dict[str, Callable[[], Any]]:
    two, three = (torch.ones(n, device=rank.device) for n in (2, 3))
    return {
        "output_size": lambda: dist.all_gather_into_tensor(three, two),
        "input_size": lambda: dist.reduce_scatter_tensor(two, three),
        "output_dtype": lambda: dist.all_gather_into_tensor(two.int().repeat(RANKS), two),
        "split_sizes": lambda: dist.all_to_all_single(two.clone(), two, [1, 1], [5, 1]),
        "number_of_outputs": lambda: dist.all_gather([two.clone()], two),
    }


_MISTAKES = ("output_size", "input_size", "output_dtype", "split_sizes", "number_of_outputs")


def mistake(rank: Rank, name: str) -> tuple[str, list[float]]:
    """In a rank: a wrong call, and a right one after it."""
    with rank.group():
        try:
            error = type(raised(_local_mistakes(rank)[name])).__name__
            rank.dev.synchronize()
        finally:
            dist.barrier()
        tensor = torch.ones(3, device=rank.device)
        dist.all_reduce(tensor)
        return error, tensor.tolist()


@check("process_group/mistake", "PG-025", cases=_MISTAKES, needs=NEEDS)
def mistakes_raise_on_the_caller(dev: Device, case: str) -> None:
    """Arguments that do not fit together raise, and the group can be used after that."""
    for _, values in on_ranks(dev, mistake, name=case):
        assert values == [RANKS] * 3


def other_device(rank: Rank) -> list[float]:
    """In a rank: a call with tensors of two devices, and a right one after it."""
    other = rank.dev.device((rank.device.index + 1) % rank.dev.count)
    with rank.group():
        two, whole = torch.ones(2, device=rank.device), torch.zeros(2 * RANKS, device=other)
        try:
            raised(lambda: dist.all_gather_into_tensor(whole, two))
            rank.dev.synchronize()
        finally:
            dist.barrier()
        dist.all_reduce(two)
        return two.tolist()


@check("process_group/other_device", "PG-026", needs=(*NEEDS, "multi_device"))
def other_devices_are_refused(dev: Device) -> None:
    """A call with tensors of different devices raises, and the group can be used after that."""
    assert on_ranks(dev, other_device) == [[RANKS] * 2] * RANKS


def _error_of(rank: Rank, tensor: Tensor) -> str:
    """What an all_reduce without its peer raises, wherever it does; "" if nothing does."""
    try:
        dist.all_reduce(tensor)
        tensor.cpu()
        rank.dev.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def dying_peer(rank: Rank) -> tuple[str, float]:
    """In a rank: rank 1 ends its process between two collectives."""
    with rank.group(timeout=SHORT_S):
        tensor = torch.ones(1000, device=rank.device)
        dist.all_reduce(tensor)
        tensor.cpu()
        if rank.index == 1:
            os._exit(0)
        time.sleep(0.2)
        begun = time.monotonic()
        return _error_of(rank, tensor), time.monotonic() - begun


@check("process_group/dead_peer", "PG-027", needs=NEEDS)
def dead_rank_raises(dev: Device) -> None:
    """When a rank has died, the others get an error instead of waiting for ever."""
    (error, seconds), other = on_ranks(dev, dying_peer, dying=frozenset({1}))
    assert isinstance(other, Died)
    assert error, "an all_reduce with a dead rank raised nothing"
    assert seconds < PATIENCE_S


def absent_peer(rank: Rank) -> tuple[str, float]:
    """In a rank: rank 1 does not make the second call."""
    with rank.group(timeout=SHORT_S):
        tensor = torch.ones(1000, device=rank.device)
        dist.all_reduce(tensor)
        tensor.cpu()
        begun = time.monotonic()
        if rank.index == 1:
            time.sleep(2 * SHORT_S)
            return "", 0.0
        return _error_of(rank, tensor), time.monotonic() - begun


@check("process_group/absent_peer", "PG-028", needs=NEEDS)
def absent_rank_raises(dev: Device) -> None:
    """When a rank does not come within the timeout, the others get an error."""
    (error, seconds), _ = on_ranks(dev, absent_peer)
    assert error, "an all_reduce that one rank did not call raised nothing"
    assert seconds > SHORT_S / 2, f"the timeout of {SHORT_S} s had passed after {seconds:.1f} s"
    assert seconds < PATIENCE_S


# ---- training --------------------------------------------------------------------------------


def _network(device: torch.device) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(),
        torch.nn.Linear(16, 4),
    )  # fmt: skip
    return layers.to(device)


STEPS = 3
BATCH = 12


def _batch(step: int, rank: Rank | None = None) -> Tensor:
    """The inputs of a step: of all ranks, or of one on its device; 2 or 4 share them equally."""
    whole = noise((BATCH, 8), seed=step)
    return whole if rank is None else whole.chunk(rank.size)[rank.index].to(rank.device)


def _train(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: Callable[[int], Tensor]
) -> None:
    for step in range(STEPS):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


def _one_process() -> list[Tensor]:
    """The parameters after the same training in one process, on the CPU."""
    model = _network(torch.device("cpu"))
    _train(model, torch.optim.SGD(model.parameters(), lr=0.1), _batch)
    return [parameter.detach() for parameter in model.parameters()]


def _to_cpu(model: torch.nn.Module) -> list[Tensor]:
    return [
        (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().cpu()
        for p in model.parameters()
    ]


def _mesh(rank: Rank) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(rank.dev.type, (rank.size,))


def train_ddp(rank: Rank, compiled: bool = False) -> list[Tensor]:
    """In a rank: DistributedDataParallel, in several buckets; Dynamo wants buckets of some size."""
    with rank.group():
        ids = [rank.device.index or 0] if rank.dev.is_accelerator else None
        model = torch.nn.parallel.DistributedDataParallel(
            _network(rank.device), device_ids=ids, bucket_cap_mb=25 if compiled else 0.001
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        used: torch.nn.Module = torch.compile(model) if compiled else model  # type: ignore[assignment]  # of a module, it is one
        _train(used, optimizer, lambda step: _batch(step, rank))
        return _to_cpu(model)


def train_fsdp2(rank: Rank) -> list[Tensor]:
    """In a rank: fully_shard of each layer and of the whole."""
    from torch.distributed.fsdp import fully_shard

    with rank.group():
        model, mesh = _network(rank.device), _mesh(rank)
        for layer in model.children():
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        _train(model, optimizer, lambda step: _batch(step, rank))
        return _to_cpu(model)


def train_tensor_parallel(rank: Rank) -> list[Tensor]:
    """In a rank: layers split by columns and rows."""
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    with rank.group():
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        model = parallelize_module(_network(rank.device), _mesh(rank), plan)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        _train(model, optimizer, lambda step: _batch(step).to(rank.device))
        return _to_cpu(model)


def train_zero(rank: Rank) -> list[Tensor]:
    """In a rank: an optimizer whose state is divided among the ranks."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    with rank.group():
        model = torch.nn.parallel.DistributedDataParallel(_network(rank.device))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        _train(model, optimizer, lambda step: _batch(step, rank))
        return _to_cpu(model)


def _require_training(
    dev: Device, program: Callable[..., list[Tensor]], limit: float = 55.0, **options: Any
) -> None:
    for parameters in on_ranks(dev, program, limit=limit, **options):
        for got, wanted in zip(parameters, _one_process(), strict=True):
            dev.assert_close(got, wanted, rtol=1e-5, atol=1e-6)


@check("process_group/ddp", "PG-029", needs=NEEDS)
def data_parallel_equals_one_process(dev: Device) -> None:
    """DistributedDataParallel trains to the parameters of one process with the whole batch."""
    _require_training(dev, train_ddp)


@check("process_group/compiled_ddp", "COMPILE-003", needs=(*NEEDS, "compile"), breadth=FULL)
def compiled_data_parallel_equals_one_process(dev: Device) -> None:
    """DistributedDataParallel that torch.compile compiled trains to the same parameters."""
    _require_training(dev, train_ddp, limit=180.0, compiled=True)


@check("process_group/fsdp2", "PG-030", needs=NEEDS)
def sharded_equals_one_process(dev: Device) -> None:
    """fully_shard trains to the parameters of one process with the whole batch."""
    _require_training(dev, train_fsdp2)


@check("process_group/tensor_parallel", "PG-031", needs=NEEDS)
def tensor_parallel_equals_one_process(dev: Device) -> None:
    """Tensor parallel layers train to the parameters of one process."""
    _require_training(dev, train_tensor_parallel)


@check("process_group/zero", "PG-032", needs=NEEDS)
def divided_optimizer_equals_one_process(dev: Device) -> None:
    """ZeroRedundancyOptimizer trains to the parameters of one process."""
    _require_training(dev, train_zero)


def distribute(rank: Rank) -> list[Tensor]:
    """In a rank: a distributed tensor, its product, and changes of its placement."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    with rank.group():
        mesh = _mesh(rank)
        a: Any = distribute_tensor(noise((6, 4)).to(rank.device), mesh, [Shard(0)])
        b: Any = distribute_tensor(noise((4, 6), seed=1).to(rank.device), mesh, [Shard(1)])
        product = a @ b.redistribute(mesh, [Replicate()])
        turned = a.redistribute(mesh, [Shard(1)])
        return [
            product.full_tensor().cpu(),
            turned.full_tensor().cpu(),
            a.sum().full_tensor().cpu(),
        ]


@check("process_group/dtensor", "PG-033", needs=NEEDS)
def distributed_tensors(dev: Device) -> None:
    """A distributed tensor has the values of the whole one, in every placement."""
    a, b = noise((6, 4)), noise((4, 6), seed=1)
    for results in on_ranks(dev, distribute, limit=55.0):
        for got, wanted in zip(results, (a @ b, a, a.sum()), strict=True):
            dev.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def save_and_load(rank: Rank, folder: str) -> list[Tensor]:
    """In a rank: a checkpoint of a sharded model, loaded into another one."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.fsdp import fully_shard

    with rank.group():
        model, mesh = _network(rank.device), _mesh(rank)
        fully_shard(model, mesh=mesh)
        checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
        other = torch.nn.Sequential(
            *(type(m)(*_shape(m)) for m in _network(rank.device).children())
        )
        other = other.to(rank.device)
        fully_shard(other, mesh=mesh)
        state = {"model": other.state_dict()}
        checkpoint.load(state, checkpoint_id=folder)
        other.load_state_dict(state["model"])
        return _to_cpu(other)


def _shape(module: torch.nn.Module) -> tuple[int, ...]:
    if isinstance(module, torch.nn.Linear):
        return module.in_features, module.out_features
    return ()


@check("process_group/checkpoint", "PG-034", needs=(*NEEDS, "serialization"))
def distributed_checkpoint(dev: Device) -> None:
    """A distributed checkpoint of a sharded model gives its parameters back."""
    served = _get_available_device_type()  # by _OverlappingCpuLoader in checkpoint/filesystem.py
    if served not in (None, dev.type):
        dev.unsupported(f"where torch has {served}, a distributed checkpoint copies from it alone")
    wanted = [p.detach() for p in _network(torch.device("cpu")).parameters()]
    with tempfile.TemporaryDirectory() as folder:
        for parameters in on_ranks(dev, save_and_load, folder=folder, limit=55.0):
            for got, expected in zip(parameters, wanted, strict=True):
                dev.assert_equal(got, expected)
