# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of the random kernels whose numbers are not drawn one for each element, or whose
draws are rejected. "binomial", "poisson" and "standard_gamma" give each element its own blocks: the
counter `i : offset // 4 + trial`. Their methods are those of Hoermann (1993; BTRS and PTRS), of
inversion, and of Marsaglia and Tsang (2000), written down once more in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from hal_conformance.answers import REALS, Array, Case, In, InOut, Out, dense, gaps, rounded
from hal_conformance.kernels import DType
from hal_conformance.known_answers.random import (
    SEEDS,
    Draws,
    args,
    bits64,
    moments,
    philox,
    with_states,
)

TRIALS = 64
PERMUTED = (0, 1, 2, 3, 255, 256, 257, 1000, 20_000)


class Blocks:
    """The blocks of one element, as words."""

    def __init__(self, seed: int, offset: int, element: int) -> None:
        counters = np.arange(offset // 4, offset // 4 + TRIALS, dtype=np.uint64)
        self._blocks = iter(philox(counters, np.uint64(element), seed).tolist())

    def words(self) -> list[int]:
        return list(next(self._blocks))

    def uniforms(self) -> tuple[float, float]:
        a, b, c, d = self.words()
        return open_unit(b << 32 | a), open_unit(d << 32 | c)


def open_unit(bits: int) -> float:
    return min((float(bits >> 1) + 0.5) * 2.0**-63, 1 - 2.0**-53)


def inverted(
    blocks: Blocks, probability: float, most: float, ratio: Callable[[int], float]
) -> float:
    left, k = blocks.uniforms()[0], 0
    while left > probability and k < most:
        left -= probability
        probability *= ratio(k)
        k += 1
    return k


def rejected(
    blocks: Blocks,
    a: float,
    b: float,
    center: float,
    squeeze: float,
    scale: float,
    most: float,
    log_probability: Callable[[float], float],
) -> float:
    """Transformed rejection."""
    while True:
        u, v = blocks.uniforms()
        u -= 0.5
        side = 0.5 - abs(u)
        k = math.floor((2 * a / side + b) * u + center)
        if k < 0 or k > most:
            continue
        if side >= 0.07 and v <= squeeze:
            return k
        if math.log(v * scale / (a / side**2 + b)) <= log_probability(k):
            return k


def poisson(blocks: Blocks, rate: float) -> float:
    if rate < 10:
        return inverted(blocks, math.exp(-rate), 150, lambda k: rate / (k + 1)) if rate else 0
    b = 0.931 + 2.53 * math.sqrt(rate)
    return rejected(
        blocks,
        -0.059 + 0.02483 * b,
        b,
        rate + 0.43,
        0.9277 - 3.6224 / (b - 2),
        1.1239 + 1.1328 / (b - 3.4),
        math.inf,
        lambda k: k * math.log(rate) - rate - math.lgamma(k + 1),
    )


def binomial(blocks: Blocks, count: float, p: float) -> float:
    if math.isnan(count) or math.isnan(p):
        return math.nan
    if count <= 0 or p <= 0:
        return 0
    if p > 0.5:
        return count - binomial(blocks, count, 1 - p) if p < 1 else count
    odds = p / (1 - p)
    if count * p < 10:
        none = math.exp(count * math.log1p(-p))
        return inverted(blocks, none, count, lambda k: (count - k) / (k + 1) * odds)
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    mode = math.floor((count + 1) * p)
    top = math.lgamma(mode + 1) + math.lgamma(count - mode + 1)
    return rejected(
        blocks,
        -0.0873 + 0.0248 * b + 0.01 * p,
        b,
        count * p + 0.5,
        0.92 - 4.2 / b,
        (2.83 + 5.1 / b) * deviation,
        count,
        lambda k: (
            top - math.lgamma(k + 1) - math.lgamma(count - k + 1) + (k - mode) * math.log(odds)
        ),
    )


def gamma(blocks: Blocks, shape: float) -> float:
    if shape == 0:
        return 0
    scale = 1.0
    if shape < 1:
        scale = math.exp(math.log(blocks.uniforms()[0]) / shape)
        shape += 1
    d = shape - 1 / 3
    while True:
        low, high, angle, last = blocks.words()
        z = math.sqrt(-2 * math.log(open_unit(high << 32 | low))) * _cosine(angle << 32)
        u = open_unit(last << 32)
        v = (1 + z / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(u) < z * z / 2 + d * (1 - v + math.log(v)):
            return scale * d * v


def _cosine(bits: int) -> float:
    """Of the angle that Draws.angle() makes of the bits."""
    draws = Draws(DType.FLOAT64, 0, 0, 0)
    return float(np.cos(draws.angle(np.array([bits], np.uint64)))[0])


def _elementwise() -> Iterator[Case]:
    """Whole numbers are exact, and the input's rounding is that of its type."""
    rates = [0, 0.001, 0.5, 3, 9.75, 10, 12.5, 40, 1000, 30_000]
    counts = [0, -1, 1, 3, 10, 20, 40, 100, 1000, 20_000]
    chances = [0, 0.25, 1, 0.001, 0.5, 0.75, 0.375, 0.9, 0.0625, 0.5]
    shapes = [0, 0.125, 0.5, 1, 1.5, 2, 7, 100, 30_000, 0.03125]
    for dtype in REALS:
        for seed, offset in SEEDS:
            for shape, layout in (((4, 25), dense), ((4, 25), gaps), ((0,), dense), ((), dense)):
                name = f"{dtype.name.lower()} {shape} {layout.__name__} {seed} {offset}"
                for kernel, method, inputs, parameters, ulps in (
                    ("poisson", poisson, (rates,), (), 0.0),
                    ("binomial", binomial, (counts, chances), (), 0.0),
                    ("standard_gamma", gamma, (shapes,), (0.0625,), 64.0),
                ):
                    given = [rounded(np.resize(x, shape), dtype) for x in inputs]
                    pairs = zip(*(x.reshape(-1) for x in given), strict=True)
                    found = [
                        method(Blocks(seed, offset, i), *map(float, pair))
                        for i, pair in enumerate(pairs)
                    ]
                    least = parameters[0] if parameters else -np.inf
                    expected = np.maximum(np.reshape(found, shape).astype(float), least)
                    out = Out(
                        expected, dtype, layout, ulps if dtype is DType.FLOAT64 else bool(ulps)
                    )
                    operands = [In(x, dtype, layout) for x in given]
                    arguments = args(DType.FLOAT64, seed, offset, [out], operands, parameters)
                    yield Case(kernel, name, arguments, (dtype,))
        refusal = "invalid Poisson rate, expected rate to be non-negative"
        for rate in (-0.5, np.nan):
            values = np.append(np.ones(299), rate)
            arguments = args(DType.FLOAT64, 1, 4, [Out(values, dtype)], [In(values, dtype)])
            name = f"{dtype.name.lower()} refuses {rate}"
            yield Case("poisson", name, arguments, (dtype,), refusal)
    out = Out([np.nan] * 2, DType.FLOAT64)
    operands = [In([np.nan, 3], DType.FLOAT64), In([0.5, np.nan], DType.FLOAT64)]
    yield Case("binomial", "NaN", args(DType.FLOAT64, 1, 4, [out], operands), (DType.FLOAT64,))


def _distributions() -> Iterator[Case]:
    """The numbers have the mean and variance of the distribution, whatever their method."""
    for kernel, inputs, mean, variance in (
        ("poisson", (3.0,), 3, 3),
        ("poisson", (50.0,), 50, 50),
        ("binomial", (20.0, 0.25), 5, 3.75),
        ("binomial", (300.0, 0.75), 225, 56.25),
        ("standard_gamma", (0.5,), 0.5, 0.5),
        ("standard_gamma", (8.0,), 8, 8),
    ):
        out = Out(None, DType.FLOAT64, shape=(20_000,))
        operands = [In(np.array([x]), DType.FLOAT64) for x in inputs]
        parameters = (0.0,) if kernel == "standard_gamma" else ()
        arguments = args(DType.FLOAT64, 3, 8, [out], operands, parameters)
        yield moments(kernel, f"{inputs}", DType.FLOAT64, arguments, mean, variance)


def multinomial(label: str, weights: Array, samples: int, seed: int, offset: int) -> Case:
    """The weights are such that their sums are exact, in whichever order they are made."""
    sums = np.cumsum(weights, 1)
    rows = len(weights)
    drawn = (bits64(seed, offset, rows * samples) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    values = drawn[: rows * samples].reshape(rows, samples) * sums[:, -1:]
    expected = [np.searchsorted(s, v, side="right") for s, v in zip(sums, values, strict=True)]
    arguments = {
        "seed": seed,
        "offset": offset,
        "rows": rows,
        "categories": weights.shape[1],
        "samples": samples,
        "weights": InOut(weights, sums, DType.FLOAT64),
        "out": Out(np.reshape(expected, (rows, samples)), DType.INT64),
    }
    return Case("multinomial", f"{label} {weights.shape} {samples} {seed} {offset}", arguments)


def _multinomial() -> Iterator[Case]:
    random = np.random.default_rng(6)
    for shape in ((1, 1), (3, 5), (2, 8), (2, 9), (1, 300), (7, 1025), (0, 4)):
        for samples in (1, 5, 300):
            weights = random.integers(0, 9, shape).astype(float)
            weights[:, -1] += 1
            yield multinomial("some zero", weights, samples, *SEEDS[1])
    for seed, offset in SEEDS:
        yield multinomial("only one", np.array([[0.0, 0, 3, 0]]), 9, seed, offset)
        yield multinomial("halves", np.array([[0.5, 0.5], [0.25, 0.75]]), 50, seed, offset)
    invalid = "probability tensor contains either `inf`, `nan` or element < 0"
    nothing = "invalid multinomial distribution (sum of probabilities <= 0)"
    for value, fails in ((np.nan, invalid), (np.inf, invalid), (-1, invalid), (0, nothing)):
        weights = np.ones((2, 40))
        weights[1] = value if value == 0 else 1
        weights[1, 39] = value
        case = multinomial("refused", np.ones((2, 40)), 3, 1, 4)
        arguments = case.args | {"weights": InOut(weights, weights, DType.FLOAT64)}
        yield Case("multinomial", f"refuses {value}", arguments, fails=fails)


def _permutations() -> Iterator[Case]:
    """Durstenfeld's shuffle, upwards: place i and one of those up to it change what they hold."""
    for seed, offset in SEEDS:
        for n in PERMUTED:
            expected = list(range(n))
            for i, bits in enumerate(bits64(seed, offset, n)[:n].tolist()):
                other = bits * (i + 1) >> 64
                expected[i], expected[other] = expected[other], expected[i]
            arguments = {
                "seed": seed,
                "offset": offset,
                "n": n,
                "out": Out(np.array(expected, np.int64), DType.INT64),
            }
            yield Case("randperm", f"{n} {seed} {offset}", arguments)


def cases() -> Iterator[Case]:
    yield from with_states(_elementwise())
    yield from with_states(_distributions())
    yield from with_states(_multinomial())
    yield from with_states(_permutations())
