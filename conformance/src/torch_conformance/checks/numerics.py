# SPDX-License-Identifier: BSD-3-Clause
"""Numbers: odd sizes, no dimensions, NaN, long sums, the limits of types, equal elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    agree,
    check,
    deterministic,
    noise,
    raised,
    ramp,
    tensors,
)

Function = Callable[[Tensor], Any]
Pair = Callable[[Tensor, Tensor], Any]

# ---- sizes -------------------------------------------------------------------------------------

#: Around the sizes of vectors, tiles and blocks.
SIZES = (1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 127, 129, 255, 257, 1023, 1025, 4099)

_BY_SIZE: dict[str, Function] = {
    "clone": lambda x: x.clone(),
    "full": lambda x: torch.full_like(x, 3),
    "add": lambda x: x + x,
    "scalar": lambda x: x * 2.5,
    "in_place": lambda x: x.clone().mul_(x),
    "exp": lambda x: x.exp(),
    "gelu": functional.gelu,
    "compare": lambda x: x > 0,
    "where": lambda x: torch.where(x > 0, x, -x),
    "cast": lambda x: x.to(torch.int32),
    "masked_fill": lambda x: x.masked_fill(x > 0, 7.0),
    "sum": lambda x: x.sum(),
    "prod": lambda x: (x / 64 + 1).prod(),
    "maximum": lambda x: [x.max(), x.argmax(), x.amin(0)],
    "any": lambda x: [(x > 3).any(), (x > -9).all(), (x > 0).count_nonzero()],
    "norm": lambda x: x.norm(),
    "dot": lambda x: x.dot(x),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
    "sort": lambda x: list(x.sort()),
    "flip": lambda x: x.flip(0),
    "cat": lambda x: torch.cat([x, x[:1]]),
    "gather": lambda x: x[torch.arange(x.numel() - 1, -1, -1, device=x.device)],
    "nonzero": lambda x: (x > 0).nonzero(),
    "arange": lambda x: torch.arange(x.numel(), device=x.device),
}


@check("numerics/size", "NUM-001", cases=tuple(_BY_SIZE))
def every_element_is_computed(dev: Device, case: str) -> None:
    """One dimension of each size gives the CPU's result, the last element included."""
    agree(
        dev,
        lambda device: [_BY_SIZE[case](noise((size,)).to(device)) for size in SIZES],
        rtol=1e-5,
        atol=1e-4,
    )


#: Rows and columns.
SHAPES = ((1, 1), (1, 33), (33, 1), (3, 5), (7, 17), (17, 7), (31, 65), (65, 31), (5, 1025))

_BY_SHAPE: dict[str, Function] = {
    "transposed": lambda x: x.t().contiguous(),
    "sum": lambda x: [x.sum(0), x.sum(1)],
    "argmax": lambda x: [x.argmax(0), x.argmax(1)],
    "cumsum": lambda x: [x.cumsum(0), x.cumsum(1)],
    "softmax": lambda x: [x.softmax(0), x.softmax(1)],
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]) if x.size(1) > 1 else x + 0,
    "var": lambda x: x.var(0, correction=0),
    "matmul": lambda x: [x @ x.t(), x.t() @ x],
    "addmm": lambda x: torch.addmm(x[0, :1], x, x.t()),
    "mv": lambda x: x @ x[0],
    "bmm": lambda x: torch.bmm(x.expand(3, *x.shape), x.t().expand(3, *x.shape[::-1])),
    "flip": lambda x: [x.t().flip(0), x.flip(1)],
    "index_select": lambda x: x.index_select(0, torch.tensor([x.size(0) - 1, 0], device=x.device)),
    "embedding": lambda x: functional.embedding(torch.tensor([[0, -1 % len(x)]]).to(x.device), x),
    "pad": lambda x: functional.pad(x, (1, 2)),
    "tril": lambda x: x.tril(),
}


@check("numerics/shape", "NUM-001", cases=tuple(_BY_SHAPE))
def every_row_and_column_is_computed(dev: Device, case: str) -> None:
    """Matrices of odd shapes give the CPU's result, the last row and column included."""
    agree(
        dev,
        lambda device: [_BY_SHAPE[case](noise(shape).to(device)) for shape in SHAPES],
        rtol=1e-4,
        atol=1e-4,
    )


# ---- no dimensions -----------------------------------------------------------------------------

_WITHOUT_DIMENSIONS: dict[str, Function] = {
    "arithmetic": lambda s: [s + s, s * 2, -s, s.exp(), s.clamp(0, 1), torch.where(s > 0, s, -s)],
    "in_place": lambda s: [s.clone().add_(1), s.clone().mul_(s), s.clone().fill_(3)],
    "reduction": lambda s: [s.sum(), s.mean(), s.max(), s.argmax(), s.prod(), s.norm(), s.amin()],
    "reduction_dim": lambda s: [s.sum(0), s.mean(-1), s.amax(0), s.prod(0), s.any(0), *s.max(0)],
    "scan": lambda s: [s.cumsum(0), s.cumprod(-1), *s.cummax(0), s.logcumsumexp(0)],
    "softmax": lambda s: [s.softmax(0), s.log_softmax(-1), s.logsumexp(0)],
    "order": lambda s: [*s.sort(), *s.sort(0, True), *s.topk(1), *s.median(0), *s.kthvalue(1)],
    "shape": lambda s: [s.view(1, 1), s.flatten(), s.expand(3), s.repeat(2, 2), s.t(), s.squeeze()],
    "joined": lambda s: [torch.stack([s, s]), torch.atleast_2d(s)],
    "selection": lambda s: [s[None], s.masked_select(s > 0), s.nonzero(), s.index_select(0, _0(s))],
    "written": lambda s: [s.masked_fill(s > 0, 1), s.scatter(0, _0(s)[0], 4.0), _put(s)],
    "loss": lambda s: [functional.mse_loss(s, s * 2), functional.l1_loss(s, -s)],
    "cast": lambda s: [s.long(), s.int(), s.bool(), s.to(torch.uint8)],
}


def _0(like: Tensor) -> Tensor:
    return torch.zeros(1, dtype=torch.int64, device=like.device)


def _put(scalar: Tensor) -> Tensor:
    changed = scalar.clone()
    changed[...] = 9
    return changed


@check("numerics/zero_dim", "NUM-002", cases=tuple(_WITHOUT_DIMENSIONS))
def tensors_may_have_no_dimensions(dev: Device, case: str) -> None:
    """Operators on a tensor without dimensions agree with the CPU."""
    agree(dev, lambda device: _WITHOUT_DIMENSIONS[case](torch.tensor(2.5).to(device)))


@check("numerics/zero_dim_gradient", "NUM-002")
def losses_have_no_dimensions(dev: Device) -> None:
    """A gradient flows from and to tensors without dimensions."""

    def program(device: torch.device) -> list[Tensor]:
        scale = torch.tensor(1.5).to(device).requires_grad_()
        loss = (noise((5,)).to(device) * scale).square().mean() + scale.exp()
        return [loss, *torch.autograd.grad(loss, scale)]

    agree(dev, program)


# ---- NaN and infinities ------------------------------------------------------------------------

_NAN, _INF = float("nan"), float("inf")
_SPECIAL = (1.0, _NAN, -2.5, _INF, 0.0, -_INF, 7.0)


def _special(device: torch.device) -> Tensor:
    return torch.tensor(_SPECIAL).to(device)


_UNARY = [
    "abs",
    "neg",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "relu",
    "sigmoid",
    "tanh",
    "floor",
    "round",
    "sign",
    "square",
    "sin",
    "isnan",
    "isinf",
    "isfinite",
    "nan_to_num",
    "logical_not",
    "erf",
    "log1p",
    "expm1",
]


@check("numerics/special_unary", "NUM-010", cases=_UNARY)
def functions_of_special_values_agree(dev: Device, case: str) -> None:
    """A function of NaN, infinities and zero gives the CPU's value."""
    agree(dev, lambda device: getattr(torch, case)(_special(device)))


_BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "pow",
    "fmod",
    "remainder",
    "atan2",
    "copysign",
    "eq",
    "ne",
    "lt",
    "ge",
    "hypot",
]


@check("numerics/special_binary", "NUM-003", cases=_BINARY)
def operators_on_special_values_agree(dev: Device, case: str) -> None:
    """An operator on each pair of NaN, infinities and numbers gives the CPU's value."""

    def program(device: torch.device) -> Any:
        x = _special(device)
        return getattr(torch, case)(x[:, None], x)

    agree(dev, program)


_WITH_NAN: dict[str, Function] = {
    "max": lambda x: [x.max(), *x.max(1)],
    "min": lambda x: [x.min(), *x.min(0)],
    "amax_amin": lambda x: [x.amax(), x.amin(1), *x.aminmax()],
    "argmax": lambda x: [x.argmax(), x.argmin(1)],
    "sum": lambda x: [x.sum(), x.nansum(1), x.mean(0), x.prod(1)],
    "median": lambda x: [x.median(), x.nanmedian(), x.median(1).values],
    "cumulative": lambda x: [*x.cummax(1), *x.cummin(1), x.cumsum(1)],
    "clamp": lambda x: [x.clamp(-1, 1), x.clamp(min=x[0]), x.relu(), functional.hardtanh(x)],
    "sort": lambda x: [*x.sort(dim=1, stable=True), *x.sort(dim=0, descending=True, stable=True)],
    "topk": lambda x: x.topk(3, 1).values,
    "any": lambda x: [x.any(), x.all(), x.isnan().any(1), x.bool()],
    "softmax": lambda x: [x.softmax(1), x.log_softmax(1), x.logsumexp(1)],
    "norm": lambda x: [x.norm(), torch.linalg.vector_norm(x, _INF, 1), x.var(1)],
    # The finite factor is small: whether a large product overflows before it is added to an
    # infinity depends on the use of fused multiply-adds.
    "matmul": lambda x: [x @ x.nan_to_num(0, 1, -1).t(), x[:, :2] @ torch.zeros_like(x)[:2]],
    "max_pool": lambda x: functional.max_pool1d(x[None], 2),
    "scatter_reduce": lambda x: x[0].scatter_reduce(
        0, torch.tensor([0] * 7).to(x.device), x[1], "amax"
    ),
}


@check("numerics/nan", "NUM-003", cases=tuple(_WITH_NAN))
def a_nan_is_not_lost(dev: Device, case: str) -> None:
    """A NaN or an infinity in some rows of a matrix has the CPU's effect on the result."""

    def program(device: torch.device) -> Any:
        x = ramp((4, 7))
        x[1, 3], x[2, 6], x[3, 0] = _NAN, _INF, -_INF
        return _WITH_NAN[case](x.to(device))

    agree(dev, program, rtol=1e-5)


# ---- long sums ---------------------------------------------------------------------------------

_LONG: dict[str, Function] = {
    "sum": lambda x: x.sum(),
    "sum_rows": lambda x: x.view(2, -1).sum(1),
    "sum_columns": lambda x: x.view(-1, 2).sum(0),
    "mean": lambda x: x.mean(),
    "cumsum": lambda x: x.cumsum(0)[-1],
    "norm": lambda x: x.norm(),
    "dot": lambda x: x.dot(x),
    "matmul": lambda x: x.view(1, -1) @ x.view(-1, 1),
    "linear": lambda x: functional.linear(x.view(4, -1), x.view(4, -1)),
    "bmm": lambda x: x.view(2, 1, -1) @ x.view(2, -1, 1),
    "conv1d": lambda x: functional.conv1d(x.view(1, -1, 2), x.view(1, -1, 2)),
    "avg_pool": lambda x: functional.avg_pool2d(x.view(1, 1, 64, -1), 64),
    "mse_loss": lambda x: functional.mse_loss(x, torch.zeros_like(x)),
    "logsumexp": lambda x: (x - 1).logsumexp(0),
    "gradient": lambda x: torch.func.grad(lambda s: (s * x).sum())(x[0].clone()),
}


@check("numerics/long_sum", "NUM-004", cases=tuple(_LONG), dtypes=("float16", "bfloat16"))
def long_sums_do_not_stand_still(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A sum, mean or product over 32768 ones in 16 bits is that in double precision, rounded."""
    ones = torch.ones(2**15, dtype=dtype)
    expected = _LONG[case](ones.double()).to(dtype)
    dev.assert_close(_LONG[case](ones.to(dev.device())), expected)


# ---- whole numbers -----------------------------------------------------------------------------

_WHOLE: dict[str, Function] = {
    "sum": lambda x: [x.sum(), x.sum(0), x.sum(1)],
    "cumsum": lambda x: [x.cumsum(1), x.cumprod(1)],
    "prod": lambda x: [x.prod(), x.prod(1)],
    "nansum": lambda x: x.nansum(),
    "trace": lambda x: x.trace(),
    "count": lambda x: [x.count_nonzero(), x.count_nonzero(0)],
}


@check(
    "numerics/integer_sum",
    "NUM-005",
    cases=tuple(_WHOLE),
    dtypes=("uint8", "int8", "int16", "int32", "int64"),
)
def sums_of_integers_do_not_overflow(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Sums, products and scans of the largest numbers of a type are those of int64."""
    largest = torch.iinfo(dtype).max // (16 if dtype == torch.int64 else 1)
    x = torch.full((3, 3), largest, dtype=dtype)
    x[1, 2] = 3
    agree(dev, lambda device: _WHOLE[case](x.to(device)))


_LIMITS: dict[str, Pair] = {
    "add": lambda a, b: [a + b, a - b],
    "mul": lambda a, b: a * b,
    "neg": lambda a, b: [-a, a.abs()] if a.dtype.is_signed else [-a],
    "floor_divide": lambda a, b: a // b,
    "truncate_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "true_divide": lambda a, b: a / b,
    "remainder": lambda a, b: [a.remainder(b), a.fmod(b)],
    "compare": lambda a, b: [a < b, a == b, torch.maximum(a, b), torch.minimum(a, b)],
    "bits": lambda a, b: [a & b, a | b, a ^ b, ~a],
    "shift": lambda a, b: [a << 1, a >> 1],
}


@check(
    "numerics/integer",
    "NUM-011",
    cases=tuple(_LIMITS),
    dtypes=("uint8", "int8", "int16", "int32", "int64"),
)
def whole_numbers_wrap_and_round(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Arithmetic on the smallest, the largest and negative numbers of a type agrees."""
    least, largest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    values = [largest, largest - 1, 7, 1, least + 1, least] + ([-1, -7] if least else [])
    divisors = torch.tensor([3, 7, largest] + ([-3, -7] if least else []), dtype=dtype)
    numbers = torch.tensor(values, dtype=dtype)
    agree(dev, lambda d: _LIMITS[case](numbers[:, None].to(d), divisors.to(d)), rtol=1e-6)


# ---- equal elements ----------------------------------------------------------------------------


def _few_values(*shape: int) -> Tensor:
    """Numbers of which each occurs many times."""
    return ramp(shape, torch.int64) % 5


_TIES: dict[str, Function] = {
    "argmax": lambda x: [x.argmax(), x.argmax(0), x.argmax(1)],
    "argmin": lambda x: [x.argmin(), x.argmin(0), x.argmin(1)],
    "argmax_float": lambda x: [x.float().argmax(1), x.float().argmin(0), x.bool().int().argmax()],
    "sort_stable": lambda x: [*x.sort(dim=1, stable=True), *x.sort(dim=0, stable=True)],
    "sort_descending": lambda x: list(x.sort(dim=1, descending=True, stable=True)),
    "argsort_stable": lambda x: x.float().flatten().argsort(stable=True),
    "searchsorted": lambda x: [
        torch.searchsorted(x.flatten().sort().values, x[0]),
        torch.bucketize(x[0], torch.arange(5, device=x.device), right=True),
    ],
    "unique": lambda x: list(x.unique(return_inverse=True, return_counts=True)),
    "round": lambda x: (x.float() / 2).round(),
    "constant": lambda x: [torch.zeros_like(x).argmax(1), torch.ones_like(x).flatten().argmin()],
}


@check("numerics/ties", "NUM-006", cases=tuple(_TIES))
def the_documented_one_of_equal_elements_wins(dev: Device, case: str) -> None:
    """Among equal elements argmax names the first; stable sorts keep their order."""
    agree(dev, lambda device: _TIES[case](_few_values(37, 53).to(device)))


# ---- the same bits -----------------------------------------------------------------------------

_REPEATED: dict[str, Function] = {
    "sum": lambda x: [x.sum(), x.sum(0), x.mean(1)],
    "cumsum": lambda x: x.flatten().cumsum(0),
    "matmul": lambda x: x @ x.t(),
    "softmax": lambda x: x.softmax(1),
    "norm": lambda x: x.norm(),
    "index_add": lambda x: torch.zeros_like(x[:3]).index_add_(0, _few(x, 3), x),
    "scatter_add": lambda x: torch.zeros_like(x[0]).scatter_add_(0, _few(x, 7), x[:, 0].clone()),
    "index_put": lambda x: torch.zeros_like(x).index_put_((_few(x, 7),), x, accumulate=True),
    "embedding": lambda x: _gradient(lambda w: functional.embedding(_few(x, 7), w), x),
    "conv": lambda x: _gradient(lambda w: functional.conv1d(x[None], w[:, :, None]), x.t() @ x),
    "layer_norm": lambda x: _gradient(lambda w: functional.layer_norm(x, w.shape, w), x[0].clone()),
    "scan": lambda x: [x.cumsum(0), x.cumsum(1), (1 + x / 64).cumprod(1)],
    "scatter_reduce": lambda x: torch.zeros_like(x[0]).scatter_reduce_(
        0, _few(x, 7), x[:, 0].clone(), "sum"
    ),
    "bincount": lambda x: torch.bincount(_few(x, 7), x[:, 0].clone()),
    "gather": lambda x: _gradient(lambda w: w.gather(0, _few(x, 7)[:, None].expand_as(x)) * x, x),
    "index_select": lambda x: _gradient(lambda w: w.index_select(0, _few(x, 7)) * x, x),
    "broadcast": lambda x: _gradient(lambda w: w * x, x[0].clone()),
    "batch_norm": lambda x: _gradient(
        lambda w: functional.batch_norm(x, None, None, w, training=True) * x, x[0].clone()
    ),
    "max_pool": lambda x: _gradient(lambda w: functional.max_pool2d(w[None, None], 3, 1), x),
    "interpolate": lambda x: _gradient(
        lambda w: functional.interpolate(w[None, None], scale_factor=2.5, mode="bilinear"), x
    ),
}


def _few(like: Tensor, count: int) -> Tensor:
    return torch.arange(like.size(0), device=like.device) % count


def _gradient(function: Function, weight: Tensor) -> Tensor:
    leaf = weight.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf).sum(), leaf)
    return gradient


@check("numerics/repeated", "NUM-007", cases=tuple(_REPEATED))
def deterministic_operators_repeat_their_bits(dev: Device, case: str) -> None:
    """With deterministic algorithms the same operator on the same numbers gives the same bits."""
    x = noise((301, 301)).to(dev.device())
    with deterministic():
        try:
            runs = [[dev.cpu(t) for t in tensors(_REPEATED[case](x))] for _ in range(4)]
        except RuntimeError as error:
            if "determin" not in str(error):
                raise
            return
    assert all(_same_bits(runs[0], run) for run in runs[1:])


@check(
    "numerics/repeated_on_streams",
    "NUM-007",
    cases=("sum", "cumsum", "matmul", "index_add", "scatter_add", "embedding", "layer_norm"),
    needs=("streams",),
)
def deterministic_operators_repeat_their_bits_on_streams(dev: Device, case: str) -> None:
    """With deterministic algorithms the bits are the same on every stream, beside other work."""
    x = noise((301, 301)).to(dev.device())

    def run() -> list[Tensor]:
        return [t.cpu() for t in tensors(_REPEATED[case](x))]

    with deterministic():
        try:
            first = run()
        except RuntimeError as error:
            if "determin" not in str(error):
                raise
            return
        for _ in range(3):
            assert _same_bits(first, _beside_other_work(dev, x, run))


@check(
    "numerics/repeated_anyway",
    "NUM-009",
    cases=("sum", "cumsum", "matmul", "softmax", "norm", "scan", "broadcast", "layer_norm"),
)
def reductions_repeat_their_bits(dev: Device, case: str) -> None:
    """Reductions, scans and products give the same bits each time without any setting."""
    x = noise((301, 301)).to(dev.device())

    def run() -> list[Tensor]:
        return [t.cpu() for t in tensors(_REPEATED[case](x))]

    first = run()
    for _ in range(3):
        assert _same_bits(first, _beside_other_work(dev, x, run) if dev.has("streams") else run())


def _beside_other_work(dev: Device, x: Tensor, run: Callable[[], list[Tensor]]) -> list[Tensor]:
    """What a function returns on a stream of its own while another one is busy."""
    stream, other = dev.stream(), dev.stream()
    dev.synchronize()
    with other:
        busy = [x @ x for _ in range(8)]
    with stream:
        results = run()
    dev.synchronize()
    del busy
    return results


def _same_bits(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# ---- broadcasting ------------------------------------------------------------------------------

_SHAPE_PAIRS = (
    ((4, 1, 3), (2, 1)),
    ((3,), (2, 3)),
    ((2, 1, 4), (1, 5, 1)),
    ((), (2, 3)),
    ((5, 1), (1, 7)),
    ((1,), (0, 3)),
    ((2, 3, 1, 2), (3, 4, 1)),
)

_BROADCAST: dict[str, Pair] = {
    "add": torch.add,
    "sub": lambda a, b: b - a,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "less": torch.lt,
    "power": lambda a, b: a.abs().pow(b / 50),
    "where": lambda a, b: torch.where(a > 0, b, a),
    "lerp": lambda a, b: torch.lerp(a, b, a / 10),
    "addcmul": lambda a, b: torch.addcmul(a, b, b, value=2),
    "masked_fill": lambda a, b: (a + b).masked_fill(b > 0, 7.0),
    "in_place": lambda a, b: [(a + b).mul_(a), (a + b).copy_(b), (a + b).sub_(b, alpha=2)],
    "gradient": lambda a, b: _gradient(lambda w: w * b, a),
}


@check("numerics/broadcast", "NUM-008", cases=tuple(_BROADCAST))
def shapes_are_broadcast(dev: Device, case: str) -> None:
    """Operands whose dimensions are missing, or of size one, give the CPU's result."""

    def program(device: torch.device) -> list[Any]:
        pairs = [(ramp(a).to(device), ramp(b).to(device)) for a, b in _SHAPE_PAIRS]
        return [_BROADCAST[case](a, b) for a, b in pairs]

    agree(dev, program)


@check("numerics/broadcast_matmul", "NUM-008")
def batches_are_broadcast(dev: Device) -> None:
    """Batch dimensions of matrix products are broadcast."""
    shapes = (((2, 1, 3, 4), (5, 4, 2)), ((4,), (3, 4, 2)), ((2, 3, 4), (4,)), ((3, 4), (2, 4, 1)))

    def program(device: torch.device) -> list[Tensor]:
        return [noise(a).to(device) @ noise(b, seed=1).to(device) for a, b in shapes]

    agree(dev, program, rtol=1e-5, atol=1e-5)


@check("numerics/broadcast_refused", "NUM-012", cases=("shapes", "in_place", "copy", "where"))
def what_cannot_be_broadcast_is_refused(dev: Device, case: str) -> None:
    """Shapes that do not fit raise RuntimeError, in place also those that would grow the tensor."""
    a, b = ramp((2, 3)).to(dev.device()), ramp((2, 2)).to(dev.device())
    works: dict[str, Callable[[], Any]] = {
        "shapes": lambda: a * b,
        "in_place": lambda: a[:1].add_(a),
        "copy": lambda: a[:1].copy_(a),
        "where": lambda: torch.where(a > 0, a, b),
    }
    assert isinstance(raised(works[case], by=dev.synchronize), RuntimeError)
    dev.assert_equal(a, ramp((2, 3)))
