# SPDX-License-Identifier: BSD-3-Clause
"""Operators on random shapes and layouts: permuted, sliced, repeated, with an offset, large, empty.

Elements are small whole numbers, so that every result is exact in every data type and order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check

ROUNDS = 24
#: Sizes of a dimension: small ones, and on both sides of what vectors and blocks of threads take.
LENGTHS = (1, 2, 3, 5, 8, 17, 33, 65, 130, 257)
#: At most so many elements of a shape; one shape in several has nearly as many.
FEW, MANY = 600, 60_000

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_NUMBERS = (*_FLOATS[:2], *_INTEGERS)


class _Layout(NamedTuple):
    """How an operand is a view of memory: the same for the CPU and for the device."""

    base: tuple[int, ...]
    order: tuple[int, ...]
    parts: tuple[slice, ...]
    shape: tuple[int, ...]

    def of(self, memory: Tensor) -> Tensor:
        return memory.permute(self.order)[self.parts].expand(self.shape)


class _Operand(NamedTuple):
    """One operand on the host and on the device."""

    host: Tensor
    device: Tensor


class _Draw:
    """What a check draws; the same for the same seed."""

    def __init__(self, dev: Device, seed: int) -> None:
        self._dev, self.random = dev, random.Random(seed)

    def dtype(self, among: Sequence[torch.dtype]) -> torch.dtype:
        present = set(self._dev.dtypes())
        return self.random.choice([dtype for dtype in among if dtype in present])

    def shape(self, least: int = 0, most: int = 4, *, empty: bool = True) -> tuple[int, ...]:
        """Of at least `least` and at most `most` dimensions."""
        limit = MANY if self.random.random() < 0.2 else FEW
        sizes = []
        for _ in range(self.random.randint(least, most)):
            fitting = [n for n in LENGTHS if n <= limit]
            sizes.append(self.random.choice(fitting))
            limit //= sizes[-1]
        if empty and sizes and self.random.random() < 0.05:
            sizes[self.random.randrange(len(sizes))] = 0
        self.random.shuffle(sizes)
        return tuple(sizes)

    def layout(self, shape: tuple[int, ...], *, repeated: bool = False) -> _Layout:
        """A view with this shape; `repeated` dimensions have one element in memory."""
        order = [*range(len(shape))]
        if self.random.random() < 0.6:
            self.random.shuffle(order)
        sizes, parts = [0] * len(shape), []
        for dim, length in enumerate(shape):
            once = repeated and length > 1 and self.random.random() < 0.25
            step = self.random.choice((1, 1, 1, 2, 3))
            before, after = self.random.choice(((0, 0), (0, 0), (1, 2), (3, 0)))
            stored = 1 if once else length
            end = before + max(0, (stored - 1) * step + 1 if stored else 0)
            sizes[order[dim]] = end + after
            parts.append(slice(before, end, step))
        return _Layout(tuple(sizes), tuple(order), tuple(parts), shape)

    def operand(
        self, shape: tuple[int, ...], dtype: torch.dtype, *, repeated: bool = True
    ) -> _Operand:
        """Whole numbers from -8 to 8, or from 0 to 16."""
        layout = self.layout(shape, repeated=repeated)
        generator = torch.Generator().manual_seed(self.random.randrange(1 << 30))
        least = -8 if dtype.is_signed else 0
        memory = torch.randint(least, least + 17, layout.base, generator=generator).to(dtype)
        return _Operand(layout.of(memory), layout.of(memory.to(self._dev.device())))

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        sizes = [1 if self.random.random() < 0.2 else n for n in shape]
        return tuple(sizes[self.random.choice((0, 0, 0, len(sizes) // 2)) :])

    def dim(self, shape: tuple[int, ...]) -> int:
        return self.random.randrange(-len(shape), len(shape))

    def index(self, shape: tuple[int, ...], below: int) -> _Operand:
        """Indices of a dimension of `below` elements."""
        layout = self.layout(shape, repeated=True)
        generator = torch.Generator().manual_seed(self.random.randrange(1 << 30))
        memory = torch.randint(0, max(below, 1), layout.base, generator=generator)
        return _Operand(layout.of(memory), layout.of(memory.to(self._dev.device())))


def _same(operands: Sequence[_Operand], found: Tensor, wanted: Tensor, what: str = "") -> None:
    """The same elements; a failure names the layout of the operands."""
    given = [(tuple(x.host.shape), x.host.stride(), x.host.dtype) for x in operands]
    context = f"{what and ' ' + what}, of operands (shape, strides, dtype) {given}"
    assert found.dtype == wanted.dtype, f"{found.dtype} instead of {wanted.dtype}{context}"
    assert found.shape == wanted.shape, f"{found.shape} instead of {wanted.shape}{context}"
    host = found.detach().cpu()
    wrong = int((host != wanted.detach()).sum())
    assert not wrong, f"{wrong} of {host.numel()} elements are wrong{context}"


def _on_both(operands: Sequence[_Operand], call: Callable[..., Tensor], what: str = "") -> None:
    wanted = call(*(x.host for x in operands))
    _same(operands, call(*(x.device for x in operands)), wanted, what)


# ---- element by element ------------------------------------------------------------------------

#: Operators of one, two or three operands, the number of them, and the data types.
_ELEMENTWISE: dict[str, tuple[Callable[..., Tensor], int, Sequence[torch.dtype]]] = {
    "neg": (torch.neg, 1, (*_FLOATS, *_INTEGERS[:4])),
    "abs": (torch.abs, 1, (*_FLOATS, *_INTEGERS)),
    "relu": (torch.relu, 1, (*_FLOATS, *_INTEGERS)),
    "sign": (torch.sign, 1, (*_FLOATS, *_INTEGERS)),
    "square": (torch.square, 1, _NUMBERS[:5]),
    "floor": (torch.floor, 1, _FLOATS),
    "isnan": (torch.isnan, 1, _FLOATS),
    "logical_not": (torch.logical_not, 1, (*_FLOATS, *_INTEGERS)),
    "bitwise_not": (torch.bitwise_not, 1, _INTEGERS),
    "add": (torch.add, 2, (*_FLOATS, *_INTEGERS)),
    "sub": (torch.sub, 2, (*_FLOATS, *_INTEGERS)),
    "mul": (torch.mul, 2, _NUMBERS[:5]),
    "maximum": (torch.maximum, 2, (*_FLOATS, *_INTEGERS)),
    "eq": (torch.eq, 2, (*_FLOATS, *_INTEGERS)),
    "lt": (torch.lt, 2, (*_FLOATS, *_INTEGERS)),
    "bitwise_and": (torch.bitwise_and, 2, _INTEGERS),
    "logical_xor": (torch.logical_xor, 2, (*_FLOATS, *_INTEGERS)),
    "copysign": (torch.copysign, 2, _FLOATS),
    "clamp": (torch.clamp, 3, (*_FLOATS[:2], *_INTEGERS)),
    "where": (lambda x, y, z: torch.where(x > 0, y, z), 3, (*_FLOATS, *_INTEGERS)),
    "addcmul": (torch.addcmul, 3, _NUMBERS[:5]),
    "lerp": (torch.lerp, 3, _FLOATS[:2]),
}


@check("layout/elementwise", "LAYOUT-001", cases=_ELEMENTWISE)
def operators_take_operands_of_any_layout(dev: Device, case: str) -> None:
    """Operands that broadcast, each of a layout of its own, give what they give on the CPU."""
    call, count, dtypes = _ELEMENTWISE[case]
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(), draw.dtype(dtypes)
        shapes = [shape, *(draw.broadcast(shape) for _ in range(count - 1))]
        draw.random.shuffle(shapes)
        _on_both([draw.operand(each, dtype) for each in shapes], call)


_OUT = {name: getattr(torch, name) for name in ("neg", "abs", "add", "mul", "maximum", "addcmul")}


@check("layout/out", "LAYOUT-002", cases=_OUT)
def results_are_written_to_any_layout(dev: Device, case: str) -> None:
    """`out` of any layout takes the result, and the memory between its elements stays."""
    _, count, dtypes = _ELEMENTWISE[case]
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(empty=False), draw.dtype(dtypes)
        shapes = [shape, *(draw.broadcast(shape) for _ in range(count - 1))]
        operands = [draw.operand(each, dtype) for each in shapes]
        layout = draw.layout(shape)
        host = torch.full(layout.base, 99, dtype=dtype)
        device = host.to(dev.device())
        _OUT[case](*(x.host for x in operands), out=layout.of(host))
        _OUT[case](*(x.device for x in operands), out=layout.of(device))
        _same(operands, device, host, f"in the memory of out, {layout}")


_CHANGED: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(y.remainder(3)),
    "copy_": lambda x, y: x.copy_(y),
    "fill_": lambda x, y: x.fill_(3),
    "zero_": lambda x, y: x.zero_(),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 2, 5),
    "clamp_": lambda x, y: x.clamp_(-2, 2),
}


@check("layout/in_place", "LAYOUT-002", cases=_CHANGED)
def operands_of_any_layout_are_changed(dev: Device, case: str) -> None:
    """A view of any layout is changed in place, and the memory between its elements stays."""
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(), draw.dtype((*_FLOATS[:2], *_INTEGERS[:3]))
        operand = draw.operand(draw.broadcast(shape), dtype)
        layout = draw.layout(shape)
        host = torch.full(layout.base, 1, dtype=dtype)
        device = host.to(dev.device())
        _CHANGED[case](layout.of(host), operand.host)
        _CHANGED[case](layout.of(device), operand.device)
        _same([operand], device, host, f"in the memory of the changed view, {layout}")


# ---- reductions and scans ----------------------------------------------------------------------

_REDUCTIONS: dict[str, tuple[Callable[..., Tensor], Sequence[torch.dtype]]] = {
    "sum": (torch.sum, _NUMBERS),
    "amax": (torch.amax, _NUMBERS),
    "amin": (torch.amin, _NUMBERS),
    "any": (torch.any, _NUMBERS),
    "all": (torch.all, _NUMBERS),
    "count_nonzero": (lambda x, d, k: torch.count_nonzero(x, d), _NUMBERS),
    "max": (lambda x, d, k: torch.max(x, d, k)[0], _NUMBERS),
    "sort": (lambda x, d, k: torch.sort(x, d, k)[0], _NUMBERS),
    "sort_stable": (lambda x, d, k: torch.sort(x, dim=d, stable=True)[1], _NUMBERS),
    "cumsum": (lambda x, d, k: torch.cumsum(x, d), _NUMBERS),
    "cummax": (lambda x, d, k: torch.cummax(x, d)[0], _NUMBERS),
    "norm_1": (lambda x, d, k: torch.linalg.vector_norm(x, 1, d, k), _FLOATS[:2]),
    "logcumsumexp_0": (lambda x, d, k: (x * 0).logcumsumexp(d).exp().round(), _FLOATS[1:2]),
    "topk": (lambda x, d, k: torch.topk(x, 1, d, k)[0], _NUMBERS),
}


@check("layout/reduction", "LAYOUT-003", cases=_REDUCTIONS)
def reductions_take_operands_of_any_layout(dev: Device, case: str) -> None:
    """Along any dimension of a view of any layout, what the CPU gives."""
    call, dtypes = _REDUCTIONS[case]
    if not set(dtypes) & set(dev.dtypes()):
        dev.unsupported(f"the device has none of {dtypes}")
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(1, empty=False), draw.dtype(dtypes)
        dim, keep = draw.dim(shape), draw.random.random() < 0.5
        operand = draw.operand(shape, dtype)
        what = f"along {dim} with keepdim={keep}"
        _on_both([operand], lambda x, d=dim, k=keep: call(x, d, k), what)


@check("layout/reduction_dims", "LAYOUT-003", cases=("sum", "amax", "any", "norm_1"))
def reductions_take_several_dimensions(dev: Device, case: str) -> None:
    """Along several dimensions of a view of any layout, and along all, what the CPU gives."""
    call, dtypes = _REDUCTIONS[case]
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(1, 5, empty=False), draw.dtype(dtypes)
        dims = tuple(draw.random.sample(range(len(shape)), draw.random.randint(1, len(shape))))
        operand = draw.operand(shape, dtype)
        keep = draw.random.random() < 0.5
        _on_both([operand], lambda x, d=dims, k=keep: call(x, d, k), f"along {dims}")


# ---- elements that move ------------------------------------------------------------------------


def _cast(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    signed = [*_FLOATS, *_INTEGERS[:4], torch.bool]  # a negative number has no value in others
    dtype = draw.dtype(signed if x.dtype.is_signed else [*signed, torch.uint8])
    return lambda x: x.to(dtype)


def _contiguous(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: x.contiguous()


def _roll(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    dim, by = draw.dim(shape), draw.random.randint(-300, 300)
    return lambda x: x.roll(by, dim)


def _flip(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    dims = draw.random.sample(range(len(shape)), draw.random.randint(1, len(shape)))
    return lambda x: x.flip(dims)


def _repeat(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    times = [draw.random.randint(1, 2) for _ in shape]
    return lambda x: x.repeat(times)


def _pad(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    margins = [draw.random.randint(-1, 3) if min(shape) > 2 else 1 for _ in range(2 * len(shape))]
    return lambda x: functional.pad(x, margins, value=4)


def _triangle(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    diagonal, call = draw.random.randint(-4, 4), draw.random.choice((torch.tril, torch.triu))
    return lambda x: call(x if x.dim() > 1 else x[None], diagonal)


def _halves(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    dim = draw.dim(shape)
    return lambda x: torch.cat([x.narrow(dim, 0, x.shape[dim] // 2), x, x + 1], dim)


def _stack(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    dim = draw.dim(shape)
    return lambda x: torch.stack([x, x + 1], dim)


def _diagonal(draw: _Draw, shape: tuple[int, ...], x: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.diag_embed(x.diagonal() if x.dim() > 1 else x)


_MOVES = {
    "cast": _cast,
    "contiguous": _contiguous,
    "roll": _roll,
    "flip": _flip,
    "repeat": _repeat,
    "pad": _pad,
    "triangle": _triangle,
    "cat": _halves,
    "stack": _stack,
    "diagonal": _diagonal,
}


@check("layout/moved", "LAYOUT-004", cases=_MOVES)
def elements_of_any_layout_are_moved(dev: Device, case: str) -> None:
    """Elements of a view of any layout arrive where the CPU puts them."""
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(1, empty=False), draw.dtype((*_FLOATS, *_INTEGERS))
        operand = draw.operand(shape, dtype)
        _on_both([operand], _MOVES[case](draw, shape, operand.host))


_INDEXED: dict[str, Callable[[Tensor, int, Tensor, Tensor], Tensor]] = {
    "index_select": lambda x, dim, i, y: x.index_select(dim, i),
    "index": lambda x, dim, i, y: x[(slice(None),) * dim + (i,)],
    "index_add": lambda x, dim, i, y: x.index_add(dim, i, y),
    "index_fill": lambda x, dim, i, y: x.index_fill(dim, i, 3),
    "index_copy": lambda x, dim, i, y: x.index_copy(dim, i, torch.ones_like(y)),
    "index_put": lambda x, dim, i, y: torch.ops.aten.index_put(x, [None] * dim + [i], y, True),
}


@check("layout/indexed", "LAYOUT-005", cases=_INDEXED)
def indices_of_any_layout_select(dev: Device, case: str) -> None:
    """Indices, elements and what is added to them have layouts of their own."""
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(1, empty=False), draw.dtype((*_FLOATS[:2], *_INTEGERS[:2]))
        dim = draw.random.randrange(len(shape))
        count = draw.random.choice((1, 4, 40, 300))
        if count * torch.Size(shape).numel() > 10 * MANY * shape[dim]:
            count = 4
        index = draw.index((count,), shape[dim])
        source = (*shape[:dim], count, *shape[dim + 1 :])
        operands = [draw.operand(shape, dtype), index, draw.operand(source, dtype)]
        _on_both(operands, lambda x, i, y, d=dim: _INDEXED[case](x, d, i, y), f"along {dim}")


_GATHERED: dict[str, Callable[[Tensor, int, Tensor, Tensor], Tensor]] = {
    "gather": lambda x, dim, i, y: x.gather(dim, i),
    "scatter_add": lambda x, dim, i, y: x.scatter_add(dim, i, y),
    "scatter_number": lambda x, dim, i, y: x.scatter(dim, i, 3),
    "scatter_amax": lambda x, dim, i, y: x.scatter_reduce(dim, i, y, "amax"),
}


@check("layout/gathered", "LAYOUT-005", cases=_GATHERED)
def indices_of_each_element_have_any_layout(dev: Device, case: str) -> None:
    """gather and scatter with indices of a shape and layout of their own."""
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape, dtype = draw.shape(1, empty=False), draw.dtype((*_FLOATS[:2], *_INTEGERS[:2]))
        dim = draw.random.randrange(len(shape))
        smaller = tuple(draw.random.randint(1, n) for n in shape)
        operands = [
            draw.operand(shape, dtype),
            draw.index(smaller, shape[dim]),
            draw.operand(smaller, dtype),
        ]
        _on_both(operands, lambda x, i, y, d=dim: _GATHERED[case](x, d, i, y), f"along {dim}")


# ---- products and windows ----------------------------------------------------------------------


@check("layout/product", "LAYOUT-006", dtypes=("float32", "float64", "bfloat16", "float16"))
def factors_of_any_layout_are_multiplied(dev: Device, dtype: torch.dtype) -> None:
    """Matrices and batches of them, transposed, sliced and repeated, give exact products."""
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        m, n = (draw.random.choice(LENGTHS[:8]) for _ in range(2))
        # Of 16 bits, sums of more than this many products of 64 are not exact.
        k = draw.random.choice(LENGTHS[: 8 if dtype.itemsize > 2 else 2])
        batch = draw.random.choice(((), (), (3,), (2, 3)))
        factors = [
            draw.operand((*batch, m, k), dtype),
            draw.operand((*draw.broadcast(batch), k, n), dtype),
        ]
        _on_both(factors, torch.matmul)


def _image(draw: _Draw, dims: int) -> tuple[int, ...]:
    sizes = [draw.random.choice((4, 5, 9, 16)) for _ in range(dims)]
    return (draw.random.randint(1, 3), draw.random.choice((1, 2, 4)), *sizes)


_WINDOWS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "max_pool1d": (1, lambda x: functional.max_pool1d(x, 3, 2, 1)),
    "max_pool2d": (2, lambda x: functional.max_pool2d(x, (2, 3), (1, 2), 1)),
    "max_pool3d": (3, lambda x: functional.max_pool3d(x, 2, 1)),
    "avg_pool1d": (1, lambda x: functional.avg_pool1d(x, 4, 1) * 4),
    "avg_pool2d": (2, lambda x: functional.avg_pool2d(x, 2, (1, 2)) * 4),
    "nearest": (2, lambda x: functional.interpolate(x, scale_factor=2)),
    "unfold": (2, lambda x: functional.unfold(x, (3, 2), padding=1, stride=(2, 1))),
    "reflect": (2, lambda x: functional.pad(x, (1, 2, 3, 0), "reflect")),
    "replicate": (3, lambda x: functional.pad(x, (1, 2, 3, 0, 2, 1), "replicate")),
    "pixel_shuffle": (2, lambda x: functional.pixel_shuffle(x.repeat(1, 4, 1, 1), 2)),
}


@check("layout/window", "LAYOUT-006", cases=_WINDOWS)
def images_of_any_layout_have_windows(dev: Device, case: str) -> None:
    """Images of any layout are pooled, resized and padded as on the CPU."""
    dims, call = _WINDOWS[case]
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        _on_both([draw.operand(_image(draw, dims), torch.float32)], call)


@check("layout/convolution", "LAYOUT-006", cases=("1", "2", "3"))
def images_of_any_layout_are_convolved(dev: Device, case: str) -> None:
    """Images, weights and biases of any layout give exact convolutions."""
    dims = int(case)
    call = (functional.conv1d, functional.conv2d, functional.conv3d)[dims - 1]
    for seed in range(ROUNDS):
        draw = _Draw(dev, seed)
        shape = _image(draw, dims)
        groups = draw.random.choice((1, shape[1]))
        kernel = tuple(draw.random.randint(1, 3) for _ in range(dims))
        outputs = groups * draw.random.randint(1, 3)
        options = {
            "stride": draw.random.randint(1, 2),
            "padding": draw.random.randint(0, 2),
            "groups": groups,
        }
        operands = [
            draw.operand(shape, torch.float32),
            draw.operand((outputs, shape[1] // groups, *kernel), torch.float32),
            draw.operand((outputs,), torch.float32),
        ]
        _on_both(operands, lambda x, w, b, o=options: call(x, w, b, **o), f"with {options}")


# ---- gradients ---------------------------------------------------------------------------------

_DIFFERENTIATED: dict[str, Callable[[_Draw, tuple[int, ...]], Callable[[Tensor], Tensor]]] = {
    "mul": lambda draw, shape: lambda x: x * x,
    "sum": lambda draw, shape: _along(draw, shape, torch.sum),
    "cumsum": lambda draw, shape: _along(draw, shape, torch.cumsum),
    "relu": lambda draw, shape: torch.relu,
    "where": lambda draw, shape: lambda x: torch.where(x.detach() > 0, x, x * 3),
    "sort": lambda draw, shape: lambda x: torch.sort(x, dim=-1, stable=True)[0],
    "flip": lambda draw, shape: _flip(draw, shape, torch.empty(0)),
    "repeat": lambda draw, shape: _repeat(draw, shape, torch.empty(0)),
    "cat": lambda draw, shape: _halves(draw, shape, torch.empty(0)),
    "transposed_product": lambda draw, shape: lambda x: x @ x.mT if x.dim() > 1 else x * x,
    "expand": lambda draw, shape: lambda x: x.expand(3, *x.shape) * 2,
    "slice": lambda draw, shape: lambda x: x[..., ::2] * 2,
}


def _along(
    draw: _Draw, shape: tuple[int, ...], call: Callable[[Tensor, int], Tensor]
) -> Callable[[Tensor], Tensor]:
    dim = draw.dim(shape)
    return lambda x: call(x, dim)


def _gradient(x: Tensor, call: Callable[[Tensor], Tensor], upstream: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(call(leaf), leaf, upstream)
    return found


@check("layout/gradient", "LAYOUT-007", cases=_DIFFERENTIATED)
def gradients_flow_through_any_layout(dev: Device, case: str) -> None:
    """Operands and incoming gradients of any layout give exact gradients."""
    for seed in range(ROUNDS // 2):
        draw = _Draw(dev, seed)
        shape = draw.shape(1, 3, empty=False)
        operand = draw.operand(shape, torch.float32)
        call = _DIFFERENTIATED[case](draw, shape)
        upstream = draw.operand(tuple(call(operand.host).shape), torch.float32)
        found = _gradient(operand.device, call, upstream.device)
        _same([operand, upstream], found, _gradient(operand.host, call, upstream.host))
