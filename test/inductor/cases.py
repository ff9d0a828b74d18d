# SPDX-License-Identifier: BSD-3-Clause
"""Functions to compile, each with the arguments that it is called with.

They are chosen by what they ask of the generator: every layout of a kernel, every kind of
reduction, every element type. `compiled.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - the customary name

Case = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


def _normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def _unary(x: torch.Tensor) -> list[torch.Tensor]:
    """Everything that is a function of one number in (-1, 1) or (0, 2)."""
    p = x.abs() + 0.25
    return [
        *(f(x) for f in (torch.exp, torch.exp2, torch.expm1, torch.sin, torch.cos, torch.tan)),
        *(f(x) for f in (torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh)),
        *(f(x) for f in (torch.asinh, torch.atanh, torch.erf, torch.erfc, torch.sigmoid)),
        *(f(x * 4) for f in (torch.floor, torch.ceil, torch.trunc, torch.round, torch.sign)),
        *(f(p) for f in (torch.log, torch.log2, torch.log10, torch.log1p, torch.sqrt, torch.rsqrt)),
        torch.acosh(p + 1),
        torch.reciprocal(p),
        F.gelu(x),
        F.silu(x),
        F.relu(x),
        torch.isnan(x),
        torch.isinf(x),
        torch.signbit(x),
    ]


def _binary(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    p = y.abs() + 0.25
    return [
        torch.atan2(x, y),
        torch.hypot(x, y),
        torch.copysign(x, y),
        torch.fmod(x * 8, p),
        torch.remainder(x * 8, p),
        torch.pow(p, x),
        torch.maximum(x, y),
        torch.minimum(x, y),
        torch.where(x > y, x, y),
        (x < y) & (x.abs() < 0.5) | (y == 0),
        torch.clamp(x, -0.5, 0.5),
    ]


def _composed(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """What graphs compose of several operations, each of which rounds half precision."""
    return [
        torch.div(x * 8, y, rounding_mode="floor"),
        torch.div(x * 8, y, rounding_mode="trunc"),
        torch.lerp(x, y, 0.25),
        torch.addcdiv(x, y, y),
    ]


def _integers(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    d = torch.where(y == 0, 3, y)
    return [
        x + y,
        x - y,
        x * y,
        -x,
        x.abs(),
        x // d,
        x % d,
        torch.div(x, d, rounding_mode="trunc"),
        torch.fmod(x, d),
        x & y,
        x | y,
        x ^ y,
        ~x,
        x << (y & 3),
        x >> (y & 3),
        x**3,
        x / d,
        torch.maximum(x, y),
        x.sign(),
        (x * y).to(torch.float32) / 2,
        x.to(torch.int8) * 7,
        x.bool(),
    ]


def _between(dtype: torch.dtype) -> Callable[[], tuple[Any, ...]]:
    return lambda: ((torch.rand(5, 77) * 2 - 1).to(dtype),)


def _two(dtype: torch.dtype, offset: float = 0) -> Callable[[], tuple[Any, ...]]:
    return lambda: (_normal(5, 77, dtype=dtype), _normal(5, 77, dtype=dtype) + offset)


def _whole(dtype: torch.dtype) -> Callable[[], tuple[Any, ...]]:
    low = 0 if dtype == torch.uint8 else -100
    return lambda: tuple(torch.randint(low, 100, (3, 41)).to(dtype) for _ in range(2))


def _special() -> tuple[Any, ...]:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 1e-40, 3e38])
    return values.repeat(9), values.repeat_interleave(9)


def _accumulated(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return x.index_put((i,), v, accumulate=True)


def _to_accumulate(dtype: torch.dtype) -> Callable[[], tuple[Any, ...]]:
    return lambda: (
        torch.zeros(7, 5, dtype=dtype),
        torch.randint(0, 7, (20,)),
        torch.randint(0, 4, (20, 5)).to(dtype),
    )


def _numbers_first(x: torch.Tensor, one: torch.Tensor) -> list[torch.Tensor]:
    """The first operand is of the CPU: the operation is not."""
    p = x.abs() + 1
    return [
        *(f(one, x) for f in (torch.sub, torch.mul, torch.maximum, torch.lt, torch.fmod)),
        *(f(one, x) for f in (torch.atan2, torch.copysign, torch.hypot, torch.logaddexp)),
        *(f(one, p) for f in (torch.pow, torch.xlogy, torch.special.zeta, torch.igamma)),
        torch.where(x > 0, one, x),
        torch.addcmul(one, x, p),
        torch.lerp(one, x, p),
        torch.softmax(one * x, -1),
        torch.cat([one - x, x]),
        (one - x).sum(0),
        (one - x) @ x.t(),
    ]


def _tail(x: torch.Tensor) -> torch.Tensor:
    """Overlapping reads at a distance, which may not become another order."""
    return x[1:] * 2 + x[:-1]


CASES: dict[str, Case] = {
    **{f"unary:{dtype}": (_unary, _between(dtype)) for dtype in _FLOATS},
    **{f"binary:{dtype}": (_binary, _two(dtype)) for dtype in _FLOATS},
    **{f"composed:{dtype}": (_composed, _two(dtype, 8)) for dtype in _FLOATS[:2]},
    **{f"integers:{t}": (_integers, _whole(t)) for t in _INTEGERS},
    "special": (
        lambda x, y: [
            torch.maximum(x, y),
            torch.minimum(x, y),
            F.relu(x),
            x.sign(),
            x.amax(),
            x.argmax(),
            x.argmin(),
            (x == y).any(),
            (x != y).all(),
            torch.signbit(x * y),
        ],
        _special,
    ),
    # layouts
    "rows": (lambda x, b: F.gelu(x + b) * b, lambda: (_normal(33, 128), _normal(128))),
    "rows_of_several": (
        lambda x, b: x * b[:, None] + x.mean((0, 2), keepdim=True),
        lambda: (_normal(4, 6, 96), _normal(6)),
    ),
    "numbers_of_rows": (
        lambda x, m, v: ((x - m[:, None]) * (v.abs() + 1e-5)[:, None].rsqrt()).relu(),
        lambda: (_normal(33, 128), _normal(33), _normal(33)),
    ),
    "numbers_of_rows_behind_an_index": (
        lambda x, w, i: x * w[i][:, None].rsqrt() + x[:, :1],
        lambda: (_normal(33, 128), _normal(9).abs(), torch.randint(-9, 9, (33,))),
    ),
    "numbers_of_rows_in_place": (lambda x: x.sub_(x[:, 3:4]), lambda: (_normal(33, 128),)),
    "short_rows": (lambda x, b: x * b, lambda: (_normal(33, 5, 7), _normal(5, 1))),
    "tiles": (lambda x: x.t().contiguous() + 1, lambda: (_normal(130, 257),)),
    "tiles_of_sums": (lambda x, y: x.t() + y, lambda: (_normal(130, 257), _normal(257, 130))),
    "tiles_of_rows": (
        lambda x: x.permute(2, 0, 1).contiguous().sin(),
        lambda: (_normal(5, 70, 90),),
    ),
    "columns": (lambda x: (x.sum(0), x.amax(0), x.var(0)), lambda: (_normal(301, 100),)),
    "narrow_columns": (lambda x: x.sum(0), lambda: (_normal(1000, 9),)),
    "few_columns": (lambda x: x.sum(0), lambda: (_normal(1000, 3),)),
    "long_columns": (lambda x: x.mean(0), lambda: (_normal(70000, 16),)),
    "columns_inside": (lambda x: x.sum(1), lambda: (_normal(6, 50, 80),)),
    "softmax_of_columns": (lambda x: torch.softmax(x, 0), lambda: (_normal(40, 130),)),
    "argmax_of_columns": (lambda x: (x.argmax(0), x.argmin(0)), lambda: (_normal(40, 130),)),
    "normalised_columns": (
        lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5),
        lambda: (_normal(200, 70),),
    ),
    "batch_norm": (
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda: (_normal(4, 6, 12, 12),),
    ),
    # reductions
    "sum_of_all": (lambda x: x.sum(), lambda: (_normal(300_001),)),
    "moments_of_all": (lambda x: torch.var_mean(x), lambda: (_normal(100_003) + 100,)),
    "moments_of_little_spread": (
        lambda x, y: (
            [1e4 * (x + 1).var(dims) for dims in (-1, 0, None)] + [1e4 * (y + 1).var((0, 2))]
        ),
        lambda: (10000 + 0.01 * _normal(70, 4097), 10000 + 0.01 * _normal(40, 6, 130)),
    ),
    "moments_of_costly_values": (
        lambda x, y, z: [
            torch.var_mean(x.sin() + 10000),
            torch.var_mean(y.exp(), (0, 2)),
            torch.var_mean(z.exp2(), -1),
            z.exp2().std(-1),
        ],
        # the last: rows of one value, at first powers of two, of which squares are infinite
        lambda: (
            _normal(100_003),
            _normal(40, 6, 130),
            torch.tensor([64.0, 1.0, 0.1, 0.3, 0.7])[:, None].repeat(1, 1500),
        ),
    ),
    "costly_values_of_rows": (
        lambda x, y: [F.layer_norm(F.gelu(x), (128,)), F.log_softmax(x.exp() + y.erf(), -1)],
        lambda: (_normal(33, 128), _normal(33, 128)),
    ),
    "costly_values_in_place_and_moments": (
        lambda x: x.sin_().var(-1),
        lambda: (_normal(33, 1000),),
    ),
    "costly_values_in_place": (
        lambda x: x.copy_(x.tanh() - x.tanh().var(-1, keepdim=True)).sum(-1) + x[:, 0],
        lambda: (_normal(33, 1000),),
    ),
    "softmax": (lambda x: torch.softmax(x * 3, -1), lambda: (_normal(9, 200),)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), lambda: (_normal(9, 4100),)),
    "layer_norm": (lambda x: F.layer_norm(x, (130,)), lambda: (_normal(7, 130),)),
    "prod": (lambda x: x.prod(-1), lambda: (_normal(7, 30),)),
    "any_all": (lambda x: ((x > 2).any(-1), (x > -2).all(-1)), lambda: (_normal(64, 30),)),
    "max_and_place": (lambda x: x.max(-1), lambda: (_normal(9, 50),)),
    "argmax_of_ties": (lambda x: x.argmax(-1), lambda: (torch.randint(0, 3, (9, 500)),)),
    "norms": (lambda x: (x.norm(), x.norm(dim=0), x.abs().amax(1)), lambda: (_normal(60, 70),)),
    "integer_sum": (lambda x: (x.sum(), x.amax(0)), lambda: (torch.randint(-9, 9, (50, 60)),)),
    "half_sum": (lambda x: x.sum(-1), lambda: (_normal(9, 3000, dtype=torch.float16),)),
    "two_outputs": (lambda x: (x * x.sum(-1, keepdim=True), x.exp()), lambda: (_normal(9, 80),)),
    "cross_entropy": (
        lambda x, t: F.cross_entropy(x, t),
        lambda: (_normal(16, 10), torch.randint(0, 10, (16,))),
    ),
    # loads and stores
    "overlap": (_tail, lambda: (_normal(1000),)),
    "cat": (lambda x, y: torch.cat([x, y * 2], 1), lambda: (_normal(8, 70), _normal(8, 5))),
    "pad": (lambda x: F.pad(x, (1, 2, 3, 0), value=7) * 2, lambda: (_normal(8, 70),)),
    "flip_roll": (lambda x: x.flip(0) + x.roll(3, 1), lambda: (_normal(8, 70),)),
    "roll_of_columns": (lambda x: x.t().roll(2, 1) + 1, lambda: (_normal(130, 31),)),
    "stack": (lambda x: torch.stack([x, -x]).unflatten(2, (7, 10)), lambda: (_normal(8, 70),)),
    "gather": (
        lambda x, i: x.gather(1, i) + 1,
        lambda: (_normal(8, 70), torch.randint(0, 70, (8, 3))),
    ),
    "index": (
        lambda x, i: x[i] * 2 + x[-1],
        lambda: (_normal(40, 70), torch.randint(-40, 40, (9,))),
    ),
    "index_of_bools": (
        lambda x, y: (
            x[(y[:, 0] > 0).long()] + x.gather(1, (y > 0).long()),
            x.gather(1, (y > 0).long() * 3 + (y < -1).int()),
            x.gather(1, torch.where(y > 1, (y > 0).long(), 5)),
            x.scatter(1, (y[:, :1] > 0).long(), 0.5),
            F.embedding((y > 0).int(), x),
            x[-1 - (y[:, 1] > 0).int()] * 2,
        ),
        lambda: (_normal(33, 65), _normal(33, 65)),
    ),
    "embedding": (
        lambda w, i: F.embedding(i, w) * 2,
        lambda: (_normal(40, 70), torch.randint(0, 40, (3, 5))),
    ),
    "accumulate": (
        lambda x, i: torch.zeros(5, 70, device=x.device).index_add(0, i, x),
        lambda: (_normal(400, 70), torch.randint(0, 5, (400,))),
    ),
    "scatter": (
        lambda x, i: x.scatter_add(1, i, x),
        lambda: (_normal(8, 70), torch.randint(0, 70, (8, 70))),
    ),
    "index_select": (
        lambda x, i: x.index_select(0, i) + 1,
        lambda: (_normal(8, 70), torch.randint(0, 8, (5,))),
    ),
    "diagonal": (
        lambda x, d: x.diagonal_scatter(d, 1) * 2,
        lambda: (_normal(8, 70), _normal(8)),
    ),
    "in_place": (lambda x: x.mul_(2).add_(1)[1:].sub_(3).sum(0), lambda: (_normal(8, 70),)),
    "strided_input": (lambda x: (x * 2).sum(0), lambda: (_normal(60, 90)[::2, 1::3],)),
    "broadcast": (lambda x, y: x + y, lambda: (_normal(7, 1, 80), _normal(1, 5, 1))),
    "number_of_the_cpu": (lambda x, y: x * y + 1, lambda: (_normal(80), torch.tensor(3.5))),
    "number_of_the_cpu_first": (_numbers_first, lambda: (_normal(9, 80), torch.tensor(1.5))),
    "number_of_64_bits": (
        lambda x, y: x + y.to(torch.float64),
        lambda: (_normal(80).double(), torch.tensor(2**63 + 5, dtype=torch.uint64)),
    ),
    "empty": (lambda x: (x * 2, x.sum(0), x.sum(1)), lambda: (_normal(0, 5),)),
    "one": (lambda x: (x * 2).sum(), lambda: (_normal(1),)),
    "no_dimensions": (lambda x: x * 2 + 1, lambda: (_normal(1)[0],)),
    # what a kernel stores in place, it must not read again as it was
    "in_place_and_moments": (
        lambda a, w, r: (F.layer_norm(h := (a @ w) * 2 + r, (128,)), h),
        lambda: (_normal(16, 32), _normal(32, 128), _normal(16, 128)),
    ),
    "in_place_and_two_sums": (
        lambda a, w: ((h := (a @ w) * 2).sum(-1), h.amax(-1), h),
        lambda: (_normal(16, 32), _normal(32, 128)),
    ),
    "in_place_and_columns": (
        lambda a, w: ((h := (a @ w) * 2).sum(0), h.var(0), h),
        lambda: (_normal(50, 32), _normal(32, 64)),
    ),
    "stored_once_and_read_by_columns": (
        lambda a, w, x: (y := a @ w + 1, (x - y).abs().sum(0)),
        lambda: (_normal(32), _normal(32, 64), _normal(50, 64)),
    ),
    "stored_once_and_read_by_rows": (
        lambda a, x: (y := a.cumsum(0) * 2 + 1, (x - y[:, None]).abs().sum(1)),
        lambda: (_normal(16), _normal(16, 600)),
    ),
    "added_once_beside_moments": (
        lambda g, i: (
            torch.zeros(8, 64, device=g.device).index_put((i,), g, accumulate=True),
            g.var(1),
        ),
        lambda: (_normal(16, 64), torch.randint(0, 8, (16,))),
    ),
    "results_read_by_other_columns": (
        lambda x: (x.t().contiguous() - x.mean(0)[:, None], x.t().contiguous().softmax(-1)),
        lambda: (_normal(50, 48),),
    ),
    "argmax_of_permuted": (
        lambda x: (x.t().argmax(), (x.t() + 1).argmin(), x.permute(1, 0).flatten().argmax()),
        lambda: (_normal(33, 70),),
    ),
    **{
        f"accumulate:{dtype}": (_accumulated, _to_accumulate(dtype))
        for dtype in (*_FLOATS, *_INTEGERS)
    },
    # operators beside kernels
    "matmul": (lambda x, y: F.relu(x @ y) + 1, lambda: (_normal(9, 20), _normal(20, 30))),
    "convolution": (
        lambda x, w: F.relu(F.conv2d(x, w, padding=1)),
        lambda: (_normal(2, 3, 9, 9), _normal(8, 3, 3, 3)),
    ),
    "pools": (
        lambda x: (F.max_pool2d(x, 3, 2), F.avg_pool2d(x, 2), F.interpolate(x, scale_factor=2)),
        lambda: (_normal(2, 3, 12, 12),),
    ),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q),
        lambda: (_normal(2, 4, 16, 8),),
    ),
    "called": (
        lambda x: (x.cumsum(0) * 2, x.sort(0).values, torch.lgamma(x) + 1, torch.digamma(x) * 2),
        lambda: (torch.rand(50) + 1,),
    ),
    # operators instead of kernels
    "power_of_integers": (
        lambda x, number: (torch.pow(x, number), torch.pow(number, x) + 1),
        lambda: (torch.arange(1, 9), torch.tensor(3)),
    ),
    "float8": (
        lambda x, w: (
            (w.float() * x).to(torch.float8_e5m2),
            w[1:].clone(),
            w.view(torch.uint8) + 1,
        ),
        lambda: (_normal(40), _normal(40).to(torch.float8_e4m3fn)),
    ),
}
#: Not for sizes that are given: fake tensors with symbols refuse copysign(number of the CPU, x).
STATIC = ("number_of_the_cpu_first",)

#: One of each layout: for devices that are slow to simulate, and for each change.
FEW = (
    "unary:torch.float32",
    "rows",
    "tiles",
    "columns",
    "normalised_columns",
    "batch_norm",
    "sum_of_all",
    "moments_of_little_spread",
    "moments_of_costly_values",
    "costly_values_of_rows",
    "argmax_of_ties",
    "index",
    "accumulate",
    "in_place_and_moments",
    "costly_values_in_place_and_moments",
)
