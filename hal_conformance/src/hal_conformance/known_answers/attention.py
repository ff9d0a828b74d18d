# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of scaled dot product attention and its gradients.

The reference has the whole matrix of scores, in more precision than the kernel's, and dropout by
Philox as random.py writes it down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hal_conformance.answers import (
    COMPUTE,
    EPSILON,
    REALS,
    STORAGE,
    Array,
    Case,
    In,
    Layout,
    Out,
    Placement,
    dense,
    encode,
    rounded,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import numbers, wide
from hal_conformance.known_answers.random import philox
from hal_conformance.known_answers.reduction import HALVES, inf, nan


class Sizes(NamedTuple):
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    head_size: int
    value_size: int


# Around the tiles of the kernels, with heads that share their keys.
SMALL = [Sizes(1, 1, 1, 1, 1, 1, 1), Sizes(2, 3, 3, 5, 6, 4, 7), Sizes(1, 4, 2, 7, 3, 9, 8)]
LARGE = [Sizes(1, 1, 1, 97, 197, 16, 16), Sizes(1, 2, 1, 33, 65, 72, 130)]
WIDE = [Sizes(1, 1, 1, 5, 3, 72, 72), Sizes(1, 1, 1, 3, 5, 256, 256)]
CAUSAL = [Sizes(1, 2, 1, 9, 5, 8, 8), Sizes(1, 1, 1, 5, 9, 8, 8), Sizes(1, 1, 1, 200, 195, 4, 4)]
EMPTY = [Sizes(0, 2, 2, 3, 4, 5, 6), Sizes(2, 2, 1, 0, 4, 5, 6), Sizes(1, 1, 1, 2, 3, 4, 0)]
SEED, OFFSET = 12345, 8


def tokens(shape: tuple[int, ...], size: int) -> Placement:
    """[batch, head, row, column], in memory as [batch, row, head, column]: a layer's projection."""
    batch, heads, rows, columns = shape
    step = columns * size
    return Placement(
        batch * heads * rows * step, 0, (rows * heads * step, step, heads * step, size)
    )


def _strides(shape: tuple[int, ...], dtype: DType, layout: Layout) -> list[int]:
    strides = layout(shape, STORAGE[dtype].itemsize).strides
    return [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]


def kept(sizes: Sizes, dropout: float) -> Array:
    """What dropout multiplies each weight by."""
    rows = sizes.batch * sizes.heads * sizes.queries
    blocks = -(-sizes.keys // 4)
    words = philox(np.uint64(OFFSET // 4), np.arange(rows * blocks), SEED)
    units = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    factors = np.where(units < np.float32(1 - dropout), 1 / (1 - dropout) if dropout < 1 else 0, 0)
    shape = (sizes.batch, sizes.heads, sizes.queries, 4 * blocks)
    return factors.reshape(shape)[..., : sizes.keys].astype(np.longdouble)


class Answer(NamedTuple):
    out: Array
    logsumexp: Array
    grad_query: Array
    grad_key: Array
    grad_value: Array
    share: float  # the largest sum of the weights of a key
    steepest: float  # the largest gradient of a weight, before its terms cancel


def attend(
    q: Array, k: Array, v: Array, grad: Array, bias: Array, scale: float, factors: Array
) -> Answer:
    """`bias` is added to the scores; a weight is multiplied by its factor."""
    batch, heads = q.shape[:2]
    group = heads // k.shape[1]
    k_all, v_all = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    with np.errstate(all="ignore"):
        scores = q @ np.swapaxes(k_all, 2, 3) * np.longdouble(scale) + bias
        top = np.max(scores, axis=3, keepdims=True)
        top = np.where(np.isneginf(top), 0, top)
        powers = np.exp(scores - top)
        total = np.sum(powers, axis=3, keepdims=True)
        weights = np.where(total == 0, 0, powers / total)
        dropped = weights * factors
        out = dropped @ v_all
        grad_weights = grad @ np.swapaxes(v_all, 2, 3) * factors
        mean = np.sum(grad * out, axis=3, keepdims=True)
        grad_scores = weights * (grad_weights - mean) * np.longdouble(scale)
        logsumexp = (top + np.log(total))[..., 0]
        steep = np.abs(grad) @ np.swapaxes(np.abs(v_all), 2, 3) * factors

    def shared(of_heads: Array) -> Array:
        parted = of_heads.reshape(batch, k.shape[1], group, *of_heads.shape[2:])
        return np.sum(parted, axis=2)

    return Answer(
        out,
        logsumexp,
        grad_scores @ k_all,
        shared(np.swapaxes(grad_scores, 2, 3) @ q),
        shared(np.swapaxes(dropped, 2, 3) @ grad),
        float(np.max(shared(np.sum(weights, axis=2)), initial=1)),
        float(np.max(steep, initial=0)),
    )


def both(
    dtype: DType,
    sizes: Sizes,
    label: str = "",
    scale: float | None = None,
    causal: bool = False,
    mask: Array | None = None,
    mask_type: DType = DType.BOOL,
    dropout: float = 0,
    layout: Layout = dense,
    wanted: tuple[bool, bool, bool] = (True, True, True),
    far: float = 0,
) -> Iterator[Case]:
    """Cases of both kernels. `far` is added to the first column of queries and keys."""
    batch, heads, key_heads, queries, keys, head_size, value_size = sizes
    computed = COMPUTE[dtype]
    scale = head_size**-0.5 if scale is None else scale
    q = numbers((batch, heads, queries, head_size), dtype, 1)
    k = numbers((batch, key_heads, keys, head_size), dtype, 2)
    v = numbers((batch, key_heads, keys, value_size), dtype, 3)
    grad = numbers((batch, heads, queries, value_size), dtype, 4)
    if far:
        q[..., 0] = far
        k[..., 0] = far
    bias = np.zeros((batch, heads, queries, keys))
    if mask is not None:
        mask = rounded(mask, mask_type)
        bias = bias + (np.where(mask, 0, -inf) if mask_type is DType.BOOL else mask)
    if causal:
        bias = bias + np.where(np.tri(queries, keys), 0, -inf)
    factors = kept(sizes, dropout) if dropout else np.ones(())
    exact = [wide(x, dtype) for x in (q, k, v, grad)]
    answer = attend(exact[0], exact[1], exact[2], exact[3], bias, scale, factors)
    # Backwards the kernel reads the rounded result.
    saved = rounded(answer.out, dtype)
    largest = float(np.max(np.abs(v), initial=0)) * float(np.max(factors, initial=1))
    # Scores are off by what their sum of products and the largest of them allow.
    products = np.abs(q) @ np.swapaxes(np.abs(np.repeat(k, heads // key_heads, axis=1)), 2, 3)
    error = EPSILON[computed] * (8 + float(np.max(products, initial=0)) * abs(scale))
    ulps = 1 if dtype in HALVES else 4

    def out_of(values: Array, type: DType, absolute: float, placed: Layout = dense) -> Out:
        return Out(np.asarray(values, np.float64), type, placed, ulps, absolute)

    def shaped(name: str, values: Array) -> dict[str, Any]:
        return {name: In(values, dtype, layout), f"{name}_strides": _full(values.shape, layout)[:3]}

    def _full(shape: tuple[int, ...], placed: Layout, type: DType = dtype) -> list[int]:
        return list(placed(shape, STORAGE[type].itemsize).strides)

    common: dict[str, Any] = {
        "dtype": dtype,
        "causal": int(causal),
        **sizes._asdict(),
        "scale": scale,
        "dropout": dropout,
        **shaped("query", q),
        **shaped("key", k),
        **shaped("value", v),
    }
    if mask is not None:
        common["mask"] = In(mask, mask_type)
        common["mask_dtype"] = mask_type
        common["mask_strides"] = _strides(np.shape(mask), mask_type, dense)
    name = f"{dtype.name.lower()} {tuple(sizes)} {label}".strip()
    drawn = [SEED, OFFSET] if dropout else None
    forward = {
        **common,
        "out": out_of(answer.out, dtype, error * largest, layout),
        "out_strides": _full(answer.out.shape, layout)[:3],
        "logsumexp": out_of(answer.logsumexp, computed, error),
    }
    if drawn:
        forward["seed"], forward["offset"] = drawn
        forward["drawn"] = [Out(np.array(x), DType.INT64) for x in drawn]
    yield Case("attention", name, forward, (dtype,))

    of_score = 2 * error * answer.steepest
    if dtype in HALVES:  # of the result that was rounded
        of_score += EPSILON[dtype] * answer.steepest
    of_weight = error * float(np.max(factors, initial=1)) * answer.share
    sums = {
        "grad_query": (answer.grad_query, computed, of_score * abs(scale), k),
        "grad_key": (answer.grad_key, dtype, of_score * answer.share * abs(scale), q),
        "grad_value": (answer.grad_value, dtype, of_weight, grad),
    }
    backward = {
        **common,
        **shaped("out", saved),
        **shaped("grad_out", grad),
        "logsumexp": In(np.asarray(answer.logsumexp, np.float64), computed),
    }
    for (field, (values, type, off, factor)), want in zip(sums.items(), wanted, strict=True):
        absolute = off * float(np.max(np.abs(factor), initial=0))
        backward[field] = out_of(values, type, absolute, layout) if want else None
        backward[f"{field}_strides"] = _full(values.shape, layout, type)[:3]
    if drawn:
        backward["drawn"] = [In(np.array(x), DType.INT64) for x in drawn]
    yield Case("attention_backward", name, backward, (dtype,))


def _masks(sizes: Sizes) -> Iterator[tuple[str, Array]]:
    """Masks of all shapes that are broadcast; one has a row that sees nothing."""
    random = np.random.default_rng(5)
    shape = (sizes.batch, sizes.heads, sizes.queries, sizes.keys)
    whole = random.random(shape) < 0.6
    whole[0, 0, 1] = False
    yield "for each head", whole
    yield "for all heads", whole[:1, :1]
    yield "of keys", whole[:1, :1, :1]
    yield "of queries", whole[:1, :1, :, :1]


def cases() -> Iterator[Case]:
    for dtype in REALS:
        for sizes in (*SMALL, *EMPTY):
            yield from both(dtype, sizes)
        for sizes in CAUSAL[: 2 if dtype in HALVES else 3]:
            yield from both(dtype, sizes, "causal", causal=True)
        sizes = SMALL[1]
        yield from both(dtype, sizes, "tokens", layout=tokens)
        for name, mask in _masks(sizes):
            yield from both(dtype, sizes, f"mask {name}", mask=mask)
            bias = np.where(mask, 0.5, -2.0)
            for type in dict.fromkeys((dtype, DType.FLOAT32)):
                label = f"{type.name.lower()} bias {name}"
                yield from both(dtype, sizes, label, mask=bias, mask_type=type)
        infinite = np.where(next(_masks(sizes))[1], 1.0, -inf)
        yield from both(dtype, sizes, "infinite bias", mask=infinite, mask_type=dtype)
        yield from both(dtype, sizes, "scale -2", scale=-2)
        yield from both(dtype, sizes, "scale 0", scale=0)
        for dropout in (0.25, 1):
            yield from both(dtype, sizes, f"dropout {dropout}", dropout=dropout)
            yield from both(dtype, SMALL[2], f"dropout {dropout}", dropout=dropout, causal=True)
        for i in range(3):
            wanted = (i == 0, i == 1, i == 2)
            *_, last = both(dtype, sizes, f"only gradient {i}", wanted=wanted)
            yield last
    for dtype in (DType.FLOAT32, DType.FLOAT64, DType.BFLOAT16):
        for sizes in (*LARGE, *WIDE):
            yield from both(dtype, sizes)
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        yield from both(dtype, LARGE[0], "dropout", dropout=0.5)
        yield from both(dtype, LARGE[0], "far from 0", far=200, scale=1)
        # A query or key that is not a number spoils the rows that see it, and no others.
        sizes = SMALL[1]
        for special in (inf, nan):
            mask = np.zeros((1, 1, sizes.queries, sizes.keys))
            mask[0, 0, 2, 3] = special
            label = f"bias {special}"
            first, _ = both(dtype, sizes, label, mask=mask, mask_type=dtype)
            yield first
    big = Sizes(1, 1, 1, 1, 1, 257, 1)
    one = encode(np.zeros((1, 1, 1, 257)), DType.FLOAT32)
    strides = [257 * 4] * 3
    yield Case(
        "attention",
        "heads that are too large",
        {
            "dtype": DType.FLOAT32,
            **big._asdict(),
            "query": In(one, DType.FLOAT32),
            "query_strides": strides,
            "key": In(one, DType.FLOAT32),
            "key_strides": strides,
            "value": In(one[..., :1], DType.FLOAT32),
            "value_strides": [4] * 3,
            "out": Out(None, DType.FLOAT32, shape=(1, 1, 1, 1)),
            "out_strides": [4] * 3,
            "logsumexp": Out(None, DType.FLOAT32, shape=(1, 1, 1)),
        },
        (DType.FLOAT32,),
        fails="at most 256 columns",
    )
