# SPDX-License-Identifier: BSD-3-Clause
"""Factory functions: where a new tensor lives, what it holds, and which data type it has."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import raised
from conformance.programs import deterministic
from conformance.tensors import DTYPES, ramp

Factory = Callable[..., torch.Tensor]

_ANY = "all"
_REAL = "real"
_FLOATING = "floating"
_INTEGRAL = "integral"

#: name -> (factory taking device= and dtype=, the kind of data types it is defined for).
VALUED: dict[str, tuple[Factory, str]] = {
    "zeros": (lambda **kw: torch.zeros(2, 3, **kw), _ANY),
    "ones": (lambda **kw: torch.ones(2, 3, **kw), _ANY),
    "full": (lambda **kw: torch.full((2, 3), 7, **kw), _ANY),
    "arange": (lambda **kw: torch.arange(1, 10, 2, **kw), _REAL),
    "arange_step": (lambda **kw: torch.arange(2, -1, -0.5, **kw), _FLOATING),
    # 2.1 / 0.3 is more than 7 in double precision only.
    "arange_fraction": (lambda **kw: torch.arange(0, 2.1, 0.3, **kw), _FLOATING),
    "linspace": (lambda **kw: torch.linspace(0, 10, 5, **kw), _REAL),
    "logspace": (lambda **kw: torch.logspace(0, 2, 3, **kw), _FLOATING),
    "eye": (lambda **kw: torch.eye(3, 4, **kw), _ANY),
    "tensor": (lambda **kw: torch.tensor([[0, 1, 2], [3, 4, 5]], **kw), _ANY),
    "as_tensor": (lambda **kw: torch.as_tensor([[0, 1], [2, 3]], **kw), _ANY),
    "asarray": (lambda **kw: torch.asarray([0, 1, 2], **kw), _ANY),
    "scalar_tensor": (lambda **kw: torch.scalar_tensor(3, **kw), _ANY),
    "tril_indices": (lambda **kw: torch.tril_indices(4, 3, 1, **kw), _INTEGRAL),
    "triu_indices": (lambda **kw: torch.triu_indices(4, 3, -1, **kw), _INTEGRAL),
    "hann_window": (lambda **kw: torch.hann_window(8, **kw), _FLOATING),
    "hamming_window": (lambda **kw: torch.hamming_window(8, **kw), _FLOATING),
    "blackman_window": (lambda **kw: torch.blackman_window(8, **kw), _FLOATING),
    "bartlett_window": (lambda **kw: torch.bartlett_window(8, **kw), _FLOATING),
    "kaiser_window": (lambda **kw: torch.kaiser_window(8, **kw), _FLOATING),
    "fftfreq": (lambda **kw: torch.fft.fftfreq(8, **kw), _FLOATING),
    "rfftfreq": (lambda **kw: torch.fft.rfftfreq(8, **kw), _FLOATING),
}

#: Factories whose values are not defined, only where and what they are.
UNVALUED: dict[str, Factory] = {
    "empty": lambda **kw: torch.empty(2, 3, **kw),
    "empty_strided": lambda **kw: torch.empty_strided((2, 3), (1, 2), **kw),
    "empty_permuted": lambda **kw: torch.empty_permuted((2, 3, 4), (0, 2, 1), **kw),
    "rand": lambda **kw: torch.rand(2, 3, **kw),
    "randn": lambda **kw: torch.randn(2, 3, **kw),
    "randint": lambda **kw: torch.randint(0, 9, (2, 3), **kw),
    "randperm": lambda **kw: torch.randperm(6, **kw),
}

FACTORIES: dict[str, Factory] = {name: f for name, (f, _) in VALUED.items()} | UNVALUED

#: Factories that take their device from another tensor.
LIKE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full_like": lambda x: torch.full_like(x, 3),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 0, 9),
    "new_empty": lambda x: x.new_empty(4, 6),
    "new_empty_strided": lambda x: x.new_empty_strided((4, 6), (6, 1)),
    "new_zeros": lambda x: x.new_zeros(4, 6),
    "new_ones": lambda x: x.new_ones(4, 6),
    "new_full": lambda x: x.new_full((4, 6), 3),
    "new_tensor": lambda x: x.new_tensor([[3.0] * 6] * 4),
}

_DEFINED_LIKE = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")


def _kinds(dev: Device, kind: str) -> list[torch.dtype]:
    """The data types of a kind that the backend supports."""
    if kind == _REAL:
        return [*dev.dtypes(_FLOATING), *dev.dtypes(_INTEGRAL)]
    if kind == _INTEGRAL:
        return [torch.int32, torch.int64]
    return list(dev.dtypes(kind))


@contextmanager
def _default_device(device: Any) -> Iterator[None]:
    before = torch.get_default_device()
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None if before.type == "cpu" else before)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


# ---- where and what --------------------------------------------------------------------------


@check("factory/value", "FACT-001", cases=tuple(VALUED))
def factories_agree_with_the_cpu(dev: Device, case: str) -> None:
    """The values of a factory equal the CPU's in every data type it is defined for."""
    factory, kind = VALUED[case]
    for dtype in _kinds(dev, kind):
        actual = factory(device=dev.device(), dtype=dtype)
        assert actual.device.type == dev.type, dtype
        expected = factory(dtype=dtype)
        if not (case.endswith("_window") and _as_near(actual, expected, factory)):
            dev.assert_close(actual, expected)


def _as_near(actual: torch.Tensor, expected: torch.Tensor, factory: Factory) -> bool:
    """Whether a device's 16-bit window is no further from double precision than the CPU's.

    A window is composed of operators that round in turn. The CPU rounds the Python number that it
    adds, 0.42 or 0.54, to 16 bits before; a device that keeps it in single precision does better.
    """
    if expected.dtype.itemsize != 2 or actual.shape != expected.shape:
        return False
    exact = factory(dtype=torch.float64)
    ours, theirs = ((window.double() - exact).abs().amax() for window in (actual.cpu(), expected))
    return bool(ours <= theirs)


@check("factory/dtype_inferred", "FACT-002", cases=tuple(FACTORIES))
def the_inferred_dtype_is_the_cpus(dev: Device, case: str) -> None:
    """Without dtype= the data type, shape and strides are those of the same call on the CPU."""
    expected = FACTORIES[case]()
    actual = FACTORIES[case](device=dev.device())
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert actual.layout == torch.strided


@check("factory/placement", "FACT-003", cases=tuple(FACTORIES))
def every_way_to_name_the_device_works(dev: Device, case: str) -> None:
    """A string, a torch.device, a context and the default device all place the tensor."""
    factory = FACTORIES[case]
    home = torch.empty(0, device=dev.device()).device
    assert factory(device=dev.type).device == home
    assert factory(device=torch.device(dev.type)).device == home
    assert factory(device=str(home)).device == home
    with torch.device(dev.type):
        assert factory().device == home
    with _default_device(dev.type):
        assert factory().device == home
    assert factory().device.type == "cpu", "the default device was not restored"


@check("factory/placement_index", "FACT-003", needs=("accelerator",), cases=tuple(FACTORIES))
def an_integer_means_an_accelerator(dev: Device, case: str) -> None:
    """device=0 is device 0 of the current accelerator; a device of type and index works."""
    if torch.accelerator.current_accelerator() != torch.device(dev.type):
        dev.unsupported("another device type is the current accelerator")
    assert FACTORIES[case](device=0).device == dev.device(0)
    assert FACTORIES[case](device=torch.device(dev.type, 0)).device == dev.device(0)
    assert FACTORIES[case](device=f"{dev.type}:0").device == dev.device(0)


@check("factory/second_device", "FACT-004", needs=("multi_device",), cases=tuple(FACTORIES))
def factories_reach_another_device(dev: Device, case: str) -> None:
    """A tensor asked for on device 1 lives there, without changing the current device."""
    before = torch.accelerator.current_device_index()
    x = FACTORIES[case](device=dev.device(1))
    assert x.device == dev.device(1)
    assert torch.accelerator.current_device_index() == before
    assert x.cpu().shape == x.shape
    with torch.device(dev.device(1)):
        assert FACTORIES[case]().device == dev.device(1)


@check("factory/current_device", "FACT-004", needs=("multi_device", "device_guard"))
def no_index_means_the_current_device(dev: Device) -> None:
    """A device without an index is the current device at the time of the call."""
    before = torch.accelerator.current_device_index()
    try:
        for index in (1, 0, 1):
            torch.accelerator.set_device_index(index)
            assert torch.empty(2, device=dev.type).device == dev.device(index)
            assert torch.tensor([1.0], device=dev.type).device == dev.device(index)
    finally:
        torch.accelerator.set_device_index(before)


@check("factory/bad_index", "FACT-005", needs=("accelerator",), cases=("count", "large", "integer"))
def a_device_that_does_not_exist_is_refused(dev: Device, case: str) -> None:
    """An index past the last device raises; it never becomes another device."""
    index = {"count": dev.count, "large": 100, "integer": dev.count}[case]
    if index > 127:
        dev.unsupported("a device index cannot be larger than 127")
    device: Any = index if case == "integer" else f"{dev.type}:{index}"
    for work in (
        lambda: torch.empty(2, device=device),
        lambda: torch.zeros(2, device=device),
        lambda: torch.zeros(2).to(device),
    ):
        assert isinstance(raised(work), (RuntimeError, AssertionError, ValueError))


@check("factory/like", "FACT-006", cases=tuple(LIKE))
def like_factories_follow_their_tensor(dev: Device, case: str) -> None:
    """*_like and new_* take device, data type and shape from the tensor."""
    source = ramp((4, 6))
    actual = LIKE[case](source.to(dev.device()))
    expected = LIKE[case](source)
    assert actual.device.type == dev.type
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.stride() == expected.stride()
    if case in (*_DEFINED_LIKE, "new_tensor"):
        dev.assert_equal(actual, expected)


@check("factory/like_dtype", "FACT-006", cases=_DEFINED_LIKE, dtypes=DTYPES)
def like_factories_work_in_every_dtype(dev: Device, case: str, dtype: torch.dtype) -> None:
    """*_like and new_* hold the right values in every data type."""
    source = ramp((4, 6), dtype)
    dev.assert_equal(LIKE[case](source.to(dev.device())), LIKE[case](source))


@check(
    "factory/like_strides", "FACT-006", cases=("transposed", "channels_last", "sliced", "expanded")
)
def like_factories_preserve_dense_strides(dev: Device, case: str) -> None:
    """empty_like keeps the strides of a dense tensor and chooses the CPU's for any other."""
    source = ramp((2, 3, 4, 5))
    views: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "transposed": lambda x: x.transpose(1, 3),
        "channels_last": lambda x: x.permute(0, 3, 1, 2),
        "sliced": lambda x: x[..., ::2],
        "expanded": lambda x: x[:, :1].expand(2, 6, 4, 5),
    }
    expected = torch.zeros_like(views[case](source))
    actual = torch.zeros_like(views[case](source.to(dev.device())))
    assert actual.stride() == expected.stride()
    dev.assert_equal(actual, expected)


@check(
    "factory/like_other_device", "FACT-006", needs=("accelerator",), cases=("to_cpu", "to_device")
)
def like_factories_take_another_device(dev: Device, case: str) -> None:
    """device= of a *_like or new_* factory overrides the tensor's device."""
    there = torch.device("cpu") if case == "to_cpu" else dev.device()
    source = ramp((4, 6)).to(dev.device() if case == "to_cpu" else "cpu")
    for made in (torch.zeros_like(source, device=there), source.new_zeros(4, 6, device=there)):
        assert made.device.type == there.type
        dev.assert_equal(made, torch.zeros(4, 6))


@check(
    "factory/strided", "FACT-007", cases=("padded", "transposed", "broadcast", "empty", "zero_dim")
)
def empty_strided_has_the_asked_strides(dev: Device, case: str) -> None:
    """empty_strided gives exactly the asked strides and enough memory to write all elements."""
    size, stride = {
        "padded": ((3, 4), (8, 1)),
        "transposed": ((3, 4), (1, 3)),
        "broadcast": ((3, 4), (0, 1)),
        "empty": ((0, 4), (4, 1)),
        "zero_dim": ((), ()),
    }[case]
    x = torch.empty_strided(size, stride, device=dev.device())
    assert (tuple(x.shape), x.stride()) == (size, stride)
    needed = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    assert x.untyped_storage().nbytes() >= 4 * needed
    if case != "broadcast":
        dev.assert_equal(x.fill_(5), torch.full(size, 5.0))


@check("factory/memory_format", "FACT-007", cases=("channels_last", "channels_last_3d", "permuted"))
def memory_formats_are_honoured(dev: Device, case: str) -> None:
    """empty with a memory format, and empty_permuted, give the physical layout asked for."""
    if case == "permuted":
        made = torch.empty_permuted((2, 3, 4), (2, 0, 1), device=dev.device())
        expected = torch.empty_permuted((2, 3, 4), (2, 0, 1))
    else:
        shape = (2, 3, 4, 5) if case == "channels_last" else (2, 3, 4, 5, 6)
        form = getattr(torch, case)
        made = torch.empty(shape, memory_format=form, device=dev.device())
        expected = torch.empty(shape, memory_format=form)
        assert made.is_contiguous(memory_format=form)
    assert made.stride() == expected.stride()


@check(
    "factory/shapes",
    "FACT-008",
    cases=("zero_dim", "empty", "empty_inner", "one", "rank_ten", "arange", "linspace", "eye"),
)
def unusual_shapes_are_made(dev: Device, case: str) -> None:
    """0-dim, empty and high-rank tensors are made like any other."""
    made: dict[str, Callable[[Any], torch.Tensor]] = {
        "zero_dim": lambda d: torch.full((), 3.0, device=d),
        "empty": lambda d: torch.zeros(0, device=d),
        "empty_inner": lambda d: torch.ones(3, 0, 2, device=d),
        "one": lambda d: torch.ones(1, 1, device=d),
        "rank_ten": lambda d: torch.ones((1, 2) * 5, device=d),
        "arange": lambda d: torch.arange(5, 5, device=d),
        "linspace": lambda d: torch.linspace(3, 3, 1, device=d),
        "eye": lambda d: torch.eye(0, 3, device=d),
    }
    dev.assert_equal(made[case](dev.device()), made[case]("cpu"))


@check("factory/bad_size", "FACT-009", cases=("negative", "overflow", "petabytes", "strides"))
def impossible_sizes_are_refused(dev: Device, case: str) -> None:
    """Negative sizes, sizes that overflow, and sizes that no memory has raise RuntimeError."""
    works: dict[str, Callable[[], torch.Tensor]] = {
        "negative": lambda: torch.empty(-1, device=dev.device()),
        "overflow": lambda: torch.empty(2**62, 2**10, device=dev.device()),
        "petabytes": lambda: torch.empty(2**57, device=dev.device()),
        "strides": lambda: torch.empty_strided((2, 3), (-1, 1), device=dev.device()),
    }
    assert isinstance(raised(works[case]), RuntimeError)
    dev.assert_equal(torch.ones(3, device=dev.device()), torch.ones(3))


@check("factory/too_large", "FACT-009", needs=("accelerator",))
def sixty_four_tebibytes_are_refused(dev: Device) -> None:
    """An allocation far beyond any memory raises torch.OutOfMemoryError; the device lives on."""
    error = raised(lambda: torch.empty(2**46, dtype=torch.uint8, device=dev.device()))
    assert isinstance(error, torch.OutOfMemoryError)
    dev.assert_equal(torch.ones(3, device=dev.device()), torch.ones(3))


@check("factory/pin_memory", "FACT-010", needs=("accelerator",), cases=("empty", "zeros", "method"))
def device_tensors_cannot_be_pinned(dev: Device, case: str) -> None:
    """pin_memory=True with a device raises: only dense host tensors can be pinned."""
    works: dict[str, Callable[[], torch.Tensor]] = {
        "empty": lambda: torch.empty(2, device=dev.device(), pin_memory=True),
        "zeros": lambda: torch.zeros(2, device=dev.device(), pin_memory=True),
        "method": lambda: torch.zeros(2, device=dev.device()).pin_memory(),
    }
    assert isinstance(raised(works[case]), RuntimeError)


@check("factory/pinned_host", "FACT-010", needs=("pinned_memory",))
def host_factories_can_pin(dev: Device) -> None:
    """pin_memory=True on the host gives pinned memory that computes like any other."""
    x = torch.ones(5, pin_memory=True)
    assert x.is_pinned()
    assert x.device.type == "cpu"
    assert torch.equal(x + 1, torch.full((5,), 2.0))
    assert not torch.ones(5).is_pinned()
    assert torch.zeros_like(x, pin_memory=True).is_pinned()
    assert not torch.ones(2, device=dev.device()).is_pinned()


# ---- from data -------------------------------------------------------------------------------


@check(
    "factory/from_data",
    "FACT-011",
    cases=(
        "list",
        "nested",
        "tuple",
        "scalar",
        "bool",
        "complex",
        "numpy",
        "mixed",
        "empty",
        "rows",
    ),
    case_needs={"complex": "complex64", "numpy": "float64"},
)
def tensors_are_made_from_python_data(dev: Device, case: str) -> None:
    """torch.tensor infers shape and data type from Python data as on the CPU."""
    import numpy

    data: Any = {
        "list": [1, 2, 3],
        "nested": [[1.5, 2.5], [3.5, 4.5]],
        "tuple": ((1, 2), (3, 4)),
        "scalar": 2.5,
        "bool": [True, False],
        "complex": [1 + 2j, 3.0],
        "numpy": numpy.arange(6, dtype=numpy.float64).reshape(2, 3),
        "mixed": [1, 2.5, True],
        "empty": [[], []],
        "rows": [torch.tensor(1.0), torch.tensor(2.0)],
    }[case]
    dev.assert_equal(torch.tensor(data, device=dev.device()), torch.tensor(data))


@check("factory/from_device_scalars", "FACT-011")
def device_scalars_become_a_tensor(dev: Device) -> None:
    """torch.tensor of a list of 0-dim device tensors reads their values."""
    values = [torch.tensor(float(i), device=dev.device()) for i in range(3)]
    dev.assert_equal(torch.tensor(values, device=dev.device()), torch.tensor([0.0, 1.0, 2.0]))


@check("factory/as_tensor", "FACT-012", cases=("as_tensor", "asarray"))
def no_copy_is_made_when_none_is_needed(dev: Device, case: str) -> None:
    """as_tensor and asarray alias a tensor that is in place already, and copy otherwise."""
    make: Any = getattr(torch, case)
    x = ramp((3,)).to(dev.device())
    assert make(x, device=x.device).data_ptr() == x.data_ptr()
    other = make(x, dtype=torch.int32, device=x.device)
    assert other.dtype == torch.int32
    moved = make(ramp((3,)), device=dev.device())
    assert moved.device.type == dev.type
    dev.assert_equal(moved, ramp((3,)))


@check("factory/asarray_copy", "FACT-012", cases=("copy", "no_copy"))
def asarray_obeys_copy(dev: Device, case: str) -> None:
    """asarray(copy=True) never aliases; copy=False raises where a copy would be needed."""
    x = ramp((3,)).to(dev.device())
    if case == "copy":
        assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    else:
        error = raised(lambda: torch.asarray(x, dtype=torch.int64, copy=False))
        assert isinstance(error, ValueError)


@check("factory/tensor_of_tensor", "FACT-012")
def tensor_of_a_tensor_copies_and_warns(dev: Device) -> None:
    """torch.tensor(device tensor) copies, with the usual advice about it."""
    x = ramp((3,)).to(dev.device())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = torch.tensor(x)
    assert any("copy construct" in str(entry.message) for entry in caught)
    assert y.device == x.device
    assert y.data_ptr() != x.data_ptr()
    dev.assert_equal(y, ramp((3,)))


@check("factory/composed", "FACT-013", needs=("complex64",), cases=("complex", "polar"))
def complex_tensors_are_composed(dev: Device, case: str) -> None:
    """torch.complex and torch.polar build complex tensors on the device of their parts."""
    first, second = ramp((3, 4), positive=True), ramp((4,)) / 20
    make: Any = getattr(torch, case)
    # Expanded on the device: on the way there it would become contiguous.
    actual = make(first.to(dev.device()), second.to(dev.device()).expand(3, 4))
    assert actual.device.type == dev.type
    dev.assert_close(actual, make(first, second.expand(3, 4)), rtol=1e-5, atol=1e-4)


_DERIVED: dict[str, Callable[[torch.Tensor], Any]] = {
    "meshgrid": lambda x: torch.meshgrid(x, x[:2], indexing="ij"),
    "cartesian_prod": lambda x: torch.cartesian_prod(x, x[:2]),
    "block_diag": lambda x: torch.block_diag(x, x[:2]),
    "vander": lambda x: torch.vander(x, 3),
    "combinations": lambda x: torch.combinations(x, 2),
    "diag_embed": lambda x: torch.diag_embed(x, 1),
    "one_hot": lambda x: torch.nn.functional.one_hot(x.abs().long() % 5, 5),
    "full_of_tensor": lambda x: torch.full((2, 2), x[0].item(), device=x.device),
}


@check("factory/derived", "FACT-013", cases=tuple(_DERIVED))
def composed_factories_stay_on_the_device(dev: Device, case: str) -> None:
    """Functions that build new tensors from given ones keep the device and the CPU's values."""
    source = ramp((4,))
    actual, expected = _DERIVED[case](source.to(dev.device())), _DERIVED[case](source)
    for got in actual if isinstance(actual, tuple) else (actual,):
        assert got.device.type == dev.type
    dev.assert_equal(actual, expected)


@check(
    "factory/out",
    "FACT-014",
    cases=("zeros", "ones", "full", "arange", "linspace", "eye", "randperm", "strided"),
)
def factories_fill_an_out_tensor(dev: Device, case: str) -> None:
    """out= is filled, resized when it is empty, and returned."""
    calls: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "zeros": lambda out: torch.zeros(2, 3, out=out),
        "ones": lambda out: torch.ones(2, 3, out=out),
        "full": lambda out: torch.full((2, 3), 4.0, out=out),
        "arange": lambda out: torch.arange(2, 8, out=out),
        "linspace": lambda out: torch.linspace(0, 10, 6, out=out),
        "eye": lambda out: torch.eye(2, 3, out=out),
        "randperm": lambda out: torch.randperm(1, out=out),
        "strided": lambda out: torch.ones(2, 3, out=out),
    }
    if case == "strided":
        base = torch.zeros(3, 4, device=dev.device())
        calls[case](base.t()[1:3])
        expected = torch.zeros(3, 4)
        expected.t()[1:3] = 1
        dev.assert_equal(base, expected)
        return
    out = torch.empty(0, device=dev.device())
    assert calls[case](out) is out
    assert out.device.type == dev.type
    dev.assert_equal(out, calls[case](torch.empty(0)))


# ---- properties ------------------------------------------------------------------------------


@check(
    "factory/requires_grad", "FACT-015", cases=("zeros", "empty", "tensor", "rand", "full", "eye")
)
def factories_make_leaves_that_require_grad(dev: Device, case: str) -> None:
    """requires_grad=True gives a leaf whose gradient arrives on the device."""
    kw: dict[str, Any] = {"device": dev.device(), "requires_grad": True}
    leaf = {
        "zeros": lambda: torch.zeros(3, **kw),
        "empty": lambda: torch.empty(3, **kw),
        "tensor": lambda: torch.tensor([1.0, 2.0, 3.0], **kw),
        "rand": lambda: torch.rand(3, **kw),
        "full": lambda: torch.full((3,), 2.0, **kw),
        "eye": lambda: torch.eye(3, **kw),
    }[case]()
    assert leaf.requires_grad
    assert leaf.is_leaf
    (leaf * 3).sum().backward()
    assert leaf.grad is not None
    dev.assert_equal(leaf.grad, torch.full(leaf.shape, 3.0))


@check("factory/requires_grad_integral", "FACT-015")
def integral_tensors_cannot_require_grad(dev: Device) -> None:
    """requires_grad=True with an integral data type raises RuntimeError."""
    error = raised(
        lambda: torch.zeros(3, dtype=torch.int64, device=dev.device(), requires_grad=True)
    )
    assert isinstance(error, RuntimeError)


@check("factory/default_dtype", "FACT-002", needs=("float64",), cases=("float64", "float16"))
def the_default_dtype_is_honoured(dev: Device, case: str) -> None:
    """torch.set_default_dtype decides the data type of floating factories on the device."""
    dev.require(case)
    with _default_dtype(getattr(torch, case)):
        for name in ("zeros", "full", "linspace", "tensor", "rand", "empty"):
            expected = FACTORIES[name]().dtype
            assert FACTORIES[name](device=dev.device()).dtype == expected, name
        made = torch.tensor([1.5], device=dev.device())
        assert made.dtype == getattr(torch, case)


@check("factory/default_device_nested", "FACT-003", cases=("nested", "explicit", "exception"))
def device_contexts_nest(dev: Device, case: str) -> None:
    """Device contexts nest, yield to an explicit device=, and end with an exception."""
    if case == "nested":
        with torch.device(dev.type):
            with torch.device("cpu"):
                assert torch.zeros(1).device.type == "cpu"
            assert torch.zeros(1).device.type == dev.type
    elif case == "explicit":
        with torch.device(dev.type):
            assert torch.zeros(1, device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert torch.zeros(1, device=dev.device()).device.type == dev.type
    else:

        def fail() -> None:
            with torch.device(dev.type):
                raise KeyError

        assert isinstance(raised(fail), KeyError)
        assert torch.zeros(1).device.type == "cpu"


@check(
    "factory/deterministic_fill",
    "FACT-016",
    cases=("empty", "empty_strided", "empty_like", "new_empty", "empty_permuted"),
    dtypes=("float32", "complex64", "int32", "uint8", "bool"),
)
def deterministic_mode_fills_uninitialised_memory(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """With deterministic algorithms on, new memory holds NaN, or the largest integer."""
    like = torch.zeros(3, 5, dtype=dtype, device=dev.device())
    makes: dict[str, Callable[[], torch.Tensor]] = {
        "empty": lambda: torch.empty(3, 5, dtype=dtype, device=dev.device()),
        "empty_strided": lambda: torch.empty_strided(
            (3, 5), (1, 3), dtype=dtype, device=dev.device()
        ),
        "empty_like": lambda: torch.empty_like(like),
        "new_empty": lambda: like.new_empty(3, 5),
        "empty_permuted": lambda: torch.empty_permuted(
            (3, 5), (1, 0), dtype=dtype, device=dev.device()
        ),
    }
    with deterministic():
        made = makes[case]().cpu()
    if dtype.is_floating_point or dtype.is_complex:
        assert bool(made.isnan().all())
    else:
        largest = True if dtype == torch.bool else torch.iinfo(dtype).max
        assert bool((made == largest).all())


@check("factory/deterministic_resize", "FACT-016")
def deterministic_mode_fills_what_resize_adds(dev: Device) -> None:
    """With deterministic algorithms on, resize_ fills the memory it adds and keeps the rest."""
    x = torch.zeros(3, device=dev.device())
    with deterministic():
        x.resize_(40)
    host = x.cpu()
    assert torch.equal(host[:3], torch.zeros(3))
    assert bool(host[3:].isnan().all())


@check("factory/fresh_memory", "FACT-017")
def new_tensors_do_not_share_memory(dev: Device) -> None:
    """Tensors that live at the same time never overlap, also after others were freed."""
    kept: list[torch.Tensor] = []
    for i in range(60):
        x = torch.full((37 * (i % 7 + 1),), float(i), device=dev.device())
        torch.full((64,), -1.0, device=dev.device())  # freed at once
        kept.append(x)
        if i % 3 == 0:
            kept.pop(len(kept) // 2)
    assert len({x.data_ptr() for x in kept}) == len(kept)
    for x in kept:
        assert x.cpu().unique().numel() == 1


@check("factory/alignment", "FACT-017", needs=("addresses",))
def allocations_are_aligned_for_every_dtype(dev: Device) -> None:
    """The address of a new tensor is a multiple of 16 bytes, the largest element size."""
    alive = [
        torch.empty(size, dtype=torch.uint8, device=dev.device())
        for size in (1, 3, 17, 1000, 70_001, 3_000_017) * 2
    ]
    assert [x.data_ptr() % 16 for x in alive] == [0] * len(alive)


@check("factory/module", "FACT-018", cases=("device", "context", "to", "to_empty", "skip_init"))
def modules_are_made_on_the_device(dev: Device, case: str) -> None:
    """Modules take device=, follow a device context, move with to() and materialise from meta."""
    makes: dict[str, Callable[[], torch.nn.Module]] = {
        "device": lambda: torch.nn.Linear(3, 4, device=dev.device()),
        "context": lambda: torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)),
        "to": lambda: torch.nn.BatchNorm1d(4).to(dev.device()),
        "to_empty": lambda: torch.nn.Linear(3, 4, device="meta").to_empty(device=dev.device()),
        "skip_init": lambda: torch.nn.utils.skip_init(torch.nn.Linear, 3, 4, device=dev.type),
    }
    if case == "context":
        with torch.device(dev.type):
            module = makes[case]()
    else:
        module = makes[case]()
    tensors = [*module.parameters(), *module.buffers()]
    assert tensors
    assert {t.device.type for t in tensors} == {dev.type}
    assert all(t.cpu().shape == t.shape for t in tensors)


@check("factory/meta", "FACT-018", cases=("from_meta", "to_meta"))
def meta_and_device_tensors_convert(dev: Device, case: str) -> None:
    """empty_like of a meta tensor can be real, and a device tensor has a meta twin."""
    if case == "from_meta":
        made = torch.zeros_like(torch.empty(2, 3, device="meta"), device=dev.device())
        dev.assert_equal(made, torch.zeros(2, 3))
    else:
        x = ramp((3, 4)).to(dev.device()).t()
        twin = x.to("meta")
        assert (twin.shape, twin.stride(), twin.dtype) == (x.shape, x.stride(), x.dtype)


@check("factory/large", "FACT-001", cases=("fill", "arange", "arange_wide"))
def large_factories_write_every_element(dev: Device, case: str) -> None:
    """Millions of elements are all written, and large whole numbers are exact."""
    count = 3_000_017
    if case == "fill":
        made = torch.full((count,), 7, dtype=torch.int16, device=dev.device())
        assert bool((made.cpu() == 7).all())
    elif case == "arange":
        made = torch.arange(count, device=dev.device())
        assert torch.equal(made.cpu(), torch.arange(count))
    else:
        wide = (2**24 - 3, 2**24 + 8)
        dev.assert_equal(torch.arange(*wide, device=dev.device()), torch.arange(*wide))


@check("factory/fill", "FACT-019", dtypes=DTYPES)
def fill_and_zero_write_views(dev: Device, dtype: torch.dtype) -> None:
    """fill_ and zero_ write exactly the elements of contiguous and strided views."""
    expected = ramp((8, 12), dtype)
    actual = expected.to(dev.device(), copy=True)
    for x in (expected, actual):
        x.t()[2:5].fill_(1)
        x[1::3, ::5].zero_()
        x.flatten()[0:0].fill_(1)
        x[7, 11].fill_(1)
    dev.assert_equal(actual, expected)


@check(
    "factory/fill_value",
    "FACT-019",
    cases=("scalar", "tensor", "host_tensor", "own_element", "special", "overflow"),
)
def fill_takes_numbers_and_tensors(dev: Device, case: str) -> None:
    """fill_ takes Python numbers and 0-dim tensors, keeps special values, and checks ranges."""
    x = torch.zeros(5, device=dev.device())
    if case == "scalar":
        dev.assert_equal(x.fill_(2.5), torch.full((5,), 2.5))
    elif case == "tensor":
        dev.assert_equal(x.fill_(torch.tensor(3, device=dev.device())), torch.full((5,), 3.0))
    elif case == "host_tensor":
        dev.assert_equal(x.fill_(torch.tensor(4)), torch.full((5,), 4.0))
    elif case == "own_element":
        x[2] = 7
        dev.assert_equal(x.fill_(x[2]), torch.full((5,), 7.0))
    elif case == "special":
        for value in (math.inf, -math.inf, math.nan):
            dev.assert_equal(x.fill_(value), torch.full((5,), value))
    else:
        error = raised(lambda: x.to(torch.int8).fill_(1000))
        assert isinstance(error, RuntimeError)
