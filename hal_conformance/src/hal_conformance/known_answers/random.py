# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the random kernels, which have one number per element.

Philox 4x32-10 is written down here once more. Element i draws from the block of the counter
`i // n : offset // 4` (high : low) under the key `seed`: n = 4 for numbers of 32 bits, 2 for those
of 64 bits, in the order of the block's words, low words first. What is computed in float32 takes 32
bits, in float64 64 bits. The transformations are those of the literature, computed here by NumPy in
more precision: exact ones are compared to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    LAYOUTS,
    REALS,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    elementwise_args,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType

# Random123's known answers (kat_vectors of D. E. Shaw Research): counter, key, block.
PUBLISHED = (
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
)
SEEDS = ((0, 0), (12345, 8), (0xA4093822_299F31D0, (1 << 62) + 4), ((1 << 64) - 1, 1 << 34))
# Around blocks, pieces of 256 elements, and the shares of a core.
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (0,), (5, 7), (3, 1, 5), (257,), (40_001,))


def philox(low: Array, high: Array, key: int) -> Array:
    """The blocks of the counters high:low, [..., 4]: ten rounds of Salmon et al., SC'11."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    low, high = np.broadcast_arrays(np.asarray(low, np.uint64), np.asarray(high, np.uint64))
    c = [low & mask, low >> shift, high & mask, high >> shift]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        even, odd = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (odd >> shift) ^ c[1] ^ np.uint64(k[0]),
            odd & mask,
            (even >> shift) ^ c[3] ^ np.uint64(k[1]),
            even & mask,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, -1)


def bits32(seed: int, offset: int, n: int) -> Array:
    return philox(np.uint64(offset // 4), np.arange(-(-n // 4)), seed).reshape(-1)


def bits64(seed: int, offset: int, n: int) -> Array:
    words = philox(np.uint64(offset // 4), np.arange(-(-n // 2)), seed).reshape(-1, 2)
    return words[:, 0] | words[:, 1] << np.uint64(32)


def _check_philox() -> None:
    for counter, key, block in PUBLISHED:
        c, k = ([int(word, 16) for word in text.split()] for text in (counter, key))
        found = philox(
            np.uint64(c[0] | c[1] << 32), np.uint64(c[2] | c[3] << 32), k[0] | k[1] << 32
        )
        assert [f"{word:08x}" for word in found] == block.split()


HALF_PI = np.longdouble("1.5707963267948966192313216916397514421")


class Draws:
    """What the elements of whole blocks draw, of kernels that compute in float32 or float64."""

    def __init__(self, compute: DType, seed: int, offset: int, n: int) -> None:
        self.width = 32 if compute is DType.FLOAT32 else 64
        self.real: Any = np.float32 if self.width == 32 else np.float64
        self.words = (bits32 if self.width == 32 else bits64)(seed, offset, n)

    def unit(self) -> Array:
        """In [0, 1), exactly: the high 24 or 53 bits."""
        digits = 24 if self.width == 32 else 53
        high = (self.words >> np.uint64(self.width - digits)).astype(self.real)
        return high * self.real(2.0**-digits)

    def open_unit(self, words: Array | None = None) -> Array:
        """In (0, 1): below 1 by a rounding error at least."""
        words = self.words if words is None else words
        middle = (words >> np.uint64(1)).astype(self.real) + self.real(0.5)
        below_one = self.real(1) - np.finfo(self.real).epsneg
        return np.minimum(middle * self.real(2.0 ** (1 - self.width)), below_one).astype(
            np.longdouble
        )

    def angle(self, words: Array | None = None) -> Array:
        """The two high bits are a quarter of a turn, the others the place around it, signed."""
        words = self.words if words is None else words
        bits = self.width - 2
        place = (words & np.uint64((1 << bits) - 1)).astype(np.int64)
        place -= (place >> (bits - 1)) << bits
        quarter = (words >> np.uint64(bits)).astype(np.longdouble)
        return (quarter + (place.astype(np.longdouble) + 0.5) / np.longdouble(2**bits)) * HALF_PI

    def normal(self) -> Array:
        """Box and Muller: of two draws the first gives the radius, the second the angle."""
        radius = np.sqrt(-2 * np.log(self.open_unit(self.words[0::2])))
        angle = self.angle(self.words[1::2])
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)


def uniform(draws: Draws, begin: float, width: float, last: float) -> Array:
    real = draws.real
    return np.minimum(real(begin) + draws.unit() * real(width), real(last))


def exponential(draws: Draws, mean: float, low: float, high: float) -> Array:
    return np.clip(-np.log(draws.open_unit()) * mean, low, high)


def geometric(draws: Draws, scale: float, high: float) -> Array:
    return np.clip(np.ceil(np.log(draws.open_unit()) * draws.real(scale)), 1, high)


def cauchy(draws: Draws, median: float, sigma: float, high: float) -> Array:
    return np.clip(median + sigma * np.tan(draws.angle()), -high, high)


def normal(draws: Draws, mean: float, deviation: float) -> Array:
    return mean + deviation * draws.normal()


def log_normal(draws: Draws, mean: float, deviation: float) -> Array:
    return np.exp(normal(draws, mean, deviation))


# The kernel's function, parameters that every type has exactly, and by how many spacings of the
# type computed in numbers around 1 and all numbers may be off.
Distribution = tuple[Callable[..., Array], tuple[float, ...], float, float]
DISTRIBUTIONS: dict[str, tuple[Distribution, ...]] = {
    "uniform": ((uniform, (-1, 4, 2.984375), 0, 0), (uniform, (0, 1, 0.99609375), 0, 0)),
    "exponential": ((exponential, (0.5, 0.0625, 3), 0, 8),),
    "geometric": ((geometric, (-4, 20), 0, 0),),
    "cauchy": ((cauchy, (0.5, 2, 1000), 64, 16),),
    "normal": ((normal, (0, 1), 64, 8), (normal, (-3, 0.25), 64, 8), (normal, (2, 0), 0, 0)),
    "log_normal": ((log_normal, (0.25, 0.5), 0, 64),),
}
# Mean and variance of what those with the first parameters, not cut off, give.
MOMENTS: dict[str, tuple[tuple[float, ...], float, float]] = {
    "uniform": ((-1, 4, 3), 1, 16 / 12),
    "exponential": ((0.5, 0, 1000), 0.5, 0.25),
    "geometric": ((1 / np.log(0.75), 1e9), 4, 12),
    "normal": ((2, 3), 2, 9),
    "log_normal": ((0, 0.5), np.exp(0.125), (np.exp(0.25) - 1) * np.exp(0.25)),
}


def args(
    type: DType,
    seed: int,
    offset: int,
    outputs: Sequence[Out],
    inputs: Sequence[In] = (),
    parameters: Sequence[float] = (),
) -> dict[str, Any]:
    operands = elementwise_args(type, outputs, inputs, parameters)
    return {"seed": seed, "offset": offset, "elementwise": operands}


def drawn(values: Array, shape: tuple[int, ...]) -> Array:
    return values[: int(np.prod(shape, dtype=np.int64))].reshape(shape)


def places() -> Iterator[tuple[int, int, tuple[int, ...], Layout]]:
    """Seed, offset, shape and layout."""
    for shape in SHAPES:
        yield (*SEEDS[1], shape, dense)
    for seed, offset in SEEDS:
        yield seed, offset, (9,), dense
    for layout in LAYOUTS[1:]:
        yield (*SEEDS[1], (3, 4, 7), layout)


def with_states(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases, and those of one seed once more with seed and offset read from device memory."""
    for case in cases:
        yield case
        if case.args.get("seed") == SEEDS[2][0] and case.fails is None:
            numbers = [case.args["seed"], case.args["offset"] - 4]
            state = np.array(numbers, np.uint64).astype(np.int64)
            arguments = {"seed": 99, "offset": 4, "state": In(state, DType.INT64)}
            yield replace(case, name=f"{case.name} state", args=case.args | arguments)


def mean_and_variance(mean: float, variance: float) -> Callable[[dict[str, Array]], None]:
    """Within six deviations of what so many numbers have; for tails like those of a normal or
    exponential distribution."""

    def check(found: dict[str, Array]) -> None:
        (x,) = found.values()
        assert abs(x.mean() - mean) < 6 * np.sqrt(variance / x.size), f"mean {x.mean()}"
        assert abs(x.var() - variance) < 30 * variance / np.sqrt(x.size), f"variance {x.var()}"

    return check


def moments(
    kernel: str,
    label: str,
    dtype: DType,
    arguments: dict[str, Any],
    mean: float,
    variance: float,
) -> Case:
    name = f"{dtype.name.lower()} {label} mean and variance"
    return Case(kernel, name, arguments, (dtype,), check=mean_and_variance(mean, variance))


def _distributions() -> Iterator[Case]:
    for kernel, dtype in ((k, t) for k in DISTRIBUTIONS for t in REALS):
        compute = COMPUTE[dtype]
        for function, parameters, around, ulps in DISTRIBUTIONS[kernel]:
            for seed, offset, shape, layout in places():
                n = int(np.prod(shape, dtype=np.int64))
                expected = drawn(function(Draws(compute, seed, offset, n), *parameters), shape)
                out = Out(
                    expected.astype(np.float64),
                    dtype,
                    layout,
                    ulps if compute is dtype else bool(ulps),
                    around * EPSILON[compute],
                )
                name = (
                    f"{dtype.name.lower()} {parameters} {shape} {layout.__name__} {seed} {offset}"
                )
                arguments = args(dtype, seed, offset, [out], (), parameters)
                yield Case(kernel, name, arguments, (dtype,))
        if kernel in MOMENTS:
            parameters, mean, variance = MOMENTS[kernel]
            if compute is dtype:
                out = Out(None, dtype, shape=(20_000,))
                yield moments(
                    kernel,
                    f"{parameters}",
                    dtype,
                    args(dtype, 5, 4, [out], (), parameters),
                    mean,
                    variance,
                )


def _integers() -> Iterator[Case]:
    for seed, offset, shape, layout in places():
        n = int(np.prod(shape, dtype=np.int64))
        bits = drawn(bits64(seed, offset, n), shape)
        where = f"{shape} {layout.__name__} {seed} {offset}"
        for begin, width in (
            (0, 2),
            (-5, 100),
            (-(1 << 63), 0),
            (7, 1),
            (-(1 << 62), (1 << 63) - 1),
        ):
            wide = [begin + ((int(x) * width >> 64) if width else int(x)) for x in bits.reshape(-1)]
            wrapped = np.array([x & (1 << 64) - 1 for x in wide], np.uint64)
            expected = wrapped.astype(np.int64).reshape(shape)
            for dtype in types_of("random") if 0 < width <= 100 else (DType.INT64,):
                if dtype.name.startswith("UINT") and begin < 0:
                    continue
                if dtype is DType.BOOL and begin < 0:
                    continue
                out = Out(expected, dtype, layout)
                arguments = args(DType.INT64, seed, offset, [out], (), (begin, width))
                name = f"{dtype.name.lower()} {begin} {width} {where}"
                yield Case("random", name, arguments, (dtype,))


def _bernoulli() -> Iterator[Case]:
    message = "bernoulli_ expects p to be in [0, 1]"
    for seed, offset, shape, layout in places():
        n = int(np.prod(shape, dtype=np.int64))
        where = f"{shape} {layout.__name__} {seed} {offset}"
        for dtype in REALS:
            p = rounded(np.resize([0, 0.25, 0.5, 0.9, 1], shape), dtype)
            unit = drawn(Draws(COMPUTE[dtype], seed, offset, n).unit(), shape)
            out = Out(unit.astype(np.float64) < p, dtype, layout)
            arguments = args(dtype, seed, offset, [out], [In(p, dtype, layout)])
            yield Case("bernoulli", f"{dtype.name.lower()} {where}", arguments, (dtype,))
        for p in (0.0, 0.3, 1.0):
            unit = drawn(Draws(DType.FLOAT32, seed, offset, n).unit(), shape)
            for dtype in types_of("bernoulli_scalar"):
                out = Out(unit < np.float32(p), dtype, layout)
                arguments = args(DType.FLOAT32, seed, offset, [out], (), (p,))
                name = f"{dtype.name.lower()} {p} {where}"
                yield Case("bernoulli_scalar", name, arguments, (dtype,))
    for dtype in REALS:
        for p in (-0.125, 1.125, np.nan):
            values = np.full(300, 0.5)
            values[299] = p
            arguments = args(dtype, 1, 4, [Out(values, dtype)], [In(values, dtype)])
            yield Case(
                "bernoulli", f"{dtype.name.lower()} refuses {p}", arguments, (dtype,), message
            )


def _applied() -> Iterator[Case]:
    """Of dropout and rrelu, which have inputs and two outputs."""
    some = [1.5, -2, 0.0, -0.0, np.inf, -np.inf, np.nan, 3]
    for dtype in REALS:
        real: Any = np.float64 if dtype is DType.FLOAT64 else np.float32
        for seed, offset, shape, layout in places():
            n = int(np.prod(shape, dtype=np.int64))
            x = rounded(np.resize(some, shape), dtype).astype(real)
            name = f"{dtype.name.lower()} {shape} {layout.__name__} {seed} {offset}"
            unit = drawn(Draws(DType.FLOAT32, seed, offset, n).unit(), shape)
            kept = unit < real(0.75)
            with np.errstate(all="ignore"):
                scaled = x * np.where(kept, real(1.25), real(0))
            outputs = [Out(scaled, dtype, layout), Out(kept, DType.BOOL, layout)]
            inputs = [In(x, dtype, layout)]
            arguments = args(dtype, seed, offset, outputs, inputs, (0.75, 1.25))
            yield Case("dropout", name, arguments, (dtype,))
            backward = elementwise_args(
                dtype,
                [Out(scaled, dtype, layout)],
                [In(x, dtype, layout), In(kept, DType.BOOL, layout)],
                (1.25,),
            )
            yield Case("dropout_backward", name, backward, (dtype,))
            unit = drawn(Draws(COMPUTE[dtype], seed, offset, n).unit(), shape)
            slope = np.where(x <= 0, real(0.125) + unit * real(0.25), real(1))
            with np.errstate(all="ignore"):
                outputs = [Out(x * slope, dtype, layout), Out(slope, dtype, layout)]
            arguments = args(dtype, seed, offset, outputs, inputs, (0.125, 0.25))
            yield Case("rrelu", name, arguments, (dtype,))


def cases() -> Iterator[Case]:
    _check_philox()
    yield from with_states(_distributions())
    yield from with_states(_integers())
    yield from with_states(_bernoulli())
    yield from with_states(_applied())
