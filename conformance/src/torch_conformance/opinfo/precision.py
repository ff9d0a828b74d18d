# SPDX-License-Identifier: BSD-3-Clause
"""Which floating-point results are right: how far each element may be from the truth.

The CPU rounds, too, and some of its kernels round more often than a device does. A result that is
not the CPU's to within a few units of the last place is therefore measured against the truth, and
so is the CPU's. Every element is judged by itself and in units of its own last place (ULP): an
error that is small beside the largest element may be large beside its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_conformance.authoring import compare
from torch_conformance.authoring.compare import Difference
from torch_conformance.authoring.truth import WIDE
from torch_conformance.opinfo import neighbours, truth
from torch_conformance.opinfo.neighbours import Neighbours
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.truth import Act, Truth


class Rule(NamedTuple):
    """How far a device may be off where the CPU is off, too."""

    factor: float
    """Times the largest error of the CPU: the errors of two algorithms of the same precision differ
    that much where a sample is ill-conditioned."""
    limit: float
    """Beyond this part of the truth, an error of the CPU is not a rounding error but another
    result, which grants nothing."""
    elementwise: bool
    """Whether an element depends on few numbers. Where it is a sum of many, the error of the CPU
    counts in ULP and in its size, whichever grants less; and the sum may be that of numbers which
    are a few roundings away, inputs and what is computed on the way."""
    places: float = 8.0
    """An element this close to the truth, in ULP, is right whatever the CPU has."""
    places_of_16_bits: float = 1.0
    """How far an element of 16 bits may be off, in ULP, whatever the CPU has: it has to be one of
    the two numbers beside the truth."""


#: Functions of one element of each operand.
POINTWISE = Rule(4.0, 0.05, True)
#: Products, quotients and square roots: the number of 16 bits that is nearest to the truth. What a
#: division in float32 is off by may decide between two that are equally near.
ROUNDED_ONCE = Rule(4.0, 0.05, True, places_of_16_bits=0.5 + 1 / 64)
#: Reductions, products, factorisations.
RESULTS = Rule(8.0, 0.05, False)
# Derivatives are made of many operators, and where digits cancel, the CPU may be lucky: the errors
# of two implementations were 11 times each other in a sample of the second derivative of
# masked.log_softmax. What the CPU loses by keeping 16 bits between the steps is up to 9% of the
# largest (masked.softmin).
DERIVATIVES = Rule(16.0, 0.1, False)
# Of twice as many steps: 9.03 ULP in one of linalg.matrix_norm, where the CPU was lucky (1.03).
SECOND_DERIVATIVES = DERIVATIVES._replace(places=16.0)

#: This close to the CPU, in ULP, an element is as right as the CPU's: it is within the places of
#: every rule, or as far from the truth as the CPU, where the CPU has another result.
NEAR = 4
#: Smaller numbers may be zero: devices may lack subnormal numbers.
FLUSHED = torch.finfo(torch.float32).tiny

Pair = tuple[float, float]


@dataclass(frozen=True)
class Question:
    """One sample, and all that decides which results of it are right."""

    operator: str | None
    """The operator's name, if the results are not its derivatives."""
    act: Act
    sample: Sample
    rule: Rule
    granted: Callable[[torch.dtype], Pair]
    """(rtol, atol) that the backend declares or an exception grants; (0, 0) for none."""
    default: Callable[[torch.dtype], Pair]
    """(rtol, atol) where there is no truth."""
    draws: Callable[[], bool]
    """Whether the results are random: then no value of them is wrong."""
    _neighbours: dict[torch.dtype, Neighbours] = field(default_factory=dict)

    @cached_property
    def is_random(self) -> bool:
        """What `draws` says: it repeats the sample, so it is asked only when values differ."""
        return self.draws()

    def neighbours(self, dtype: torch.dtype) -> Neighbours:
        """What the results of a dtype are for inputs and steps a few roundings away."""
        if dtype not in self._neighbours:
            self._neighbours[dtype] = Neighbours(self.act, self.sample, dtype)
        return self._neighbours[dtype]


class Measured(NamedTuple):
    """The distances of the elements of one tensor from the truth."""

    ours: Tensor
    unit: Tensor
    allowed: Tensor
    cpu: float
    """The largest error of the CPU in ULP."""
    right: Tensor


class Leaf(NamedTuple):
    """One value of the results."""

    where: str
    """Its place in nested lists."""
    place: int
    """How many tensors come before it."""
    actual: Any
    expected: Any


def near(actual: Any, expected: Any) -> bool:
    """Whether all results are the CPU's but for units of the last place."""
    if isinstance(expected, (list, tuple)):
        return len(actual) == len(expected) and all(map(near, actual, expected))
    if not isinstance(expected, Tensor):
        return compare.difference(actual, expected) is None
    if expected.dtype not in WIDE or expected.layout != torch.strided:
        return compare.difference(actual, expected) is None
    actual, expected = neighbours.real(actual.detach()), neighbours.real(expected.detach())
    if torch.equal(actual, expected):
        return True
    if not torch.equal(actual.isfinite(), expected.isfinite()):
        return False
    odd = ~expected.isfinite()
    if bool(odd.any()) and compare.difference(actual[odd], expected[odd]) is not None:
        return False
    return (compare.max_ulp(actual, expected) or 0) <= _near(expected.dtype)


def difference(question: Question, actual: Any, expected: Any) -> Difference | None:
    """The first difference between a device's results and the right ones, or None."""
    leaves = list(_leaves(actual, expected))
    far = [leaf for leaf in leaves if not near(leaf.actual, leaf.expected)]
    if not far:
        return None
    exact = truth.of(question.operator, question.act, question.sample)
    count = sum(isinstance(leaf.expected, Tensor) for leaf in leaves)
    if exact is not None and len(exact.values) != count:
        exact = None
    found = next(filter(None, (_judged(question, leaf, exact) for leaf in far)), None)
    return None if found is not None and question.is_random else found


def _leaves(actual: Any, expected: Any) -> Iterator[Leaf]:
    """All values that are not lists, in order."""
    place = 0
    for where, ours, theirs in _flat(actual, expected, ""):
        yield Leaf(where, place, ours, theirs)
        place += isinstance(theirs, Tensor)


def _flat(actual: Any, expected: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(expected, (list, tuple)):
        yield where, actual, expected
        return
    for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        yield from _flat(ours, theirs, f"{where}[{i}]")


def _judged(question: Question, leaf: Leaf, exact: Truth | None) -> Difference | None:
    where, place, actual, expected = leaf
    right = exact.values[place].detach() if exact and isinstance(expected, Tensor) else None
    if exact is None or right is None or not _fits(right, expected):
        dtype = expected.dtype if isinstance(expected, Tensor) else torch.float32
        rtol, atol = question.default(dtype)
        return compare.difference(actual, expected, rtol=rtol, atol=atol, where=where)
    actual, expected = actual.detach(), expected.detach()
    exact_enough = exact.exact_in_double or expected.dtype != right.dtype
    places = _places(question.rule, expected.dtype) * (1 if exact_enough else 2)
    granted = question.granted if exact_enough or question.rule.elementwise else question.default
    found = _measured(question.rule, actual, expected, right, places, granted(expected.dtype))
    wrong = ~found.right
    # Where the truth has no more digits, those that cancel show in functions of one element, too.
    if bool(wrong.any()) and not (question.rule.elementwise and exact_enough):
        if question.is_random:
            return None  # and no neighbours, which take long to compute
        wrong = _far_from_all(question, actual, wrong, found.allowed, place, places)
    if not bool(wrong.any()):
        return None
    notes = _notes(found, right, wrong, places, exact.source)
    return compare.described(actual, expected, wrong, notes, where)


def _fits(right: Tensor, expected: Tensor) -> bool:
    return (
        expected.dtype in WIDE
        and expected.layout == right.layout == torch.strided
        and right.dtype == WIDE[expected.dtype]
        and right.shape == expected.shape
    )


def _measured(
    rule: Rule, actual: Tensor, expected: Tensor, right: Tensor, places: float, granted: Pair
) -> Measured:
    """How far the elements are from the truth, and how far they may be."""
    unit = _unit(right, expected.dtype)
    ours, theirs = ((t.to(right.dtype) - right).abs() for t in (actual, expected))
    rtol, atol = granted
    allowed = torch.maximum(places * unit, atol + rtol * right.abs()).clamp(min=FLUSHED)
    cpu, as_much = _as_the_cpu(rule, theirs, unit, right)
    allowed = torch.maximum(allowed, as_much)
    same = _same(actual, expected) | _same(actual, right.to(expected.dtype))
    wide = expected.to(right.dtype)
    beside = (actual.to(right.dtype) - wide).abs() / _unit(wide, expected.dtype)
    as_the_cpu = beside <= _near(expected.dtype)
    # Where the truth is not a number that double precision has, only the CPU's result is known.
    unknown = ~right.isfinite() & (beside <= places)
    is_right = same | (ours <= allowed) | as_the_cpu | unknown
    return Measured(ours, unit, allowed, cpu, is_right)


def _as_the_cpu(rule: Rule, theirs: Tensor, unit: Tensor, right: Tensor) -> tuple[float, Tensor]:
    """The largest error of the CPU in ULP, and the error that it grants to each element."""
    size = right.abs() if rule.elementwise else _largest(right.abs())
    known = theirs.isfinite() & right.isfinite() & (theirs <= rule.limit * size)
    if not bool(known.any()):
        return 0.0, torch.zeros_like(unit)
    worst = float((theirs / unit)[known].max())
    # Half a unit is what the dtype itself costs.
    granted = (0.5 + rule.factor * max(0.0, worst - 0.5)) * unit
    if not rule.elementwise:
        granted = granted.clamp(max=rule.factor * float(theirs[known].max()))
    return worst, granted


def _far_from_all(
    question: Question, actual: Tensor, wrong: Tensor, allowed: Tensor, place: int, places: float
) -> Tensor:
    """Which of the wrong elements are wrong for inputs and steps some roundings away, too."""
    ours = neighbours.real(actual)
    slack = allowed[..., None] if actual.is_complex() else allowed
    for low, high in question.neighbours(actual.dtype).ranges(place):
        # The truth may be zero where its neighbours are not.
        more = slack.maximum(places * _unit(low.abs().maximum(high.abs()), actual.dtype))
        inside = (ours.to(low.dtype) >= low - more) & (ours.to(low.dtype) <= high + more)
        wrong = wrong & ~(inside.all(-1) if actual.is_complex() else inside)
        if not bool(wrong.any()):
            break
    return wrong


def _notes(
    found: Measured, right: Tensor, wrong: Tensor, places: float, source: str
) -> tuple[str, str]:
    """Where the truth comes from, and the distances of the first wrong element from it."""
    first = int(wrong.view(torch.uint8).argmax())
    ours, unit, allowed = (
        float(t.reshape(-1)[first]) for t in (found.ours, found.unit, found.allowed)
    )
    value = right.reshape(-1)[first].item()
    return (
        f"the right result there is {value!r} ({source})",
        f"it is off by {ours / unit:.3g} ULP, may be by {max(allowed / unit, places):.3g}, "
        f"the CPU is by up to {found.cpu:.3g}",
    )


def _same(actual: Tensor, expected: Tensor) -> Tensor:
    """Which elements are equal; a complex number is infinite in one way."""
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    if actual.is_complex():
        same |= ~actual.isfinite() & ~expected.isfinite()
    return same


def _largest(values: Tensor) -> Tensor:
    """The largest finite value, in the shape of all."""
    finite = values[values.isfinite()]
    return torch.full_like(values, float(finite.max()) if finite.numel() else 0.0)


def _unit(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The unit of the last place of `dtype` at each of the values, given in double precision."""
    limits = torch.finfo(dtype)
    exponent = torch.frexp(values.abs()).exponent - 1
    unit = torch.ldexp(torch.full_like(values.abs(), limits.eps), exponent)
    return unit.clamp(min=limits.smallest_normal * limits.eps)


def _short(dtype: torch.dtype) -> bool:
    return dtype in (torch.float16, torch.bfloat16)


def _near(dtype: torch.dtype) -> int:
    """NEAR, and nothing in 16 bits."""
    return 0 if _short(dtype) else NEAR


def _places(rule: Rule, dtype: torch.dtype) -> float:
    return rule.places_of_16_bits if _short(dtype) else rule.places
