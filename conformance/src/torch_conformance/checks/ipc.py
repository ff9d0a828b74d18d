# SPDX-License-Identifier: BSD-3-Clause
"""Tensors between processes: what arrives, which memory it is, and for how long.

The functions that take a Rank run in the rank processes: rank 0 sends, rank 1 receives.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torch_conformance.authoring.api import (
    Device,
    Died,
    Rank,
    becomes_true,
    check,
    on_ranks,
    raised,
)

NEEDS = ("ipc",)
COUNTED = ("ipc", "memory_stats")
LENGTH = 1000


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    """What a tensor is, as plain data. Waits."""
    return (
        *(tuple(tensor.shape), tensor.stride(), str(tensor.dtype), str(tensor.device)),
        *(tensor.requires_grad, type(tensor).__name__, tensor.detach().cpu().tolist()),
    )


def _exchange(rank: Rank, made: Callable[[], Any], seen: Callable[[Any], Any]) -> Any:
    """What `seen` says in each rank of what rank 0 made and sent."""
    with rank.channel() as channel:
        if rank.index == 0:
            value = made()
            channel.send(value)
            channel.recv()
        else:
            value = channel.recv()
        found = seen(value)
        if rank.index == 1:
            channel.send(None)
        return found


# ---- what arrives ----------------------------------------------------------------------------

_SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": lambda x: x,
    "scalar": lambda x: x[5],
    "offset": lambda x: x[3:9],
    "steps": lambda x: x[1::4],
    "transposed": lambda x: x.reshape(3, 8).t(),
    "expanded": lambda x: x[7:8].expand(4),
    "permuted": lambda x: x.reshape(2, 3, 4).permute(2, 0, 1),
}


def _same_on_both_sides(dev: Device, program: Callable[..., Any], **arguments: Any) -> None:
    """What the sender says of a tensor is what the receiver says of it."""
    sent, received = on_ranks(dev, program, **arguments)
    assert received == sent, f"sent {sent}, received {received}"


def shaped(rank: Rank, case: str) -> Any:
    """In a rank: a view of some shape."""
    whole = torch.arange(24.0, device=rank.dev.device())
    return _exchange(rank, lambda: _SHAPES[case](whole), _facts)


@check("ipc/shapes", "IPC-001", needs=NEEDS, cases=_SHAPES)
def views_arrive_as_they_are(dev: Device, case: str) -> None:
    """A view of any shape arrives with its values, shape, strides and device."""
    _same_on_both_sides(dev, shaped, case=case)


def typed(rank: Rank) -> Any:
    """In a rank: one tensor of each data type."""
    values = torch.tensor([0, 1, 1, 0, 1])

    def make() -> list[Tensor]:
        return [values.to(dtype).to(rank.dev.device()) for dtype in rank.dev.dtypes()]

    return _exchange(rank, make, lambda tensors: [_facts(tensor) for tensor in tensors])


@check("ipc/dtypes", "IPC-001", needs=NEEDS)
def every_data_type_arrives(dev: Device) -> None:
    """A tensor of each data type arrives as it is."""
    _same_on_both_sides(dev, typed)


def with_grad(rank: Rank) -> Any:
    """In a rank: parameters, and tensors that require grad."""
    device = rank.dev.device()

    def make() -> list[Tensor]:
        return [
            nn.Parameter(torch.ones(2, device=device)),
            nn.Parameter(torch.ones(2, device=device), requires_grad=False),
            torch.ones(2, device=device, requires_grad=True),
            torch.ones(2, device=device),
        ]

    return _exchange(rank, make, lambda tensors: [_facts(tensor) for tensor in tensors])


@check("ipc/parameters", "IPC-004", needs=NEEDS)
def parameters_arrive_as_parameters(dev: Device) -> None:
    """Parameters and tensors that require grad arrive as such."""
    _same_on_both_sides(dev, with_grad)


def without_elements(rank: Rank) -> Any:
    """In a rank: a tensor without elements."""
    return _exchange(rank, lambda: torch.empty(3, 0, 2, device=rank.dev.device()), _facts)


@check("ipc/empty", "IPC-008", needs=NEEDS)
def tensors_without_elements_arrive(dev: Device) -> None:
    """A tensor without elements arrives with its shape and device."""
    _same_on_both_sides(dev, without_elements)


def of_each_device(rank: Rank) -> Any:
    """In a rank: a tensor of each device, while the first one is current."""
    devices = range(rank.dev.count)

    def make() -> list[Tensor]:
        return [torch.full((3,), float(i), device=rank.dev.device(i)) for i in devices]

    torch.accelerator.set_device_index(0)
    return _exchange(rank, make, lambda tensors: [_facts(tensor + 1) for tensor in tensors])


@check("ipc/devices", "IPC-009", needs=(*NEEDS, "multi_device"))
def tensors_arrive_on_their_device(dev: Device) -> None:
    """A tensor of each device arrives on it, and can be computed with there."""
    _same_on_both_sides(dev, of_each_device)


# ---- which memory it is ----------------------------------------------------------------------


def writing(rank: Rank) -> list[list[float]]:
    """In a rank: what it reads after the receiver has written, and after the sender has."""
    seen: list[list[float]] = []
    with rank.channel() as channel:
        if rank.index == 0:
            tensor = torch.zeros(4, device=rank.dev.device())
            channel.send(tensor)
            channel.recv()
            seen.append(tensor.tolist())
            tensor += 1.0
            seen.append(tensor.tolist())
            channel.send(None)
            channel.recv()
        else:
            tensor = channel.recv()
            tensor[1:3] = 5.0
            seen.append(tensor.tolist())
            channel.send(None)
            channel.recv()
            seen.append(tensor.tolist())
            channel.send(None)
    return seen


@check("ipc/memory", "IPC-002", needs=NEEDS)
def processes_use_one_memory(dev: Device) -> None:
    """What the receiver writes is in the sender's tensor, and the reverse."""
    expected = [[0.0, 5.0, 5.0, 0.0], [1.0, 6.0, 6.0, 1.0]]
    for found in on_ranks(dev, writing):
        assert found == expected, f"a process reads {found}, not {expected}"


def viewing(rank: Rank) -> list[float]:
    """In a rank: rank 1 writes through one of two views and reads the other."""

    def make() -> tuple[Tensor, Tensor]:
        whole = torch.zeros(6, device=rank.dev.device())
        return whole, whole[2:4]

    def look(views: tuple[Tensor, Tensor]) -> list[float]:
        whole, part = views
        if rank.index == 1:
            part += 3.0
            rank.dev.synchronize()
        result: list[float] = whole.tolist()
        return result

    return _exchange(rank, make, look)


@check("ipc/views", "IPC-003", needs=NEEDS)
def views_of_one_tensor_stay_views_of_one(dev: Device) -> None:
    """In the receiver, writing through one of two views changes the other."""
    _, received = on_ranks(dev, viewing)
    assert received == [0.0, 0.0, 3.0, 3.0, 0.0, 0.0], received


def returning(rank: Rank) -> Any:
    """In a rank: a view that is sent there and back; rank 0 writes into what comes."""
    with rank.channel() as channel:
        if rank.index == 1:
            channel.send(channel.recv())
            channel.recv()
            return None
        tensor = torch.arange(8.0, device=rank.dev.device())
        channel.send(tensor[2:5])
        back = channel.recv()
        values = back.tolist()
        back += 10.0
        channel.send(None)
        return values, tensor.tolist()


@check("ipc/back", "IPC-010", needs=NEEDS)
def tensors_come_back(dev: Device) -> None:
    """A tensor that is sent back is the original memory."""
    (values, original), _ = on_ranks(dev, returning)
    assert values == [2.0, 3.0, 4.0], f"{values} came back"
    assert original == [0.0, 1.0, 12.0, 13.0, 14.0, 5.0, 6.0, 7.0], original


def passing_on(rank: Rank) -> Any:
    """In a rank: 0 sends to 1, which sends on to 2."""
    if rank.index == 0:
        with rank.channel("first") as channel:
            channel.send(torch.arange(LENGTH, device=rank.dev.device()))
            channel.recv()
            return None
    if rank.index == 1:
        with rank.channel("first") as before, rank.channel("second", (1, 2)) as after:
            tensor = before.recv()
            try:
                after.send(tensor)
            except Exception as error:
                after.send(None)
                return f"{type(error).__name__}: {error}"
            finally:
                after.recv()
                before.send(None)
            return None
    with rank.channel("second", (1, 2)) as channel:
        received = channel.recv()
        values = None if received is None else received.tolist()
        channel.send(None)
        return values


@check("ipc/on", "IPC-011", needs=NEEDS)
def tensors_are_sent_on_or_refused(dev: Device) -> None:
    """A received tensor that is sent on arrives with its values, or sending raises."""
    _, refused, values = on_ranks(dev, passing_on, size=3)
    if refused is None:
        assert values == list(range(LENGTH)), "the values of a tensor that was sent on are wrong"
    else:
        assert values is None, "sending on raised, and something arrived"


def growing(rank: Rank) -> tuple[str, list[float]]:
    """In a rank: what resizing the storage of a received tensor raises, and the values then."""

    def look(tensor: Tensor) -> tuple[str, list[float]]:
        storage = tensor.untyped_storage()
        if rank.index == 0:
            return "", tensor.tolist()
        error = raised(lambda: storage.resize_(2 * storage.nbytes()))
        return type(error).__name__, tensor.tolist()

    return _exchange(rank, lambda: torch.arange(4.0, device=rank.dev.device()), look)


@check("ipc/resize", "IPC-015", needs=NEEDS)
def received_memory_does_not_grow(dev: Device) -> None:
    """Resizing the storage of a received tensor raises RuntimeError, and its values stay."""
    (_, sent), (error, received) = on_ranks(dev, growing)
    assert error == "RuntimeError", f"resizing memory of another process gives {error}"
    assert sent == received == [0.0, 1.0, 2.0, 3.0], f"then it has {received}, sent were {sent}"


# ---- order -----------------------------------------------------------------------------------


def queueing(rank: Rank, index: int) -> Any:
    """In a rank: rank 0 sends a tensor of a device on which work is queued."""
    with rank.channel() as channel:
        if rank.index == 1:
            channel.recv()
            channel.send(None)
            values = channel.recv().tolist()
            channel.send(None)
            return values
        tensor = torch.zeros(LENGTH, device=rank.dev.device(index))
        channel.send(tensor[:1].clone())  # what is made once is there now
        channel.recv()
        torch.accelerator.synchronize(index)
        with torch.accelerator.device_index(index):
            rank.dev.delay(150)
        tensor += 1.0
        channel.send(tensor)
        channel.recv()
        return None


def _queued_work_is_done(dev: Device, index: int) -> None:
    _, values = on_ranks(dev, queueing, index=index)
    assert values == [1.0] * LENGTH, f"the first value is {values[0]}, not 1.0"


@check("ipc/order", "IPC-005", needs=(*NEEDS, "streams", "delay"))
def queued_work_is_done_before_it_is_read(dev: Device) -> None:
    """The receiver reads what work wrote that was queued when the tensor was sent."""
    _queued_work_is_done(dev, 0)


@check("ipc/order:last_device", "IPC-005", needs=(*NEEDS, "streams", "delay", "multi_device"))
def queued_work_of_a_device_that_is_not_current_is_done(dev: Device) -> None:
    """The same for a tensor of the last device, sent while the first one is current."""
    _queued_work_is_done(dev, dev.count - 1)


# ---- for how long ----------------------------------------------------------------------------


def _collect(rank: Rank) -> None:
    """Let the allocator have what the receivers of sent tensors are done with."""
    collect = getattr(torch.get_device_module(rank.dev.type), "ipc_collect", None)
    if collect is not None:
        collect()


def dropping(rank: Rank) -> Any:
    """In a rank: rank 0 drops the tensor that rank 1 has, and makes others of its size."""
    with rank.channel() as channel:
        if rank.index == 0:
            tensor = torch.full((LENGTH,), 7.0, device=rank.dev.device())
            channel.send(tensor)
            channel.recv()
            del tensor
            gc.collect()
            _collect(rank)
            others = [torch.zeros(LENGTH, device=rank.dev.device()) for _ in range(50)]
            rank.dev.synchronize()
            channel.send(None)
            channel.recv()
            return len(others)
        tensor = channel.recv()
        channel.send(None)
        channel.recv()
        values = tensor.tolist()
        channel.send(None)
        return values


@check("ipc/lifetime", "IPC-006", needs=NEEDS)
def memory_is_not_reused_while_a_receiver_has_it(dev: Device) -> None:
    """The values stay when the sender drops its tensor, collects and allocates more."""
    _, values = on_ranks(dev, dropping)
    assert values == [7.0] * LENGTH, "the memory of a tensor that was received has other values"


def _allocated(rank: Rank) -> int:
    _collect(rank)
    return int(torch.accelerator.memory_allocated(rank.dev.device().index or 0))


def _returned(rank: Rank, channel: Any, before: int) -> tuple[int, int, bool]:
    """What was allocated before and is now, and whether all returned; lets rank 1 end."""
    freed = becomes_true(lambda: _allocated(rank) <= before, 5.0)
    after = _allocated(rank)
    channel.send(None)
    return before, after, freed


def releasing(rank: Rank) -> Any:
    """In a rank: bytes of rank 0 before it sends, while rank 1 has it, and afterwards."""
    with rank.channel() as channel:
        if rank.index == 1:
            for _ in range(10):
                tensor = channel.recv()
                total = tensor.sum().item()
                del tensor
                channel.send(total)
            channel.recv()
            return None
        before = _allocated(rank)
        for _ in range(10):
            channel.send(torch.ones(LENGTH, device=rank.dev.device()))
            assert channel.recv() == LENGTH
        return _returned(rank, channel, before)


@check("ipc/release", "IPC-007", needs=COUNTED)
def memory_is_free_after_all_have_dropped_it(dev: Device) -> None:
    """Ten tensors that were sent and dropped take no memory of the sender."""
    (before, after, freed), _ = on_ranks(dev, releasing)
    assert freed, f"{before} bytes before, {after} after all tensors were dropped"


def sending_twice(rank: Rank) -> Any:
    """In a rank: as `releasing`, of one tensor that arrives again while rank 1 still has it."""
    with rank.channel() as channel:
        if rank.index == 1:
            first = channel.recv()
            channel.send(None)
            second = channel.recv()
            total = (first + second).sum().item()
            del first, second
            gc.collect()
            channel.send(total)
            channel.recv()
            return None
        before = _allocated(rank)
        tensor = torch.ones(LENGTH, device=rank.dev.device())
        channel.send(tensor)
        channel.recv()
        channel.send(tensor)
        assert channel.recv() == 2 * LENGTH
        del tensor
        return _returned(rank, channel, before)


@check("ipc/release:sent_twice", "IPC-007", needs=COUNTED)
def memory_is_free_after_each_message_was_dropped(dev: Device) -> None:
    """A tensor that was sent twice, and dropped by all, takes no memory of the sender."""
    (before, after, freed), _ = on_ranks(dev, sending_twice)
    assert freed, f"{before} bytes before, {after} after the tensor was dropped"


def receiver_ends(rank: Rank) -> Any:
    """In a rank: rank 1 ends without notice while it has a tensor."""
    with rank.channel() as channel:
        if rank.index == 1:
            tensor = channel.recv()
            tensor.sum().item()
            os._exit(0)
        before = _allocated(rank)
        channel.send(torch.ones(LENGTH, device=rank.dev.device()))
        try:
            channel.recv()
        except EOFError:
            pass
        freed = becomes_true(lambda: _allocated(rank) <= before, 5.0)
        return before, _allocated(rank), freed


@check("ipc/dead_receiver", "IPC-012", needs=COUNTED)
def dead_receivers_give_memory_back(dev: Device) -> None:
    """The memory of a tensor is free after its receiver has ended without notice."""
    (before, after, freed), other = on_ranks(dev, receiver_ends, dying=frozenset({1}))
    assert isinstance(other, Died)
    assert freed, f"{before} bytes before, {after} after the receiver has ended"


def sender_ends(rank: Rank) -> Any:
    """In a rank: rank 0 ends without notice after its tensor was received."""
    with rank.channel() as channel:
        if rank.index == 0:
            tensor = torch.full((LENGTH,), 3.0, device=rank.dev.device())
            channel.send(tensor)
            channel.recv()
            os._exit(0)
        received = channel.recv()
        channel.send(None)
        try:
            channel.recv()
        except (EOFError, ConnectionError):
            pass
        return (received + 1.0).tolist()


@check("ipc/dead_sender", "IPC-013", needs=NEEDS)
def received_tensors_outlive_their_sender(dev: Device) -> None:
    """A tensor keeps its values after its sender has ended without notice."""
    other, values = on_ranks(dev, sender_ends, dying=frozenset({0}))
    assert isinstance(other, Died)
    assert values == [4.0] * LENGTH


# ---- data loaders ----------------------------------------------------------------------------


@check("ipc/data_loader", "IPC-014", needs=NEEDS, deadline=120)
def workers_of_data_loaders_return_tensors_of_the_device(dev: Device) -> None:
    """A worker gets a data set on the device, and returns batches on it."""
    if dev.descriptor.single_process:
        dev.unsupported("only one process at a time may use the device")
    values = torch.arange(12.0)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(values.to(dev.device())),
        batch_size=5,
        num_workers=1,
        multiprocessing_context="spawn",
    )
    batches = [batch for (batch,) in loader]
    assert {batch.device.type for batch in batches} == {dev.type}
    dev.assert_equal(torch.cat(batches), values)
