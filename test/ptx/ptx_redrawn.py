# SPDX-License-Identifier: BSD-3-Clause
"""The launches of the known answers with other values: any bits that the operands' types have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
from ptx_executor import CUDA_PTX
from ptx_kernels import ExactLaunch, driver_of
from suites import SIM

from hal_conformance import answering, contract
from hal_conformance.abi import Status
from hal_conformance.answers import (
    COMPLEXES,
    INTEGERS,
    REALS,
    STORAGE,
    Case,
    In,
    InOut,
    Out,
    decode,
    encode,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers import known_answers
from hal_conformance.known_answers._elementwise import to_real

#: Of the values of the tests: every other one replaces half of the values, the rest a tenth.
SEEDS = (4, 5)
#: Families whose integers may be any: none is an index or a count.
FREE = (
    *("unary_simple", "unary_trigonometric", "unary_exponential", "arithmetic", "ternary"),
    *("binary", "compare", "activation", "special", "loss", "copy", "fill", "foreach"),
    *("cumulative", "reduction", "extremes", "order", "complex"),
)
#: Families of which each element has one right result, whatever the values, within its bound.
COMPARABLE = tuple(family for family in FREE if family not in ("cumulative", "reduction"))
#: Types of which a kernel is not compared: the function is not defined at most values, or changes
#: without bound with what is rounded on the way.
NOT_COMPARED: dict[str, Collection[DType]] = {
    "binary_cross_entropy": REALS,
    "gelu_tanh_backward": REALS,
    "pow": COMPLEXES,
    "pow_scalar": COMPLEXES,
}
#: Whose results may be infinite, or no number, on one side, where a product overflows on the way:
#: the compilers are free to round it before a sum, or not. Of complex numbers that are not finite
#: the parts may differ for the same reason.
OVERFLOWING = (
    *("sigmoid", "silu", "sub", "lerp", "lerp_scalar", "addcmul", "hypot"),
    *("foreach_sub", "foreach_lerp", "foreach_addcmul"),
)
#: Whose zeros may have either sign: it depends on the order of elements, or on what is rounded.
ANY_ZERO = ("amax", "amin", "lerp", "lerp_scalar", "foreach_lerp")
#: Which subtract numbers that nearly cancel: times the bound.
STEEP = dict.fromkeys(("gelu_backward", "silu_backward", "sub", "tanh_backward"), 2.0**7)


class Redrawn(ExactLaunch):
    """A launch with other values, that depend on its operands and the seed alone."""

    seed: ClassVar[int] = 0

    def _elements(self, operand: In | InOut) -> Any:
        bits = np.array(super()._elements(operand))
        if bits.size == 0:
            return bits
        draw = np.random.default_rng([self.seed, len(self._blocks)])
        flat = draw.permutation(bits.reshape(-1))
        if operand.dtype not in INTEGERS or contract.kernels()[self._case.kernel].family in FREE:
            size = STORAGE[operand.dtype].itemsize
            noise = draw.integers(0, 256, (flat.size, size), np.uint8)
            if operand.dtype is DType.BOOL:
                noise &= 1
            chosen = draw.random(flat.size) < (0.5 if self.seed % 2 else 0.1)
            flat[chosen] = noise.reshape(-1).view(STORAGE[operand.dtype])[chosen]
        if operand.dtype not in INTEGERS:
            _set_nan(flat, operand.dtype)
        return flat.reshape(bits.shape)


def _set_nan(bits: Any, dtype: DType) -> None:
    """Give every NaN the bits of the usual one: PTX loses sign and payload in conversions."""
    of_part = to_real(dtype)
    parts = np.dtype(f"u{STORAGE[of_part].itemsize}")
    usual = encode(np.nan, of_part).view(parts)
    view = bits.view(parts)
    view[np.isnan(decode(view.view(STORAGE[of_part]), of_part))] = usual


class OnSim(Redrawn):
    """On sim, whose results are kept, by the fields of a launch."""

    results: ClassVar[dict[str, Any]] = {}

    def _judge(self) -> None:
        for block in self._outputs():
            self.results[block.path] = decode(self._read(block), block.operand.dtype)


class AsOnSim(Redrawn):
    """With the results that the launch had on sim, each side within the bound of the answers."""

    def _judge(self) -> None:
        kernel = self._case.kernel
        for block in self._outputs():
            found = decode(self._read(block), block.operand.dtype)
            values = OnSim.results[block.path]
            finite = np.isfinite(found), np.isfinite(values)
            if kernel in OVERFLOWING:
                values = np.where(finite[0] & finite[1], values, found)
            elif block.operand.dtype in COMPLEXES:
                values = np.where(finite[0] | finite[1], values, found)
            ulps = 2 * bounds(kernel)[block.operand.dtype, self._case.types] * STEEP.get(kernel, 1)
            wanted = replace(block.operand, values=values, ulps=ulps)
            where = f"{self._case}: {block.path}"
            answering.compare(found, wanted, where)
            if block.operand.dtype in REALS and kernel not in ANY_ZERO:
                zeros = (found == 0) & (np.asarray(values) == 0)
                apart = zeros & (np.signbit(found) != np.signbit(values))
                assert not apart.any(), f"{where}: the sign of {apart.sum()} zeros is another"


@cache
def bounds(kernel: str) -> dict[tuple[DType, tuple[DType, ...]], float]:
    """By the type of an output and those of the case: the largest bound of the answers."""
    found: dict[tuple[DType, tuple[DType, ...]], float] = {}
    for case in known_answers(kernel):
        for operand in operands(case.args):
            if isinstance(operand, Out | InOut):
                place = operand.dtype, case.types
                found[place] = max(operand.ulps, found.get(place, 0))
    return found


def operands(value: Any) -> Iterator[Any]:
    """What stands in the place of memory, anywhere in the arguments."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from operands(item)
    else:
        yield value


def is_comparable(case: Case) -> bool:
    """Whether any values have one right result."""
    if case.fails is not None or set(case.types) & set(NOT_COMPARED.get(case.kernel, ())):
        return False
    # What a number becomes that an integer cannot hold is not defined.
    copies = contract.kernels()[case.kernel].family == "copy"
    return not (copies and set(case.types) & set(INTEGERS) and set(case.types) - set(INTEGERS))


def unlike_sim(kernel: str, seeds: Iterable[int], at_most: int = 1000) -> tuple[int, list[str]]:
    """How many launches both drivers took, and what differs, in this process."""
    sim, ptx = driver_of(SIM), driver_of(CUDA_PTX)
    taken, wrong = 0, []
    for seed, case in product(seeds, known_answers(kernel)):
        if not is_comparable(case) or any(answering.not_taken(d, case) for d in (sim, ptx)):
            continue
        Redrawn.seed = seed
        taken += 1
        try:
            answering.answer(sim, case, OnSim)
            answering.answer(ptx, case, AsOnSim)
        except AssertionError as error:
            wrong.append(str(error))
            if Status.DEVICE_LOST.name in str(error) or len(wrong) == at_most:
                break
    return taken, wrong
