# SPDX-License-Identifier: BSD-3-Clause
"""What is computed on both drivers. Inputs come from the CPU, so that they are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

Compute = Callable[[torch.device], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Case:
    """Tensors on the device; how they are compared stands in their name.

    exact: to the last bit. slack: how many times the dtype's tolerance two correct results may be
    apart, for sums of many terms are rounded in another order.
    """

    name: str
    compute: Compute
    exact: bool = False
    slack: float = 1.0


FLOATS = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
INTEGERS = {"int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8}
CHUNK = 4096  # elements of a mask that are counted together
SUMS = 16.0  # slack of sums of many terms


def cases(size: int, dtypes: tuple[str, ...] = tuple(FLOATS)) -> Iterator[Case]:
    """All of them, on operands of about `size` elements."""
    for dtype in dtypes:
        yield from _pointwise(dtype, size)
        yield from _reductions(dtype, size)
        yield from _network(dtype, size)
        yield from _random(dtype, size)
    for dtype in INTEGERS:
        yield from _integers(dtype, size)
    yield from _masks(size)
    yield from _random_integers(size)


# ---- inputs ----


def _normal(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def _whole(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 1, high: int = 100) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, high, shape, generator=generator).to(dtype)


def _matrix(size: int) -> tuple[int, int]:
    """Neither side a multiple of anything a kernel likes."""
    return (max(3, size // 131), 131)


# ---- pointwise ----

# By the domain of their inputs.
ANY = (
    *(
        "abs",
        "neg",
        "exp",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "erf",
        "floor",
        "sign",
        "expm1",
        "atan",
    ),
    *("relu", "square", "isnan", "ceil", "round", "trunc"),
)
POSITIVE = ("log", "sqrt", "rsqrt", "log1p", "log2", "reciprocal", "lgamma")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "eq", "lt", "hypot")
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "leaky_relu": functional.leaky_relu,
    "softplus": functional.softplus,
}


def _pointwise(dtype: str, size: int) -> Iterator[Case]:
    x, y = (_normal((size,), FLOATS[dtype], seed) for seed in (1, 2))
    for name in ANY:
        yield Case(f"{name}:{dtype}", _on(getattr(torch, name), x), slack=4)
    for name in POSITIVE:
        yield Case(f"{name}:{dtype}", _on(getattr(torch, name), x.abs() + 0.25), slack=4)
    for name in BINARY:
        yield Case(f"{name}:{dtype}", _on(getattr(torch, name), x, y), slack=4)
    for name, function in ACTIVATIONS.items():
        yield Case(f"{name}:{dtype}", _on(function, x), slack=4)
    shape = _matrix(size)
    matrix, row = _normal(shape, FLOATS[dtype]), _normal(shape[1:], FLOATS[dtype], 2)
    yield Case(f"add/broadcast:{dtype}", _on(torch.add, matrix, row))
    yield Case(f"add/transposed:{dtype}", _on(lambda m: m.t() + m.t() * 2, matrix))
    yield Case(f"where:{dtype}", _on(lambda a, b: torch.where(a > b, a, b), x, y), exact=True)
    yield Case(f"cast:{dtype}", _on(lambda a: a.to(torch.bfloat16), x), exact=True)
    yield Case(f"cat:{dtype}", _on(lambda a, b: torch.cat([a, b[:5], a]), x, y), exact=True)


# ---- reductions, order, indexing ----


def _reductions(dtype: str, size: int) -> Iterator[Case]:
    matrix = _normal(_matrix(size), FLOATS[dtype])
    for dim in (0, 1):
        for name in ("sum", "mean", "var", "logsumexp", "cumsum"):
            function = partial(getattr(torch, name), dim=dim)
            yield Case(f"{name}/{dim}:{dtype}", _on(function, matrix), slack=SUMS)
        for name in ("amax", "amin", "argmax"):
            function = partial(getattr(torch, name), dim=dim)
            yield Case(f"{name}/{dim}:{dtype}", _on(function, matrix), exact=True)
        for name in ("softmax", "log_softmax"):
            function = partial(getattr(torch, name), dim=dim)
            yield Case(f"{name}/{dim}:{dtype}", _on(function, matrix), slack=4)
    yield Case(f"sum/all:{dtype}", _on(torch.sum, matrix), slack=SUMS)
    yield Case(f"sort:{dtype}", _on(partial(torch.sort, stable=True), matrix), exact=True)
    index = _whole((matrix.shape[0],), torch.int64, high=matrix.shape[0])
    yield Case(f"index_select:{dtype}", _on(lambda m, i: m[i], matrix, index), exact=True)
    yield Case(
        f"gather:{dtype}", _on(lambda m, i: m.gather(0, i[:, None]), matrix, index), exact=True
    )


# ---- what networks are made of ----


def _network(dtype: str, size: int) -> Iterator[Case]:
    rows, columns = _matrix(size)
    x = _normal((rows, columns), FLOATS[dtype])
    weight = _normal((67, columns), FLOATS[dtype], 2) / columns**0.5
    yield Case(f"linear:{dtype}", _on(functional.linear, x, weight), slack=SUMS)
    yield Case(f"bmm:{dtype}", _on(torch.bmm, _stack(x), _stack(x).mT.contiguous()), slack=SUMS)
    yield Case(
        f"layer_norm:{dtype}", _on(lambda m: functional.layer_norm(m, m.shape[1:]), x), slack=SUMS
    )
    images = _normal((2, 4, 13, 11), FLOATS[dtype])
    filters = _normal((6, 4, 3, 3), FLOATS[dtype], 2) / 6
    yield Case(f"conv2d:{dtype}", _on(functional.conv2d, images, filters), slack=SUMS)
    yield Case(f"max_pool2d:{dtype}", _on(partial(functional.max_pool2d, kernel_size=3), images))
    yield Case(
        f"group_norm:{dtype}", _on(lambda m: functional.group_norm(m, 2), images), slack=SUMS
    )
    heads = _normal((1, 2, 19, 16), FLOATS[dtype])
    attention = functional.scaled_dot_product_attention
    yield Case(f"attention:{dtype}", _on(lambda q: attention(q, q, q), heads), slack=SUMS)


def _stack(matrix: Tensor) -> Tensor:
    return torch.stack([matrix, matrix / 2])


# ---- integers ----


def _integers(dtype: str, size: int) -> Iterator[Case]:
    x, y = (_whole((size,), INTEGERS[dtype], seed) for seed in (1, 2))
    for name in ("add", "mul", "bitwise_and", "bitwise_xor", "floor_divide", "remainder", "gcd"):
        yield Case(f"{name}:{dtype}", _on(getattr(torch, name), x, y), exact=True)
    for name in ("sum", "amax", "cumsum", "argmin"):
        yield Case(f"{name}:{dtype}", _on(partial(getattr(torch, name), dim=0), x), exact=True)
    if dtype != "uint8":
        index = _whole((size,), torch.int64, 3, high=max(2, min(size, 7)))
        zeros = torch.zeros(7, dtype=INTEGERS[dtype])
        yield Case(
            f"index_add:{dtype}",
            _on(lambda o, i, v: o.index_add(0, i, v), zeros, index, x),
            exact=True,
        )


# ---- masks ----


def _masks(size: int) -> Iterator[Case]:
    """Of `size` elements, and where that is many, of so many that their counts are divided, too."""
    for n in (size,) if size < CHUNK else (size, CHUNK * CHUNK + 1):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[torch.tensor([0, n // 3, n - 2, n - 1])] = True
        yield Case(f"nonzero/{n}:bool", _on(torch.nonzero, mask), exact=True)


# ---- random numbers: the drivers must agree to the last bit ----

DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform_": lambda x: x.uniform_(-2, 5),
    "normal_": lambda x: x.normal_(1, 3),
    "exponential_": lambda x: x.exponential_(1.5),
    "log_normal_": lambda x: x.log_normal_(),
    "cauchy_": lambda x: x.cauchy_(),
    "geometric_": lambda x: x.geometric_(0.25),
    "bernoulli_": lambda x: x.bernoulli_(0.3),
    "random_": lambda x: x.random_(0, 100),
    "dropout": lambda x: functional.dropout(x.fill_(1), 0.4),
}
WHOLE_DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "random_": lambda x: x.random_(),
    "random_/small": lambda x: x.random_(-3, 10),
    "random_/large": lambda x: x.random_(0, 1 << 40),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "randperm": lambda x: torch.randperm(min(x.numel(), 5000), device=x.device),
}


def _random(dtype: str, size: int) -> Iterator[Case]:
    for name, draw in DRAWS.items():
        yield Case(f"random/{name}:{dtype}", _drawn(draw, FLOATS[dtype], size), exact=True)


def _random_integers(size: int) -> Iterator[Case]:
    for name, draw in WHOLE_DRAWS.items():
        yield Case(f"random/{name}:int64", _drawn(draw, torch.int64, size), exact=True)


def _drawn(draw: Callable[[Tensor], Tensor], dtype: torch.dtype, size: int) -> Compute:
    """Two draws, of odd and of single size, and the state that they leave."""

    def compute(device: torch.device) -> tuple[Tensor, ...]:
        module = torch.get_device_module(device)
        module.manual_seed(20)
        shapes = (size | 1, 1)
        drawn = [draw(torch.empty(shape, dtype=dtype, device=device)) for shape in shapes]
        return (*drawn, module.get_rng_state(device))

    return compute


def _on(function: Callable[..., Tensor | Iterable[Tensor]], *sources: Tensor) -> Compute:
    def compute(device: torch.device) -> tuple[Tensor, ...]:
        found = function(*(source.to(device) for source in sources))
        return (found,) if isinstance(found, Tensor) else tuple(found)

    return compute
