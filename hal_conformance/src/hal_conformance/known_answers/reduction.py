# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of sums, products, truth, norms and moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hal_conformance.answers import (
    COMPLEXES,
    COMPUTE,
    EPSILON,
    INTEGERS,
    LAYOUTS,
    REALS,
    Array,
    Case,
    In,
    Layout,
    Out,
    dense,
    dims,
    rounded,
    types_of,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.gemm import narrow, numbers, wide

HALVES = (DType.FLOAT16, DType.BFLOAT16, DType.COMPLEX32)
PART = {
    DType.COMPLEX32: DType.FLOAT16,
    DType.COMPLEX64: DType.FLOAT32,
    DType.COMPLEX128: DType.FLOAT64,
}
# A shape, and the dimensions that are reduced.
Place = tuple[tuple[int, ...], tuple[int, ...]]
SMALL: list[Place] = [
    ((), ()),
    ((1,), (0,)),
    ((65,), (0,)),
    ((5, 7), (0,)),
    ((5, 7), (1,)),
    ((5, 7), (0, 1)),
    ((5, 7), ()),
    ((3, 4, 5), (1,)),
    ((3, 4, 5), (0, 2)),
    ((9, 16), (0,)),  # outputs that fill vectors
    ((0, 3), (1,)),
]
# What is reduced is empty.
NOTHING: list[Place] = [((0, 3), (0,)), ((3, 0), (1,)), ((2, 0, 3), (0, 1))]
# Around the pieces, strips and chunks that kernels take at a time.
LARGE: list[Place] = [
    *(((n,), (0,)) for n in (2, 8, 31, 63, 64, 1023, 1025, 4096, 4099, 70001)),
    ((9, 4099), (1,)),
    ((4099, 9), (0,)),
    ((600, 3), (1,)),
    ((3, 600), (0,)),
    ((35, 600), (0,)),
    ((40001, 2), (0,)),
    ((4, 33, 70), (0, 1)),
    ((4, 33, 70), (0, 2)),
]
# Long enough to be divided, whatever the type.
LONG: Place = ((8209,), (0,))
nan, inf = math.nan, math.inf


def reduce_case(
    kernel: str,
    label: str,
    x: In,
    over: Sequence[int],
    outs: Sequence[Out | None],
    compute: DType,
    parameters: Sequence[float] = (),
    shape: tuple[int, ...] | None = None,
) -> Case:
    """A launch of puone_reduce_args; `shape` is that of the loop nest, where x is broadcast."""
    shape = np.shape(x.values) if shape is None else shape
    args = {
        **dims(shape),
        "compute": compute,
        "reduced": sum(1 << len(shape) - 1 - d for d in over),
        "in_dtype": x.dtype,
        "out_dtypes": [out.dtype if out else 0 for out in outs],
        "parameters": parameters,
        "in": x,
        "outs": outs,
    }
    return Case(kernel, f"{x.dtype.name.lower()} {label}", args, (x.dtype,))


@dataclass(frozen=True)
class Reduction:
    """A kernel: `values` makes numbers of a shape, `exact` reduces wide numbers over dimensions
    that it keeps, each with the parameters behind, and gives each output."""

    kernel: str
    values: Callable[[tuple[int, ...], DType], Array]
    exact: Callable[..., Sequence[Array]]
    result: Callable[[DType], DType]
    compute: Callable[[DType], DType]
    ulps: float = 4
    cancels: int | None = None  # the output that is a sum, or mean, of what may cancel
    parameters: Sequence[tuple[float, ...]] = ((),)

    @property
    def types(self) -> tuple[DType, ...]:
        return types_of(self.kernel)

    def case(
        self,
        dtype: DType,
        place: Place,
        label: str = "",
        parameters: tuple[float, ...] | None = None,
        layouts: tuple[Layout, Layout] = (dense, dense),
        broadcast: bool = False,
        values: Array | None = None,
        result: DType | None = None,
    ) -> Case:
        shape, over = place
        parameters = self.parameters[0] if parameters is None else parameters
        given = tuple(1 if d in over else n for d, n in enumerate(shape)) if broadcast else shape
        x = rounded(self.values(given, dtype) if values is None else values, dtype)
        exact = wide(np.broadcast_to(x, shape), dtype)
        result = self.result(dtype) if result is None else result
        count = math.prod(shape[d] for d in over)
        ulps = 1 if result in HALVES else self.ulps * max(1, count / 1024)
        absolute = spread = 0.0
        with np.errstate(all="ignore"):
            expected = self.exact(exact, over, *parameters)
            if self.cancels is not None and dtype not in INTEGERS:
                terms = np.nansum(np.abs(np.broadcast_to(x, shape)), axis=over)
                absolute = 4 * EPSILON[COMPUTE[dtype]] * float(np.max(terms, initial=0))
                if self.cancels:
                    absolute /= max(1, count)
                    # Means of parts are no more exact than double, and so their distance.
                    spread = 4 * EPSILON[DType.FLOAT64] * float(np.nanmax(np.abs(x), initial=0))
        outs = [
            Out(
                narrow(np.asarray(values), result),
                result,
                layouts[1],
                ulps,
                absolute if i == self.cancels else spread,
            )
            for i, values in enumerate(expected)
        ]
        name = f"{shape} over {over} {parameters} {label}".strip()
        x_in = In(x, dtype, layouts[0])
        compute = self.compute(dtype)
        return reduce_case(self.kernel, name, x_in, over, outs, compute, parameters, shape)


def near_one(shape: tuple[int, ...], dtype: DType) -> Array:
    """Numbers whose product neither vanishes nor overflows; odd ones among the integers."""
    random = numbers(shape, dtype, 4)
    return 2 * np.asarray(random, np.int64) + 1 if dtype in INTEGERS else np.exp(0.1 * random)


def some(shape: tuple[int, ...], dtype: DType) -> Array:
    return numbers(shape, dtype, 4)


def few(shape: tuple[int, ...], dtype: DType) -> Array:
    """One in eight is not zero."""
    return np.random.default_rng(5).integers(0, 8, shape) == 0


def many(shape: tuple[int, ...], dtype: DType) -> Array:
    return ~few(shape, dtype)


def with_nan(shape: tuple[int, ...], dtype: DType) -> Array:
    return np.where(few(shape, dtype), nan, some(shape, dtype))


def with_offset(shape: tuple[int, ...], dtype: DType) -> Array:
    """Far from 0, close to each other."""
    return some(shape, dtype) + 1 / math.sqrt(EPSILON[dtype])


def _total(x: Array, over: tuple[int, ...], divisor: float = 1) -> list[Array]:
    total = np.sum(x, axis=over, keepdims=True)
    return [total if x.dtype == object else total / np.longdouble(divisor)]


def _norm(x: Array, over: tuple[int, ...], order: float) -> list[Array]:
    powers = np.sum(np.abs(x) ** np.longdouble(order), axis=over, keepdims=True)
    return [powers ** (1 / np.longdouble(order))]


def _moments(x: Array, over: tuple[int, ...], correction: float, root: float) -> list[Array]:
    count = math.prod(x.shape[d] for d in over)
    mean = np.sum(x, axis=over, keepdims=True) / np.longdouble(count)
    squares = np.sum((x - mean) ** 2, axis=over, keepdims=True)
    variance = squares / np.longdouble(max(0.0, count - correction))
    return [np.sqrt(variance) if root else variance, mean]


def _extreme(function: Any, initial: float) -> Callable[..., list[Array]]:
    return lambda x, over: [function(np.abs(x), axis=over, keepdims=True, initial=initial)]


def _same(dtype: DType) -> DType:
    return dtype


def _summed(dtype: DType) -> DType:
    return DType.INT64 if dtype in INTEGERS else dtype


def _computed(dtype: DType) -> DType:
    return DType.INT64 if dtype in INTEGERS else COMPUTE[dtype]


def _part(dtype: DType) -> DType:
    return PART.get(dtype, dtype)


def _always(dtype: DType) -> Callable[[DType], DType]:
    return lambda _: dtype


BOOLS: dict[str, Any] = {"result": _always(DType.BOOL), "compute": _always(DType.BOOL)}
NORM: dict[str, Any] = {"values": some, "result": _part, "compute": _computed}
KERNELS = (
    Reduction("sum", some, _total, _summed, _computed, 1, 0, parameters=[(1,), (3,), (-0.5,)]),
    Reduction(
        "nansum",
        with_nan,
        lambda x, over, divisor: _total(np.nan_to_num(x, nan=0.0, posinf=inf), over, divisor),
        _same,
        _computed,
        1,
        0,
        parameters=[(1,), (7,)],
    ),
    Reduction(
        "prod",
        near_one,
        lambda x, over: [np.prod(x, axis=over, keepdims=True)],
        _summed,
        _computed,
        ulps=64,
    ),
    Reduction("any", few, lambda x, over: [np.any(x != 0, over, keepdims=True)], **BOOLS),
    Reduction("all", many, lambda x, over: [np.all(x != 0, over, keepdims=True)], **BOOLS),
    Reduction(
        "count_nonzero",
        few,
        lambda x, over: [np.sum(x != 0, axis=over, keepdims=True)],
        _always(DType.INT64),
        _always(DType.BOOL),
    ),
    Reduction("norm_1", exact=lambda x, over: _norm(x, over, 1), **NORM),
    Reduction("norm_2", exact=lambda x, over: _norm(x, over, 2), **NORM),
    Reduction("norm_p", exact=_norm, ulps=16, parameters=[(3,), (0.5,), (-2,)], **NORM),
    Reduction("norm_infinity", exact=_extreme(np.max, 0), **NORM),
    Reduction("norm_minus_infinity", exact=_extreme(np.min, inf), **NORM),
    Reduction(
        "moments",
        some,
        _moments,
        _same,
        _computed,
        8,
        1,
        parameters=[(1, 0), (0, 0), (1, 1), (2.5, 1)],
    ),
)
# A row of real numbers, the parameters, and what it is reduced to.
SPECIAL: dict[str, list[tuple[list[float], tuple[float, ...], list[float]]]] = {
    "sum": [
        ([inf, 1, inf], (1,), [inf]),
        ([inf, -inf], (1,), [nan]),
        ([1, nan, 2], (1,), [nan]),
        ([-inf, 7], (-2,), [inf]),
        ([1, 2], (0,), [inf]),
        ([], (0,), [nan]),
    ],
    "nansum": [
        ([nan, 2, nan, 3], (1,), [5]),
        ([nan, nan], (1,), [0]),
        ([nan, inf], (1,), [inf]),
        ([inf, -inf, nan], (1,), [nan]),
    ],
    "prod": [
        ([inf, 0], (), [nan]),
        ([nan, 0], (), [nan]),
        ([-inf, 2], (), [-inf]),
        ([0, -5], (), [0]),
    ],
    "any": [([0, nan], (), [1]), ([0, -0.0], (), [0]), ([0, -inf], (), [1])],
    "all": [([nan, inf], (), [1]), ([nan, -0.0], (), [0])],
    "count_nonzero": [([nan, -0.0, inf, 0, 1], (), [3])],
    "norm_1": [([-inf, 1], (), [inf]), ([nan, inf], (), [nan]), ([-0.0], (), [0])],
    # Half numbers do not overflow.
    "norm_2": [([-300, 400], (), [500]), ([-inf, 1], (), [inf]), ([nan, 1], (), [nan])],
    "norm_p": [
        ([-3, 4, -5], (3,), [6]),
        ([-inf, 1], (3,), [inf]),
        ([nan], (3,), [nan]),
        ([0, 2], (-1,), [0]),
    ],
    "norm_infinity": [
        ([1, -3], (), [3]),
        ([1, nan, inf], (), [nan]),
        ([nan, 2], (), [nan]),
        ([-inf, 5], (), [inf]),
    ],
    "norm_minus_infinity": [
        ([-1, 3], (), [1]),
        ([1, nan, 2], (), [nan]),
        ([nan, 0], (), [nan]),
        ([-inf, inf], (), [inf]),
    ],
    "moments": [
        ([5], (1, 0), [nan, 5]),
        ([5], (0, 0), [0, 5]),
        ([1, 3], (3, 0), [inf, 2]),
        ([1, 3], (1, 1), [math.sqrt(2), 2]),
        ([1, nan], (1, 0), [nan, nan]),
        ([1, inf], (1, 0), [nan]),  # the mean depends on the method
        ([], (1, 0), [nan, nan]),
    ],
}


def cases() -> Iterator[Case]:
    for kernel in KERNELS:
        for dtype in kernel.types:
            for place in SMALL + NOTHING:
                yield kernel.case(dtype, place)
            for parameters in kernel.parameters[1:]:
                yield kernel.case(dtype, ((3, 65), (1,)), parameters=parameters)
        most = [t for t in (DType.FLOAT32, DType.FLOAT64, DType.BFLOAT16) if t in kernel.types]
        for dtype in most:
            for place in LARGE:
                yield kernel.case(dtype, place)
        for dtype in (DType.INT64, DType.COMPLEX64, DType.COMPLEX128):
            if dtype in kernel.types:
                yield kernel.case(dtype, LONG)
        for dtype in [t for t in (DType.FLOAT32, DType.INT16) if t in kernel.types]:
            yield from _layouts(kernel, dtype)
        for row, parameters, expected in SPECIAL[kernel.kernel]:
            for dtype in REALS:
                outs = [
                    Out(rounded([v], t), t, ulps=2)
                    for v in expected
                    for t in [kernel.result(dtype)]
                ]
                yield reduce_case(
                    kernel.kernel,
                    f"{row} {parameters}",
                    In(rounded(row, dtype), dtype),
                    (0,),
                    outs,
                    kernel.compute(dtype),
                    parameters,
                )
    yield from _others({kernel.kernel: kernel for kernel in KERNELS})


def _layouts(kernel: Reduction, dtype: DType) -> Iterator[Case]:
    for layout in LAYOUTS[1:]:
        for over in ((0,), (1,), (0, 1), ()):
            label = f"in {layout.__name__}"
            yield kernel.case(dtype, ((9, 70), over), label, layouts=(layout, dense))
        for over in ((1,), (0,), (2,)):
            label = f"out {layout.__name__}"
            yield kernel.case(dtype, ((3, 4, 5), over), label, layouts=(dense, layout))
    for over in ((0,), (1,)):
        yield kernel.case(dtype, ((5, 7), over), "broadcast", broadcast=True)


def _others(kernels: dict[str, Reduction]) -> Iterator[Case]:
    """The last element counts, other result types, large offsets, an output that is not wanted."""
    for n in (63, 64, 65, 4096, 4099):
        last = np.arange(n) == n - 1
        place: Place = ((n,), (0,))
        for dtype in (DType.BOOL, DType.INT64, DType.FLOAT16, DType.COMPLEX128):
            yield kernels["any"].case(dtype, place, "only the last", values=last)
            yield kernels["all"].case(dtype, place, "not the last", values=~last)
    imaginary = np.array([0, 1j, 0])
    for name in ("any", "all", "count_nonzero"):
        for dtype in COMPLEXES:
            yield kernels[name].case(dtype, ((3,), (0,)), "imaginary", values=imaginary)
    for dtype in HALVES[:2]:
        large = np.full(4099, 60000)
        for name in ("sum", "norm_1", "norm_2"):
            yield kernels[name].case(
                dtype, ((4099,), (0,)), "into float32", values=large, result=DType.FLOAT32
            )
    for dtype in (DType.BOOL, DType.INT8):
        yield kernels["sum"].case(dtype, ((300,), (0,)), "into int8", result=DType.INT8)
    moments = kernels["moments"]
    for dtype in REALS:
        for place in (((65,), (0,)), ((4099,), (0,)), ((300, 9), (0,)), ((9, 300), (1,))):
            far = with_offset(place[0], dtype)
            yield moments.case(dtype, place, "far from 0", (0, 0), values=far)
            yield kernels["sum"].case(dtype, place, "far from 0", values=far)
    for kept in (0, 1):
        case = moments.case(DType.FLOAT32, ((5, 7), (1,)))
        outs = [out if i == kept else None for i, out in enumerate(case.args["outs"])]
        name = f"only output {kept}"
        yield Case("moments", name, {**case.args, "outs": outs}, case.types)
