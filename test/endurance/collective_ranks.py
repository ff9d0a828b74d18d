# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a random program of collectives: runs it on puone and compares it with the model.

Results are used late and on other streams than they were asked for on: a slot remembers what is
left to do before its tensor may be used. The next call that uses the slot does that first, on the
stream that is current then. So a call often follows another one that nobody has waited for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from collective_programs import Death, Program, Slot, Step, Truth, Values, copies, start, weight
from torch import Tensor
from torch.distributed import _functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

import torch_puone as puone

#: Seconds that a call may wait for other ranks: where none dies, and where one does.
PATIENT_S, SHORT_S = 60.0, 2.0


class Planted(Exception):
    """What a rank raises that is to end by an exception."""


class NotMade(Exception):
    """A group could not be made; the reason is Gloo's or a store's, and of no type of its own."""


@dataclass
class Result:
    """How a rank ended: `right`, `error`, `wrong` or `planted`, and a text."""

    how: str
    text: str = ""
    at: float = 0.0
    """Seconds of the monotonic clock."""


@dataclass
class Value:
    """A slot: its tensor, and what has to be done or awaited before it may be used."""

    tensor: Tensor
    finish: Callable[[], None] | None = None
    done: Any = None
    """An event behind its last use; None at the beginning."""
    partners: list[Value] = field(default_factory=list)
    """Slots of the same call, which become usable together."""


def run(program: Program, rank: int, truth: Truth, store: str, died: Callable[[], None]) -> Result:
    """Run the program as a rank. `died` is called when its planted death is about to happen."""
    warnings.simplefilter("ignore")  # names that torch means to give up
    puone.set_device(rank % puone.device_count())
    runner = _Rank(program, rank, truth, died)
    try:
        runner.run(store)
        result = Result("right")
    except Planted:
        result = Result("planted")
    except AssertionError as error:
        result = Result("wrong", str(error))
    except (NotMade, RuntimeError) as error:
        result = Result("error", f"{type(error).__name__}: {error}")
    result.at = time.monotonic()
    if result.how == "error":
        _require_device(len(program.groups))
    if program.destroys and result.how != "planted" and dist.is_initialized():
        with contextlib.suppress(dist.DistError):
            dist.destroy_process_group()
    return result


def _require_device(groups: int) -> None:
    """After the error of each group has been raised, the device works as before.

    A group may fail at any time: nothing waits for a message that was sent.
    """
    for _ in range(groups + 1):
        with contextlib.suppress(dist.DistBackendError):
            ones = torch.ones(1000, device="puone")
            if (ones + ones).cpu().unique().tolist() == [2.0]:
                return
    raise SystemExit("the device does not work after the errors of its groups")


@contextlib.contextmanager
def _making() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise NotMade(f"{type(error).__name__}: {error}") from error


class _Rank:
    def __init__(self, program: Program, rank: int, truth: Truth, died: Callable[[], None]) -> None:
        self.program = program
        self.rank = rank
        self.truth = truth
        self.died = died
        self.device = torch.device("puone", torch.accelerator.current_device_index())
        self.timeout = timedelta(seconds=SHORT_S if program.death else PATIENT_S)
        self.streams = [torch.Stream(self.device) for _ in range(2)]
        self.streams.append(torch.accelerator.current_stream())
        self.values = [
            Value(to_tensor(values, slot).to(self.device))
            for values, slot in zip(start(program, rank), program.slots, strict=True)
        ]
        torch.accelerator.synchronize()
        self.groups: dict[int, Any] = {}

    def run(self, store: str) -> None:
        self._begin(store)
        for place, number in enumerate(self.program.orders[self.rank]):
            self._make_groups(place)
            self._maybe_die(number)
            step = self.program.steps[number]
            if self.rank in self.program.members(step):
                self._step(number, step)
        for index in range(len(self.values)):
            self._compare(index, self.truth.end[self.rank][index], "at the end")
        # A message may be lost if its sender closes the connection at once (docs/integration).
        dist.barrier()

    def _begin(self, store: str) -> None:
        with _making():
            dist.init_process_group(
                store=dist.FileStore(store, self.program.ranks),
                rank=self.rank,
                world_size=self.program.ranks,
                timeout=self.timeout,
                device_id=self.device if self.program.bound else None,
            )
        self.groups[0] = dist.group.WORLD

    def _make_groups(self, place: int) -> None:
        for index, group in enumerate(self.program.groups):
            if index and group.made_before == place:
                with _making():
                    made = dist.new_group(list(group.members), timeout=self.timeout)
                self.groups[index] = made

    def _maybe_die(self, number: int) -> None:
        death = self.program.death
        if death is None or (death.rank, death.step) != (self.rank, number):
            return
        self.died()
        if death.after_ms is not None:
            timer = threading.Timer(death.after_ms / 1e3, self._die, (death,))
            timer.daemon = True
            timer.start()
        else:
            self._die(death)

    def _die(self, death: Death) -> None:
        match death.how:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(0)
            case "raise":
                raise Planted
            case "leave":
                dist.destroy_process_group()
                raise Planted
            case "abort":
                for group in list(self.groups.values()):
                    if group is not dist.GroupMember.NON_GROUP_MEMBER:
                        group._get_backend(self.device).abort()
            case "absent":
                time.sleep(2 * SHORT_S + 1)

    # ---- a step ----

    def _step(self, number: int, step: Step) -> None:
        time.sleep(step.host_ms[self.rank] / 1e3)
        with self.streams[step.stream]:
            if step.device_ms[self.rank]:
                puone._sleep_ms(step.device_ms[self.rank])
            tensors = {slot: self._use(slot) for slot in sorted(step.slots)}
            members = self.program.members(step)
            call = Calls(self, number, step, tensors, members)
            finish = getattr(call, step.call)()
            self._leave(step, finish)
            if step.finish != "later":
                for slot in step.slots:
                    self._use(slot)
        if step.finish == "host":
            for slot, wanted in self.truth.after[number, self.rank].items():
                self._compare(slot, wanted, f"after step {number}, {step.call},")

    def _leave(self, step: Step, finish: Callable[[], None]) -> None:
        """What has to be done before a slot of the step is used again."""
        values = [self.values[slot] for slot in step.slots]
        for value in values:
            value.finish, value.partners = finish, values

    def _use(self, slot: int) -> Tensor:
        """The tensor of a slot, once the current stream is behind its last use."""
        value = self.values[slot]
        stream = torch.accelerator.current_stream()
        if value.finish is not None:
            value.finish()
            done = stream.record_event()
            for partner in value.partners:
                partner.finish, partner.done = None, done
        elif value.done is not None:
            stream.wait_event(value.done)
        value.tensor.record_stream(stream)
        return value.tensor

    def _compare(self, slot: int, wanted: Values, when: str) -> None:
        got = to_values(self._use(slot).cpu(), self.program.slots[slot])
        # The tensor may be used on any stream again: a copy to the host ends before it returns.
        if not np.array_equal(got, wanted):
            place = int(np.flatnonzero((got != wanted).any(axis=1))[0])
            raise AssertionError(
                f"{when} slot {slot} of rank {self.rank} has {got[place].tolist()} at {place}, "
                f"not {wanted[place].tolist()}"
            )


def to_tensor(values: Values, slot: Slot) -> Tensor:
    """On the CPU, with one dimension."""
    tensor = torch.from_numpy(values)
    if slot.dtype == "complex64":
        return torch.view_as_complex(tensor.to(torch.float32).contiguous())
    return tensor[:, 0].to(getattr(torch, slot.dtype))


def to_values(tensor: Tensor, slot: Slot) -> Values:
    """The way back. A number that is not whole becomes one that no model has."""
    real = torch.view_as_real(tensor) if slot.dtype == "complex64" else tensor[:, None]
    wide = real.to(torch.float64)
    whole = torch.where(wide == wide.floor(), wide, -1.0)
    return whole.to(torch.int64).numpy()


# ---- on the device ----


def fold(tensor: Tensor) -> Tensor:
    """Small numbers again, in place."""
    if tensor.dtype != torch.bool:
        _real(tensor).remainder_(7)
    return tensor


def variant(tensor: Tensor, number: int) -> Tensor:
    if tensor.dtype == torch.bool:
        return tensor ^ bool(number % 2)
    changed = tensor.clone()
    _real(changed).add_(number)
    return fold(changed)


def mixed(parts: list[Tensor]) -> Tensor:
    total = torch.zeros_like(parts[0])
    kind = Slot("bool" if total.dtype == torch.bool else "", 0)
    for number, part in enumerate(parts):
        if total.dtype == torch.bool:
            total.logical_xor_(part)
        else:
            fold(total.add_(part * weight(number, kind)))
    return total


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def here(tensor: Tensor) -> Tensor:
    """The tensor, which was made on another stream and is used on the current one."""
    tensor.record_stream(torch.accelerator.current_stream())
    return tensor


@dataclass
class Calls:
    """The calls of a step, by name; each returns what finishes it, on the stream current then.

    Inputs that the method makes are dropped when it returns, results are kept by what it returns.
    """

    runner: _Rank
    number: int
    step: Step
    tensors: dict[int, Tensor]
    members: tuple[int, ...]

    @property
    def mine(self) -> Tensor:
        return self.tensors[self.step.slot]

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def place(self) -> int:
        return self.members.index(self.runner.rank)

    @property
    def group(self) -> Any:
        return self.runner.groups[self.step.group]

    @property
    def op(self) -> Any:
        return getattr(dist.ReduceOp, self.step.op)

    @property
    def is_root(self) -> bool:
        return self.step.root == self.runner.rank

    def neighbour(self, distance: int) -> int:
        return self.members[(self.place + distance) % self.size]

    def variants(self, slot: int | None = None) -> list[Tensor]:
        tensor = self.mine if slot is None else self.tensors[slot]
        return [variant(tensor, place) for place in range(self.size)]

    def empty(self, parts: int = 1) -> Tensor:
        return torch.empty(
            parts * self.mine.numel(), dtype=self.mine.dtype, device=self.mine.device
        )

    def small(self, tensor: Tensor) -> Tensor:
        """A reduced tensor: the sum where it is an average, and folded."""
        return fold(tensor.mul_(self.size) if self.step.op == "AVG" else tensor)

    def becomes(self, slot: int, tensor: Tensor) -> None:
        self.runner.values[slot].tensor = tensor

    # ---- reductions ----

    def all_reduce(self) -> Callable[[], None]:
        work = dist.all_reduce(self.mine, self.op, group=self.group, async_op=True)

        def finish() -> None:
            work.wait()
            self.small(here(self.mine))

        return finish

    def functional_all_reduce(self) -> Callable[[], None]:
        result = functional.all_reduce(self.mine, self.step.op.lower(), self.group)

        def finish() -> None:
            got = functional.wait_tensor(result)
            self.becomes(self.step.slot, self.small(here(got).clone()))

        return finish

    def reduce(self) -> Callable[[], None]:
        work = dist.reduce(self.mine, self.step.root, self.op, group=self.group, async_op=True)

        def finish() -> None:
            work.wait()
            if self.is_root:
                self.small(here(self.mine))

        return finish

    def reduce_scatter(self) -> Callable[[], None]:
        result = self.empty()
        work = dist.reduce_scatter(
            result, self.variants(), self.op, group=self.group, async_op=True
        )
        return self._reduced(work, {self.step.other: result})

    def reduce_scatter_tensor(self) -> Callable[[], None]:
        result = self.empty()
        whole = torch.cat(self.variants())
        work = dist.reduce_scatter_tensor(result, whole, self.op, group=self.group, async_op=True)
        return self._reduced(work, {self.step.other: result})

    def coalesced_all_reduce(self) -> Callable[[], None]:
        with _coalescing_manager(self.group, self.mine.device, async_ops=True) as manager:
            for tensor in self.tensors.values():
                dist.all_reduce(tensor, self.op, group=self.group)
        return self._reduced(manager, dict(self.tensors))

    def coalesced_reduce_scatter(self) -> Callable[[], None]:
        results = {slot: self.empty() for slot in self.tensors}
        with _coalescing_manager(self.group, self.mine.device, async_ops=True) as manager:
            for slot, result in results.items():
                whole = torch.cat(self.variants(slot))
                dist.reduce_scatter_tensor(result, whole, self.op, group=self.group)
        return self._reduced(manager, results)

    def _reduced(self, work: Any, results: dict[int, Tensor]) -> Callable[[], None]:
        def finish() -> None:
            work.wait()
            for slot, result in results.items():
                self.becomes(slot, self.small(here(result)))

        return finish

    # ---- data that only moves ----

    def broadcast(self) -> Callable[[], None]:
        work = dist.broadcast(self.mine, self.step.root, group=self.group, async_op=True)
        return self._waited(work)

    def all_gather(self) -> Callable[[], None]:
        parts = [self.empty() for _ in range(self.size)]
        work = dist.all_gather(parts, self.mine, group=self.group, async_op=True)
        return self._mixed([work], parts)

    def all_gather_into(self) -> Callable[[], None]:
        whole = self.empty(self.size)
        work = dist.all_gather_into_tensor(whole, self.mine, group=self.group, async_op=True)
        return self._mixed([work], [*whole.chunk(self.size)])

    def coalesced_all_gather(self) -> Callable[[], None]:
        wholes = {slot: self.empty(self.size) for slot in self.tensors}
        with _coalescing_manager(self.group, self.mine.device, async_ops=True) as manager:
            for slot, whole in wholes.items():
                dist.all_gather_into_tensor(whole, self.tensors[slot], group=self.group)

        def finish() -> None:
            manager.wait()
            for slot, whole in wholes.items():
                self.becomes(slot, mixed([*here(whole).chunk(self.size)]))

        return finish

    def gather(self) -> Callable[[], None]:
        parts = [self.empty() for _ in range(self.size)] if self.is_root else None
        work = dist.gather(self.mine, parts, self.step.root, group=self.group, async_op=True)
        return self._mixed([work], parts or [])

    def scatter(self) -> Callable[[], None]:
        result = self.empty()
        parts = self.variants() if self.is_root else None
        work = dist.scatter(result, parts, self.step.root, group=self.group, async_op=True)
        return self._moved([work], result)

    def all_to_all(self) -> Callable[[], None]:
        parts = [self.empty() for _ in range(self.size)]
        work = dist.all_to_all(parts, self.variants(), group=self.group, async_op=True)
        return self._mixed([work], parts)

    def all_to_all_single(self) -> Callable[[], None]:
        whole = self.empty(self.size)
        work = dist.all_to_all_single(
            whole, torch.cat(self.variants()), group=self.group, async_op=True
        )
        return self._mixed([work], [*whole.chunk(self.size)])

    def all_to_all_uneven(self) -> Callable[[], None]:
        count, places = self.mine.numel(), range(self.size)
        go = [copies(self.place, to) for to in places]
        come = [copies(source, self.place) for source in places]
        whole = self.empty(sum(come))
        work = dist.all_to_all_single(
            whole,
            torch.cat([part.repeat(go[to]) for to, part in enumerate(self.variants())]),
            [times * count for times in come],
            [times * count for times in go],
            group=self.group,
            async_op=True,
        )
        return self._mixed([work], [*whole.chunk(sum(come))])

    # ---- messages ----

    def exchange(self) -> Callable[[], None]:
        got = self.empty()
        works = [
            dist.isend(self.mine, self.neighbour(1), group=self.group, tag=self.number),
            dist.irecv(got, self.neighbour(-1), group=self.group, tag=self.number),
        ]
        return self._moved(works, got)

    def batch(self) -> Callable[[], None]:
        from_left, from_right = self.empty(), self.empty()
        left, right = self.neighbour(-1), self.neighbour(1)

        def message(operation: Any, tensor: Tensor, peer: int) -> Any:
            return dist.P2POp(operation, tensor, peer, group=self.group, tag=self.number)

        works = dist.batch_isend_irecv(
            [
                message(dist.isend, self.mine, right),
                message(dist.isend, self.mine, left),
                message(dist.irecv, from_left, left),
                message(dist.irecv, from_right, right),
            ]
        )
        return self._mixed([*works], [from_left, from_right])

    def from_any(self) -> Callable[[], None]:
        if not self.is_root:
            work = dist.isend(self.mine, self.step.root, group=self.group, tag=self.number)
            return self._waited(work)
        parts = [self.empty() for _ in range(self.size - 1)]
        works = [dist.irecv(part, group=self.group, tag=self.number) for part in parts]

        def finish() -> None:
            for work in works:
                assert work is not None
                work.wait()
            # In whatever order they came.
            self.becomes(self.step.other, reduce(_add, [here(part) for part in parts]))

        return finish

    # ---- what keeps the caller ----

    def barrier(self) -> Callable[[], None]:
        dist.barrier(group=self.group)
        return lambda: None

    def objects(self) -> Callable[[], None]:
        mine = [self.number, self.runner.rank]
        gathered: list[Any] = [None] * self.size
        dist.all_gather_object(gathered, mine, group=self.group)
        told = [mine if self.is_root else None]
        dist.broadcast_object_list(told, self.step.root, group=self.group)
        wanted = [[self.number, rank] for rank in self.members]
        assert gathered == wanted, f"step {self.number}: gathered {gathered}, not {wanted}"
        assert told == [[self.number, self.step.root]], f"step {self.number}: was told {told}"
        return lambda: None

    # ---- what is left to do ----

    def _waited(self, work: Any) -> Callable[[], None]:
        def finish() -> None:
            work.wait()

        return finish

    def _moved(self, works: list[Any], result: Tensor) -> Callable[[], None]:
        def finish() -> None:
            for work in works:
                work.wait()
            self.becomes(self.step.other, here(result))

        return finish

    def _mixed(self, works: list[Any], parts: list[Tensor]) -> Callable[[], None]:
        def finish() -> None:
            for work in works:
                work.wait()
            if parts:
                self.becomes(self.step.other, mixed([here(part) for part in parts]))

        return finish


def _add(one: Tensor, other: Tensor) -> Tensor:
    return one ^ other if one.dtype == torch.bool else fold(one + other)
