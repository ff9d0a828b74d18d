# SPDX-License-Identifier: BSD-3-Clause
"""Tensors between processes: what is shared, for how long, and what happens when one ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import peer as peers
import pytest
import torch
from interpreter import Python
from peer import Peer, PeerError
from suites import STANDIN, needs_standin
from torch import Tensor, multiprocessing, nn

import torch_puone

DEVICE = "puone:0"


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer() as other:
        yield other


@pytest.fixture(scope="module")
def third() -> Iterator[Peer]:
    with Peer() as other:
        yield other


@pytest.fixture(autouse=True)
def nothing_stays(peer: Peer) -> Iterator[None]:
    """After each test, no memory of this process is in use by the other, nor the reverse."""
    before, theirs = peers.allocated(), peer.call(peers.allocated)
    yield
    peer.call(peers.drop_all)
    # What came back from there is released there first.
    assert (peer.call(peers.allocated), peers.allocated()) == (theirs, before)


# ---- what is shared ----


def add_one(tensor: Tensor) -> None:
    tensor += 1


def test_both_processes_use_the_same_memory(peer: Peer) -> None:
    ours = torch.arange(6.0, device=DEVICE)
    peer.call(peers.keep, "x", ours)
    peer.call(add_one, ours)
    assert ours.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    ours *= 2
    torch_puone.synchronize()
    assert peer.call(peers.values, "x") == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


def put_twice(queue: Any, received: Any, tensor: Tensor) -> None:
    queue.put(tensor)
    queue.put(tensor * 2)
    assert received.wait(60)  # the memory of the second is of this process


def test_queues_carry_tensors(peer: Peer) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    received = context.Event()
    process = context.Process(
        target=put_twice, args=(queue, received, torch.ones(3, device=DEVICE))
    )
    process.start()
    assert queue.get().tolist() == [1.0, 1.0, 1.0]
    assert queue.get().tolist() == [2.0, 2.0, 2.0]
    received.set()
    process.join()
    assert process.exitcode == 0


TENSORS: dict[str, Callable[[], Tensor]] = {
    "a scalar": lambda: torch.tensor(3.5, device=DEVICE),
    "a view with an offset": lambda: torch.arange(10, device=DEVICE)[3:7],
    "a transposed view": lambda: torch.arange(6, device=DEVICE).reshape(2, 3).t(),
    "an expanded view": lambda: torch.tensor([7], device=DEVICE).expand(4),
    "steps": lambda: torch.arange(10, device=DEVICE)[::3],
    "no elements": lambda: torch.empty(2, 0, 3, device="puone:1"),
    "channels last": lambda: torch.rand(2, 3, 4, 5, device=DEVICE).to(
        memory_format=torch.channels_last
    ),
    "a lazy clone": lambda: torch.arange(4, device=DEVICE)._lazy_clone(),
    "of the second device": lambda: torch.arange(4, device="puone:1"),
    "large": lambda: torch.arange(3_000_000, device=DEVICE),
}
TENSORS |= {
    str(dtype): partial(torch.tensor, [0, 1, 1], device=DEVICE, dtype=dtype)
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}


def described(tensor: Tensor) -> tuple[Any, ...]:
    return (
        *(tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.device),
        *(tensor.requires_grad, type(tensor), tensor.cpu().tolist()),
    )


@pytest.mark.parametrize("case", TENSORS)
def test_any_tensor_arrives_as_it_is(peer: Peer, case: str) -> None:
    tensor = TENSORS[case]()
    assert peer.call(described, tensor) == described(tensor)


def test_parameters_and_requires_grad_arrive(peer: Peer) -> None:
    parameter = nn.Parameter(torch.ones(2, device=DEVICE))
    frozen = nn.Parameter(torch.ones(2, device=DEVICE), requires_grad=False)
    leaf = torch.ones(2, device=DEVICE, requires_grad=True)
    for tensor in (parameter, frozen, leaf):
        assert peer.call(described, tensor) == described(tensor)
    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf"):
        peer.call(described, leaf * 2)


def share_a_storage(tensors: list[Tensor]) -> bool:
    return len({tensor.untyped_storage()._cdata for tensor in tensors}) == 1


def test_views_of_one_storage_arrive_as_views_of_one_storage(peer: Peer) -> None:
    whole = torch.arange(10, device=DEVICE)
    assert peer.call(share_a_storage, [whole, whole[2:4], whole[5:]])
    assert not peer.call(share_a_storage, [whole, whole.clone()])


def is_the_kept_storage(name: str, tensor: Tensor) -> bool:
    return share_a_storage([peers.KEPT[name], tensor])


def test_two_messages_about_one_storage_give_one_storage(peer: Peer) -> None:
    whole = torch.arange(10, device=DEVICE)
    peer.call(peers.keep, "x", whole[:3])
    assert peer.call(is_the_kept_storage, "x", whole[3:])


def double_weights(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)


def test_a_modules_parameters_are_shared(peer: Peer) -> None:
    model = nn.Linear(3, 2).to(DEVICE)
    model.share_memory()
    before = [parameter.tolist() for parameter in model.parameters()]
    peer.call(double_weights, model)
    after = [(parameter / 2).tolist() for parameter in model.parameters()]
    assert after == before


def test_storages_and_tensors_of_the_cpu_still_travel(peer: Peer) -> None:
    assert peer.call(described, torch.arange(5)) == described(torch.arange(5))
    storage = torch.arange(4, dtype=torch.uint8, device=DEVICE).untyped_storage()
    assert list(peer.call(bytes_of, storage)) == [0, 1, 2, 3]


def bytes_of(storage: torch.UntypedStorage) -> list[int]:
    return list(storage.cpu())


# ---- order ----


def test_work_that_is_queued_when_a_tensor_is_sent_is_done_when_it_arrives(peer: Peer) -> None:
    tensor = torch.zeros(1000, device=DEVICE)
    stream = torch.Stream(DEVICE)
    torch_puone.synchronize()
    with stream:
        torch_puone._sleep_ms(50)
        tensor += 1
    assert peer.call(described, tensor)[-1] == [1.0] * 1000


def queue_and_drop(tensor: Tensor) -> None:
    torch_puone._sleep_ms(50)
    tensor += 1


def test_work_of_the_receiver_is_done_before_the_memory_is_given_back(peer: Peer) -> None:
    tensor = torch.zeros(1000, device=DEVICE)
    peer.call(queue_and_drop, tensor)
    peers.allocated()  # the slot is free: the receiver has waited
    assert tensor.tolist() == [1.0] * 1000


def fail_and_drop(name: str) -> str:
    torch_puone.faults.kernel_error_at(1)
    peers.KEPT.pop(name).add_(1)
    try:
        torch_puone.synchronize()
    except torch.AcceleratorError as error:
        return str(error)
    return "nothing was raised"


def test_an_error_of_the_receivers_work_is_raised_after_it_has_dropped_the_tensor(
    peer: Peer,
) -> None:
    peer.call(peers.keep, "x", torch.zeros(1000, device=DEVICE))
    assert "injected by the fault extension" in peer.call(fail_and_drop, "x")


# ---- for how long ----


def test_memory_is_not_reused_while_the_receiver_has_it(peer: Peer) -> None:
    start = peers.allocated()
    tensor = torch.full((1000,), 7.0, device=DEVICE)
    peer.call(peers.keep, "x", tensor)
    del tensor
    assert peers.allocated() == start + 4096
    others = [torch.zeros(1000, device=DEVICE) for _ in range(20)]
    torch_puone.synchronize()
    assert peer.call(peers.values, "x") == [7.0] * 1000
    del others
    peer.call(peers.drop, "x")
    assert peers.allocated() == start


def test_an_allocation_takes_what_receivers_have_given_back(peer: Peer) -> None:
    size = 24 << 20  # a segment of its own
    tensor = torch.zeros(size, dtype=torch.uint8, device=DEVICE)
    address = tensor.data_ptr()
    peer.call(peers.keep, "x", tensor)
    peer.call(peers.drop, "x")
    del tensor
    again = torch.zeros(size, dtype=torch.uint8, device=DEVICE)
    assert again.data_ptr() == address


def test_a_shared_storage_cannot_be_resized(peer: Peer) -> None:
    tensor = torch.zeros(4, device=DEVICE)
    peer.call(peers.keep, "x", tensor)
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(1000)
    with pytest.raises(PeerError, match="not resizable"):
        peer.call(resize_kept, "x")


def resize_kept(name: str) -> None:
    peers.KEPT[name].resize_(1000)


def test_a_message_is_received_once(peer: Peer) -> None:
    message = bytes(ForkingPickler.dumps(torch.ones(3, device=DEVICE)))
    assert ForkingPickler.loads(message).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="received before"):
        ForkingPickler.loads(message)


# ---- back, and on ----


def test_a_tensor_that_comes_back_is_the_senders_own(peer: Peer) -> None:
    tensor = torch.arange(10, device=DEVICE)
    peer.call(peers.keep, "x", tensor[2:5])
    back = peer.call(peers.kept, "x")
    assert back.tolist() == [2, 3, 4]
    assert share_a_storage([tensor, back])


def send_on(name: str, other: Any) -> None:
    other.send((peers.keep, (name, peers.KEPT[name])))


def test_a_tensor_that_was_received_can_be_sent_on(peer: Peer, third: Peer) -> None:
    start = peers.allocated()
    tensor = torch.arange(5, device=DEVICE)
    peer.call(peers.keep, "x", tensor)
    del tensor
    peer.call(send_on, "x", third.channel)
    third.answer()
    peer.call(peers.drop, "x")
    peer.call(peers.allocated)
    assert peers.allocated() > start  # through the process in between
    assert third.call(peers.values, "x") == [0, 1, 2, 3, 4]
    third.call(peers.drop, "x")
    peer.call(peers.allocated)
    assert peers.allocated() == start


# ---- when a process ends ----


def test_a_receiver_that_was_killed_gives_everything_back(peer: Peer) -> None:
    start = peers.allocated()
    with Peer() as other:
        for i in range(5):
            other.call(peers.keep, str(i), torch.ones(100, device=DEVICE))
        assert peers.allocated() > start
        other.kill()
    assert peers.allocated() == start


def make(value: float) -> Tensor:
    return torch.full((100,), value, device=DEVICE)


def pickled() -> bytes:
    peers.KEPT["x"] = make(3)
    return bytes(ForkingPickler.dumps(peers.KEPT["x"]))


def test_what_was_received_stays_when_the_sender_is_killed(peer: Peer) -> None:
    with Peer() as other:
        tensor, first = other.call(make, 5.0), other.call(pickled)
        other.kill()
    assert tensor.tolist() == [5.0] * 100
    assert (tensor + 1).sum().item() == 600.0
    assert ForkingPickler.loads(first).tolist() == [3.0] * 100  # its segment is mapped


def test_what_was_not_received_is_an_error_when_the_sender_was_killed(peer: Peer) -> None:
    with Peer() as other:
        message = other.call(pickled)
        other.kill()
    with pytest.raises(RuntimeError, match="process has ended"):
        ForkingPickler.loads(message)


# ---- forks ----

FORKS = """
import os, torch, torch_puone
from multiprocessing.reduction import ForkingPickler
from torch import multiprocessing

context = multiprocessing.get_context("fork")

def child(queue, done):
    queue.put(torch.arange(3, device="puone"))
    done.get()

if __name__ == "__main__":
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, done))
    process.start()
    assert not torch_puone.is_initialized()
    tensor = queue.get(timeout=30)
    assert torch_puone.is_initialized()
    assert tensor.tolist() == [0, 1, 2], tensor
    done.put(None)
    process.join()
    message = bytes(ForkingPickler.dumps(tensor))
    if os.fork() == 0:
        for use in (lambda: ForkingPickler.loads(message), lambda: ForkingPickler.dumps(tensor)):
            try:
                use()
            except RuntimeError as error:
                assert "Cannot re-initialize puone in forked subprocess" in str(error), error
            else:
                os._exit(1)
        del tensor
        os._exit(0)
    assert os.wait()[1] == 0
    assert ForkingPickler.loads(message).tolist() == [0, 1, 2]
    print("fine")
"""


def test_forked_children_share_if_the_parent_has_not_used_the_device(python: Python) -> None:
    done = python(FORKS, env={"PUONE_DRIVER": "sim"})
    assert done.stdout == "fine\n", done.stderr


# ---- data loaders ----


class Squares(torch.utils.data.Dataset[Tensor]):
    """Samples on the device."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([index, index * index], device=DEVICE)


def test_workers_of_a_data_loader_return_tensors_of_the_device(peer: Peer) -> None:
    loader = torch.utils.data.DataLoader(
        Squares(), batch_size=5, num_workers=1, multiprocessing_context="spawn"
    )
    batches = list(loader)
    assert [batch.device for batch in batches] == [torch.device(DEVICE)] * 4
    expected = [[index, index * index] for index in range(20)]
    assert torch.cat(batches).tolist() == expected


FORKED_WORKERS = """
import torch, torch_puone

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 20
    def __getitem__(self, index):
        return torch.tensor([index, index * index], device="puone")

loader = torch.utils.data.DataLoader(
    Squares(), batch_size=5, num_workers=2, multiprocessing_context="fork"
)
print(torch.cat(list(loader)).tolist() == [[index, index * index] for index in range(20)])
try:
    list(loader)
except RuntimeError as error:
    print("Cannot re-initialize puone in forked subprocess" in str(error))
"""


def test_workers_may_be_forked_until_the_device_is_used(python: Python) -> None:
    done = python(FORKED_WORKERS, env={"PUONE_DRIVER": "sim"})
    assert done.stdout == "True\nTrue\n", done.stderr


# ---- what there is not ----


@needs_standin
def test_a_driver_without_the_extension_says_so(python: Python) -> None:
    code = """
import torch, torch_puone
from multiprocessing.reduction import ForkingPickler
try:
    ForkingPickler.dumps(torch.ones(3, device="puone"))
except NotImplementedError as error:
    print("ipc" in str(error))
"""
    done = python(code, env={"PUONE_DRIVER": str(STANDIN)})
    assert done.stdout == "True\n", done.stderr


# ---- many ----


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def mapped_files() -> int:
    with open("/proc/self/maps") as maps:
        return sum("memfd:puone" in line for line in maps)


def test_hundreds_of_tensors_leave_nothing_behind(peer: Peer) -> None:
    """python test/endurance/shared_tensors.py --tensors 10000 sends more."""
    torch_puone.empty_cache()
    peer.call(peers.keep, "x", make(0.0))
    peer.call(peers.kept, "x")  # a process that has sent a tensor counts its references in a file
    peer.call(peers.drop, "x")
    theirs = [peer.call(measure) for measure in (peers.allocated, descriptors, mapped_files)]
    before = [measure() for measure in (peers.allocated, descriptors)]
    for i in range(300):
        peer.call(peers.keep, "x", make(float(i)))
        assert peer.call(peers.kept, "x")[0].item() == float(i)
    peer.call(peers.drop, "x")
    after = [peer.call(measure) for measure in (peers.allocated, descriptors, mapped_files)]
    assert after == theirs
    assert [measure() for measure in (peers.allocated, descriptors)] == before


def test_memory_is_mapped_as_long_as_one_of_its_tensors_lives(peer: Peer) -> None:
    torch_puone.empty_cache()
    before = peer.call(mapped_files)
    first, second = make(1.0), make(2.0)  # of one segment
    for name, tensor in (("x", first), ("y", second)):
        peer.call(peers.keep, name, tensor)
    mapped = peer.call(mapped_files)
    assert mapped > before
    peer.call(peers.drop, "x")
    assert peer.call(mapped_files) == mapped
    assert peer.call(peers.values, "y")[0] == 2.0
    peer.call(peers.drop, "y")
    assert peer.call(mapped_files) == before
