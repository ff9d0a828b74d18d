# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of collectives, and a model of them in NumPy.

A program is a list of calls on the slots of each rank, made from a seed. A slot holds small whole
numbers, which every dtype represents and whose sums are exact, so that the model can say what each
rank has to the bit. Nothing here knows of torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]

SLOTS = 5
#: Elements: one; numbers that no number of ranks divides; 5.6 MB of float64, which go in pieces.
SIZES = (1, 3, 1000, 60_001)
LARGE = 700_001
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*INTEGERS, *FLOATS, "bool", "complex64")
#: What holds the product of four numbers below MODULUS.
WIDE = ("int32", "int64", "float32", "float64")
MODULUS = 7
STREAMS = 3

#: Calls after which every member has had something of every other one.
ALL_TO_ALL = (
    "all_reduce",
    "all_gather",
    "all_gather_into",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "all_to_all_uneven",
    "coalesced_all_reduce",
    "coalesced_all_gather",
    "coalesced_reduce_scatter",
    "functional_all_reduce",
    "barrier",
    "objects",
)
CALLS = (*ALL_TO_ALL, "reduce", "broadcast", "gather", "scatter", "exchange", "batch", "from_any")
#: Calls that keep the caller until other ranks have come.
BLOCKING = ("barrier", "objects")
REDUCING = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "coalesced_all_reduce",
    "coalesced_reduce_scatter",
    "functional_all_reduce",
)
#: How a rank ends. `absent`: it sleeps beyond the timeout. `leave`: it destroys its groups.
DEATHS = ("kill", "exit", "raise", "leave", "abort", "absent")


@dataclass(frozen=True)
class Slot:
    """What a slot of every rank holds."""

    dtype: str
    count: int

    @property
    def modulus(self) -> int:
        return 2 if self.dtype == "bool" else MODULUS


@dataclass(frozen=True)
class Step:
    """One call of the members of a group."""

    call: str
    slot: int
    other: int
    group: int
    root: int
    """A rank of the program; a member of the group."""
    op: str
    stream: int
    finish: str
    """When its result is used: `later`, `now`, or `host`, which also compares it with the model."""
    host_ms: tuple[int, ...]
    """By rank, before the call."""
    device_ms: tuple[int, ...]

    @property
    def slots(self) -> set[int]:
        return {self.slot, self.other}


@dataclass(frozen=True)
class Group:
    """Ranks, and the step before which their group is made."""

    members: tuple[int, ...]
    made_before: int


@dataclass(frozen=True)
class Death:
    """That a rank ends before a step, or some time after it has come there."""

    rank: int
    step: int
    how: str
    after_ms: float | None


@dataclass(frozen=True)
class Program:
    """What all ranks run."""

    seed: int
    ranks: int
    slots: tuple[Slot, ...]
    groups: tuple[Group, ...]
    """The first one is that of all ranks."""
    steps: tuple[Step, ...]
    orders: tuple[tuple[int, ...], ...]
    """By rank, in which order it runs the steps: ranks may call two groups in different order."""
    death: Death | None
    bound: bool
    """Whether the group of all ranks is made for a device."""
    destroys: bool
    """Whether the ranks destroy their groups before they end."""
    shuts_down: bool
    """Whether they end through the interpreter's shutdown, which costs more than the program."""
    schedule: int | None
    """The seed of an adversarial schedule of the device."""

    def members(self, step: Step) -> tuple[int, ...]:
        return self.groups[step.group].members


# ---- from a seed to a program ----


def plan(seed: int, ranks: int) -> Program:
    """The program of a seed. One in three has the death of a rank."""
    choose = random.Random(f"{seed} {ranks}")
    slots = _slots(choose)
    length = choose.randint(3, 14)
    groups = _groups(choose, ranks, length)
    steps = tuple(_step(choose, ranks, slots, groups, number) for number in range(length))
    orders = tuple(_order(choose, rank, steps, groups) for rank in range(ranks))
    return Program(
        seed=seed,
        ranks=ranks,
        slots=slots,
        groups=groups,
        steps=steps,
        orders=orders,
        death=_death(choose, ranks, length) if seed % 3 == 2 else None,
        bound=choose.random() < 0.5,
        destroys=choose.random() < 0.5,
        shuts_down=choose.random() < 0.3,
        schedule=seed if choose.random() < 0.7 else None,
    )


def _slots(choose: random.Random) -> tuple[Slot, ...]:
    slots = [Slot(choose.choice(DTYPES), choose.choice(SIZES)) for _ in range(SLOTS)]
    # Calls from one slot to another need two that are alike.
    slots[1], slots[3] = slots[0], slots[2]
    if choose.random() < 0.1:
        slots[4] = Slot(choose.choice(DTYPES), LARGE)
    return tuple(slots)


def _groups(choose: random.Random, ranks: int, length: int) -> tuple[Group, ...]:
    groups = [Group(tuple(range(ranks)), 0)]
    for _ in range(choose.randint(1, 3)):
        members = sorted(choose.sample(range(ranks), choose.randint(2, ranks)))
        groups.append(Group(tuple(members), choose.choice((0, 0, choose.randrange(length)))))
    return tuple(groups)


def _step(
    choose: random.Random,
    ranks: int,
    slots: tuple[Slot, ...],
    groups: tuple[Group, ...],
    number: int,
) -> Step:
    there = [index for index, group in enumerate(groups) if group.made_before <= number]
    group = choose.choice(there)
    call = choose.choice(CALLS)
    slot = choose.randrange(SLOTS)
    # Any two slots may be reduced together; elsewhere one becomes what the other one is.
    other = choose.randrange(SLOTS) if call == "coalesced_all_reduce" else (1, 0, 3, 2, 4)[slot]
    size = len(groups[group].members)
    ops = _operations({slots[slot].dtype, slots[other].dtype}, size) if call in REDUCING else [""]
    return Step(
        call=call,
        slot=slot,
        other=other,
        group=group,
        root=choose.choice(groups[group].members),
        op=choose.choice(ops),
        stream=choose.randrange(STREAMS),
        finish=choose.choice(("later", "later", "now", "host")),
        host_ms=_delays(choose, ranks, 0.15, 15),
        device_ms=_delays(choose, ranks, 0.25, 20),
    )


def _operations(dtypes: set[str], ranks: int) -> list[str]:
    """What is defined for all these types, and exact in them."""
    ops = ["SUM"]
    if "complex64" not in dtypes:
        ops += ["MIN", "MAX"]
    if dtypes <= set(FLOATS) and ranks != 3:  # a third is not exact
        ops.append("AVG")
    if dtypes <= set(WIDE):
        ops.append("PRODUCT")
    if dtypes <= {*INTEGERS, "bool"}:
        ops += ["BAND", "BOR", "BXOR"]
    return ops


def _delays(choose: random.Random, ranks: int, often: float, most: int) -> tuple[int, ...]:
    return tuple(choose.randrange(most) if choose.random() < often else 0 for _ in range(ranks))


def _order(
    choose: random.Random, rank: int, steps: tuple[Step, ...], groups: tuple[Group, ...]
) -> tuple[int, ...]:
    order = list(range(len(steps)))
    for place in range(len(steps) - 1):
        first, second = steps[order[place]], steps[place + 1]
        apart = first.group != second.group and not first.slots & second.slots
        queued = all(s.finish == "later" and s.call not in BLOCKING for s in (first, second))
        makes = any(group.made_before == place + 1 for group in groups)
        if apart and queued and not makes and choose.random() < 0.5:
            order[place], order[place + 1] = order[place + 1], order[place]
    return tuple(order)


def _death(choose: random.Random, ranks: int, length: int) -> Death:
    how = choose.choice(DEATHS)
    late = how in ("kill", "abort") and choose.random() < 0.5
    return Death(
        rank=choose.randrange(ranks),
        step=choose.randrange(length),
        how=how,
        after_ms=30 * choose.random() if late else None,
    )


# ---- what a program means ----


@dataclass(frozen=True)
class Truth:
    """What the model says: the slots of a rank after some of its steps, and at the end."""

    after: dict[tuple[int, int], dict[int, Values]]
    """By step that has `host`, and rank: the slots of the step."""
    end: list[list[Values]]
    """By rank."""


def start(program: Program, rank: int) -> list[Values]:
    """The slots of a rank before the first step: one column, or two for complex numbers."""
    slots = []
    for index, slot in enumerate(program.slots):
        place = np.arange(slot.count, dtype=np.int64)[:, None]
        columns = np.arange(2 if slot.dtype == "complex64" else 1, dtype=np.int64)[None, :]
        slots.append((place * (3 + 2 * index) + 5 * rank + 2 * columns + index) % slot.modulus)
    return slots


def variant(values: Values, slot: Slot, number: int) -> Values:
    """What a rank has for another one, where it has something for each."""
    return (values + number) % slot.modulus


def mixed(parts: list[Values], slot: Slot) -> Values:
    """One slot in which every part shows."""
    total = np.zeros_like(parts[0])
    for number, part in enumerate(parts):
        total = (total + part * weight(number, slot)) % slot.modulus
    return total


def weight(number: int, slot: Slot) -> int:
    return 1 if slot.dtype == "bool" else number % MODULUS + 1


def copies(sender: int, receiver: int) -> int:
    """How often the uneven all_to_all sends a part; by places in the group."""
    return 1 + (sender + receiver) % 2


def reduced(parts: list[Values], slot: Slot, op: str) -> Values:
    """A reduction, and what the ranks do with its result to keep it small."""
    if slot.dtype == "bool":
        # NCCL's meaning of sums and products of truth values.
        op = {"SUM": "MAX", "PRODUCT": "MIN"}.get(op, op)
    return reduce(_UFUNCS[op], parts) % slot.modulus


_UFUNCS: dict[str, Callable[[Values, Values], Values]] = {
    "SUM": np.add,
    "AVG": np.add,  # the ranks multiply the average with their number
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}


def model(program: Program) -> Truth:
    """Run the program on arrays, one step after the other."""
    state = [start(program, rank) for rank in range(program.ranks)]
    after = {}
    for number, step in enumerate(program.steps):
        _apply(program, step, state)
        if step.finish == "host":
            for rank in program.members(step):
                after[number, rank] = {slot: state[rank][slot] for slot in step.slots}
    return Truth(after, state)


def _apply(program: Program, step: Step, state: list[list[Values]]) -> None:
    members = program.members(step)
    kind, other = program.slots[step.slot], program.slots[step.other]
    mine = [state[rank][step.slot] for rank in members]
    theirs = [state[rank][step.other] for rank in members]
    root = members.index(step.root)
    size = len(members)
    places = range(size)
    # By place in the group: what the slot `other` becomes.
    results: dict[int, Values] = {}
    match step.call:
        case "all_reduce" | "functional_all_reduce":
            _assign(state, members, step.slot, [reduced(mine, kind, step.op)] * size)
        case "reduce":
            state[step.root][step.slot] = reduced(mine, kind, step.op)
        case "broadcast":
            _assign(state, members, step.slot, [mine[root]] * size)
        case "all_gather" | "all_gather_into":
            results = {place: mixed(mine, kind) for place in places}
        case "gather":
            results = {root: mixed(mine, kind)}
        case "scatter":
            results = {place: variant(mine[root], kind, place) for place in places}
        case "reduce_scatter" | "reduce_scatter_tensor":
            for place in places:
                parts = [variant(values, kind, place) for values in mine]
                results[place] = reduced(parts, kind, step.op)
        case "all_to_all" | "all_to_all_single":
            for place in places:
                results[place] = mixed([variant(values, kind, place) for values in mine], kind)
        case "all_to_all_uneven":
            for place in places:
                come = [
                    variant(values, kind, place)
                    for sender, values in enumerate(mine)
                    for _ in range(copies(sender, place))
                ]
                results[place] = mixed(come, kind)
        case "coalesced_all_reduce":
            _assign(state, members, step.slot, [reduced(mine, kind, step.op)] * size)
            if step.other != step.slot:
                results = dict.fromkeys(places, reduced(theirs, other, step.op))
        case "coalesced_all_gather":
            _assign(state, members, step.slot, [mixed(mine, kind)] * size)
            if step.other != step.slot:
                results = dict.fromkeys(places, mixed(theirs, other))
        case "coalesced_reduce_scatter":
            for index, inputs in ((step.slot, mine), (step.other, theirs)):
                for place, rank in enumerate(members):
                    parts = [variant(values, kind, place) for values in inputs]
                    state[rank][index] = reduced(parts, kind, step.op)
        case "exchange":
            results = {place: mine[place - 1] for place in places}
        case "batch":
            for place in places:
                results[place] = mixed([mine[place - 1], mine[(place + 1) % size]], kind)
        case "from_any":
            results = {root: reduce(np.add, mine[:root] + mine[root + 1 :]) % kind.modulus}
        case "barrier" | "objects":
            pass
        case _:
            raise AssertionError(step.call)
    for place, values in results.items():
        state[members[place]][step.other] = values


def _assign(
    state: list[list[Values]], members: tuple[int, ...], slot: int, values: list[Values]
) -> None:
    for rank, value in zip(members, values, strict=True):
        state[rank][slot] = value


def must_fail(program: Program, rank: int) -> bool:
    """Whether a rank calls something that needs a call which the dead one does not make."""
    death = program.death
    if death is None or death.after_ms is not None or death.rank == rank:
        return False
    order = program.orders[death.rank]
    missing = order[order.index(death.step) :]
    return any(
        {rank, death.rank} <= set(program.members(program.steps[number]))
        and program.steps[number].call in ALL_TO_ALL
        for number in missing
    )
