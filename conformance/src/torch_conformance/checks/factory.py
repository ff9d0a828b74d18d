# SPDX-License-Identifier: BSD-3-Clause
"""Factory functions: where a new tensor lives, what it holds, and which data type it has."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from torch_conformance.authoring.api import (
    DTYPES,
    Device,
    apart,
    check,
    deterministic,
    raised,
    ramp,
)

Factory = Callable[..., torch.Tensor]

_ANY = "all"
_REAL = "real"
_FLOATING = "floating"
_INTEGRAL = "integral"
_COMPLEX = "complex"

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
    "logspace_negative": (lambda **kw: torch.logspace(0, 3, 4, base=-2, **kw), _FLOATING),
    "logspace_complex": (lambda **kw: torch.logspace(0, 2, 5, base=-2, **kw), _COMPLEX),
    "eye": (lambda **kw: torch.eye(3, 4, **kw), _ANY),
    "tensor": (lambda **kw: torch.tensor([[0, 1, 2], [3, 4, 5]], **kw), _ANY),
    "as_tensor": (lambda **kw: torch.as_tensor([[0, 1], [2, 3]], **kw), _ANY),
    "asarray": (lambda **kw: torch.asarray([0, 1, 2], **kw), _ANY),
    "scalar_tensor": (lambda **kw: torch.scalar_tensor(3, **kw), _ANY),
    "tril_indices": (lambda **kw: torch.tril_indices(4, 3, 1, **kw), _INTEGRAL),
    "triu_indices": (lambda **kw: torch.triu_indices(4, 3, -1, **kw), _INTEGRAL),
    "fftfreq": (lambda **kw: torch.fft.fftfreq(8, **kw), _FLOATING),
    "rfftfreq": (lambda **kw: torch.fft.rfftfreq(8, **kw), _FLOATING),
}

#: Window functions, for floating data types.
WINDOWS: dict[str, Factory] = {
    "hann_window": lambda **kw: torch.hann_window(8, **kw),
    "hamming_window": lambda **kw: torch.hamming_window(8, **kw),
    "blackman_window": lambda **kw: torch.blackman_window(8, **kw),
    "bartlett_window": lambda **kw: torch.bartlett_window(8, **kw),
    "kaiser_window": lambda **kw: torch.kaiser_window(8, **kw),
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

FACTORIES: dict[str, Factory] = {
    **{name: factory for name, (factory, _) in VALUED.items()},
    **WINDOWS,
    **UNVALUED,
}

Like = Callable[[torch.Tensor], torch.Tensor]

#: Factories that take their device from another tensor and fill the new one.
FILLED_LIKE: dict[str, Like] = {
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full_like": lambda x: torch.full_like(x, 3),
    "new_zeros": lambda x: x.new_zeros(4, 6),
    "new_ones": lambda x: x.new_ones(4, 6),
    "new_full": lambda x: x.new_full((4, 6), 3),
}

#: All those whose values are defined.
VALUED_LIKE: dict[str, Like] = {
    **FILLED_LIKE,
    "new_tensor": lambda x: x.new_tensor([[3.0] * 6] * 4),
}

#: Those whose values are not defined.
UNVALUED_LIKE: dict[str, Like] = {
    "empty_like": torch.empty_like,
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 0, 9),
    "new_empty": lambda x: x.new_empty(4, 6),
    "new_empty_strided": lambda x: x.new_empty_strided((4, 6), (6, 1)),
}


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


@check("factory/value", "FACT-001", cases=VALUED)
def factories_agree_with_the_cpu(dev: Device, case: str) -> None:
    """The values of a factory equal the CPU's in every data type it is defined for."""
    factory, kind = VALUED[case]
    for dtype in _kinds(dev, kind):
        actual = factory(device=dev.device(), dtype=dtype)
        assert actual.device.type == dev.type, dtype
        dev.assert_close(actual, factory(dtype=dtype))


@check("factory/value", "FACT-001", cases=WINDOWS)
def windows_agree_with_the_cpu(dev: Device, case: str) -> None:
    """The values of a window are the CPU's, or in 16 bits as near to those of double precision."""
    factory = WINDOWS[case]
    for dtype in _kinds(dev, _FLOATING):
        actual = factory(device=dev.device(), dtype=dtype)
        assert actual.device.type == dev.type, dtype
        expected = factory(dtype=dtype)
        if not _as_near(actual, expected, factory):
            dev.assert_close(actual, expected)


@check("factory/window_length", "FACT-001", cases=WINDOWS)
def windows_of_every_length_agree_with_the_cpu(dev: Device, case: str) -> None:
    """The values of windows of 1 to 200 elements, periodic or not, are the CPU's."""
    function: Callable[..., torch.Tensor] = getattr(torch, case)
    dtypes = [dtype for dtype in (torch.float32, torch.float64) if dtype in _kinds(dev, _FLOATING)]
    for periodic in (True, False):
        for dtype in dtypes:
            actual, expected = (
                torch.cat([function(n, periodic, dtype=dtype, device=d) for n in range(1, 201)])
                for d in (dev.device(), torch.device("cpu"))
            )
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


@check("factory/dtype_inferred", "FACT-002", cases=FACTORIES)
def the_inferred_dtype_is_the_cpus(dev: Device, case: str) -> None:
    """Without dtype= the data type, shape and strides are those of the same call on the CPU."""
    expected = FACTORIES[case]()
    actual = FACTORIES[case](device=dev.device())
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert actual.layout == torch.strided


@check("factory/placement", "FACT-003", cases=FACTORIES)
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


@check("factory/placement_index", "FACT-003", needs=("accelerator",), cases=FACTORIES)
def an_integer_means_an_accelerator(dev: Device, case: str) -> None:
    """device=0 is device 0 of the current accelerator; a device of type and index works."""
    if torch.accelerator.current_accelerator() != torch.device(dev.type):
        dev.unsupported("another device type is the current accelerator")
    assert FACTORIES[case](device=0).device == dev.device(0)
    assert FACTORIES[case](device=torch.device(dev.type, 0)).device == dev.device(0)
    assert FACTORIES[case](device=f"{dev.type}:0").device == dev.device(0)


@check("factory/second_device", "FACT-004", needs=("multi_device",), cases=FACTORIES)
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


_BAD_INDICES: dict[str, Callable[[Device], Any]] = {
    "count": lambda dev: f"{dev.type}:{dev.count}",
    "large": lambda dev: f"{dev.type}:100",
    "integer": lambda dev: dev.count,
}


@check("factory/bad_index", "FACT-005", needs=("accelerator",), cases=_BAD_INDICES)
def a_device_that_does_not_exist_is_refused(dev: Device, case: str) -> None:
    """An index past the last device raises; it never becomes another device."""
    if dev.count > 100:
        dev.unsupported("there is a device for each of these indices")
    device = _BAD_INDICES[case](dev)
    for work in (
        lambda: torch.empty(2, device=device),
        lambda: torch.zeros(2, device=device),
        lambda: torch.zeros(2).to(device),
    ):
        assert isinstance(raised(work), (RuntimeError, AssertionError, ValueError))


def _followed(dev: Device, like: Like) -> tuple[torch.Tensor, torch.Tensor]:
    """What a factory makes of a device tensor, and of the same one on the CPU."""
    source = ramp((4, 6))
    actual, expected = like(source.to(dev.device())), like(source)
    assert actual.device.type == dev.type
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.stride() == expected.stride()
    return actual, expected


@check("factory/like", "FACT-006", cases=UNVALUED_LIKE)
def like_factories_follow_their_tensor(dev: Device, case: str) -> None:
    """*_like and new_* take device, data type and shape from the tensor."""
    _followed(dev, UNVALUED_LIKE[case])


@check("factory/like", "FACT-006", cases=VALUED_LIKE)
def like_factories_follow_their_tensor_and_fill(dev: Device, case: str) -> None:
    """*_like and new_* take device, data type and shape from the tensor, and hold their values."""
    dev.assert_equal(*_followed(dev, VALUED_LIKE[case]))


@check("factory/like_dtype", "FACT-006", cases=FILLED_LIKE, dtypes=DTYPES)
def like_factories_work_in_every_dtype(dev: Device, case: str, dtype: torch.dtype) -> None:
    """*_like and new_* hold the right values in every data type."""
    source = ramp((4, 6), dtype)
    dev.assert_equal(FILLED_LIKE[case](source.to(dev.device())), FILLED_LIKE[case](source))


_VIEWS: dict[str, Like] = {
    "transposed": lambda x: x.transpose(1, 3),
    "channels_last": lambda x: x.permute(0, 3, 1, 2),
    "sliced": lambda x: x[..., ::2],
    "expanded": lambda x: x[:, :1].expand(2, 6, 4, 5),
}


@check("factory/like_strides", "FACT-006", cases=_VIEWS)
def like_factories_preserve_dense_strides(dev: Device, case: str) -> None:
    """empty_like keeps the strides of a dense tensor and chooses the CPU's for any other."""
    source = ramp((2, 3, 4, 5))
    expected = torch.zeros_like(_VIEWS[case](source))
    actual = torch.zeros_like(_VIEWS[case](source.to(dev.device())))
    assert actual.stride() == expected.stride()
    dev.assert_equal(actual, expected)


#: name -> (where the source is, where the new tensor is to be).
_ELSEWHERE: dict[str, Callable[[torch.device], tuple[torch.device, torch.device]]] = {
    "to_cpu": lambda device: (device, torch.device("cpu")),
    "to_device": lambda device: (torch.device("cpu"), device),
}


@check("factory/like_other_device", "FACT-006", needs=("accelerator",), cases=_ELSEWHERE)
def like_factories_take_another_device(dev: Device, case: str) -> None:
    """device= of a *_like or new_* factory overrides the tensor's device."""
    here, there = _ELSEWHERE[case](dev.device())
    source = ramp((4, 6)).to(here)
    for made in (torch.zeros_like(source, device=there), source.new_zeros(4, 6, device=there)):
        assert made.device.type == there.type
        dev.assert_equal(made, torch.zeros(4, 6))


#: name -> (size, strides).
_STRIDED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "padded": ((3, 4), (8, 1)),
    "transposed": ((3, 4), (1, 3)),
    "broadcast": ((3, 4), (0, 1)),
    "empty": ((0, 4), (4, 1)),
    "zero_dim": ((), ()),
}


@check("factory/strided", "FACT-007", cases=_STRIDED)
def empty_strided_has_the_asked_strides(dev: Device, case: str) -> None:
    """empty_strided gives exactly the asked strides and enough memory to write all elements."""
    size, stride = _STRIDED[case]
    x = torch.empty_strided(size, stride, device=dev.device())
    assert (tuple(x.shape), x.stride()) == (size, stride)
    needed = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    assert x.untyped_storage().nbytes() >= 4 * needed
    if 0 not in stride:  # elements that share their memory cannot be written at once
        dev.assert_equal(x.fill_(5), torch.full(size, 5.0))


_CHANNELS_LAST = {"channels_last": (2, 3, 4, 5), "channels_last_3d": (2, 3, 4, 5, 6)}


@check("factory/memory_format", "FACT-007", cases=_CHANNELS_LAST)
def memory_formats_are_honoured(dev: Device, case: str) -> None:
    """empty with a memory format gives the physical layout asked for."""
    form = getattr(torch, case)
    made = torch.empty(_CHANNELS_LAST[case], memory_format=form, device=dev.device())
    expected = torch.empty(_CHANNELS_LAST[case], memory_format=form)
    assert made.is_contiguous(memory_format=form)
    assert made.stride() == expected.stride()


@check("factory/memory_format:permuted", "FACT-007")
def empty_permuted_has_the_asked_layout(dev: Device) -> None:
    """empty_permuted gives the physical layout asked for."""
    made = torch.empty_permuted((2, 3, 4), (2, 0, 1), device=dev.device())
    assert made.stride() == torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()


_SHAPES: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "zero_dim": lambda d: torch.full((), 3.0, device=d),
    "empty": lambda d: torch.zeros(0, device=d),
    "empty_inner": lambda d: torch.ones(3, 0, 2, device=d),
    "one": lambda d: torch.ones(1, 1, device=d),
    "rank_ten": lambda d: torch.ones((1, 2) * 5, device=d),
    "arange": lambda d: torch.arange(5, 5, device=d),
    "linspace": lambda d: torch.linspace(3, 3, 1, device=d),
    "eye": lambda d: torch.eye(0, 3, device=d),
}


@check("factory/shapes", "FACT-008", cases=_SHAPES)
def unusual_shapes_are_made(dev: Device, case: str) -> None:
    """0-dim, empty and high-rank tensors are made like any other."""
    dev.assert_equal(_SHAPES[case](dev.device()), _SHAPES[case](torch.device("cpu")))


_BAD_SIZES: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "negative": lambda d: torch.empty(-1, device=d),
    "overflow": lambda d: torch.empty(2**62, 2**10, device=d),
    "petabytes": lambda d: torch.empty(2**57, device=d),
    "strides": lambda d: torch.empty_strided((2, 3), (-1, 1), device=d),
}


@check("factory/bad_size", "FACT-009", cases=_BAD_SIZES)
def impossible_sizes_are_refused(dev: Device, case: str) -> None:
    """Negative sizes, sizes that overflow, and sizes that no memory has raise RuntimeError."""
    assert isinstance(raised(lambda: _BAD_SIZES[case](dev.device())), RuntimeError)
    dev.assert_equal(torch.ones(3, device=dev.device()), torch.ones(3))


@check("factory/too_large", "FACT-020", needs=("accelerator",))
def sixty_four_tebibytes_are_refused(dev: Device) -> None:
    """An allocation far beyond any memory raises torch.OutOfMemoryError; the device lives on."""
    error = raised(lambda: torch.empty(2**46, dtype=torch.uint8, device=dev.device()))
    assert isinstance(error, torch.OutOfMemoryError)
    dev.assert_equal(torch.ones(3, device=dev.device()), torch.ones(3))


_PINS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "empty": lambda d: torch.empty(2, device=d, pin_memory=True),
    "zeros": lambda d: torch.zeros(2, device=d, pin_memory=True),
    "method": lambda d: torch.zeros(2, device=d).pin_memory(),
}


@check("factory/pin_memory", "FACT-010", needs=("accelerator",), cases=_PINS)
def device_tensors_cannot_be_pinned(dev: Device, case: str) -> None:
    """pin_memory=True with a device raises: only dense host tensors can be pinned."""
    assert isinstance(raised(lambda: _PINS[case](dev.device())), RuntimeError)


@check("factory/pinned_host", "FACT-010", needs=("pinned_memory",))
def host_factories_can_pin(dev: Device) -> None:
    """pin_memory=True on the host gives pinned memory that computes like any other."""
    dev.require_factories_that_pin()
    x = torch.ones(5, pin_memory=True)
    assert x.is_pinned()
    assert x.device.type == "cpu"
    assert torch.equal(x + 1, torch.full((5,), 2.0))
    assert not torch.ones(5).is_pinned()
    assert torch.zeros_like(x, pin_memory=True).is_pinned()
    assert not torch.ones(2, device=dev.device()).is_pinned()


# ---- from data -------------------------------------------------------------------------------


_DATA: dict[str, Any] = {
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
}


@check(
    "factory/from_data",
    "FACT-011",
    cases=_DATA,
    case_needs={"complex": "complex64", "numpy": "float64"},
)
def tensors_are_made_from_python_data(dev: Device, case: str) -> None:
    """torch.tensor infers shape and data type from Python data as on the CPU."""
    dev.assert_equal(torch.tensor(_DATA[case], device=dev.device()), torch.tensor(_DATA[case]))


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


@check("factory/asarray_copy:copy", "FACT-012")
def asarray_copies_when_told_to(dev: Device) -> None:
    """asarray(copy=True) never aliases."""
    x = ramp((3,)).to(dev.device())
    assert apart(torch.asarray(x, copy=True), x)


@check("factory/asarray_copy:no_copy", "FACT-012")
def asarray_does_not_copy_when_told_not_to(dev: Device) -> None:
    """asarray(copy=False) raises where a copy would be needed."""
    x = ramp((3,)).to(dev.device())
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
    assert apart(y, x)
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


@check("factory/derived", "FACT-013", cases=_DERIVED)
def composed_factories_stay_on_the_device(dev: Device, case: str) -> None:
    """Functions that build new tensors from given ones keep the device and the CPU's values."""
    source = ramp((4,))
    actual, expected = _DERIVED[case](source.to(dev.device())), _DERIVED[case](source)
    for got in actual if isinstance(actual, tuple) else (actual,):
        assert got.device.type == dev.type
    dev.assert_equal(actual, expected)


_OUT: dict[str, Like] = {
    "zeros": lambda out: torch.zeros(2, 3, out=out),
    "ones": lambda out: torch.ones(2, 3, out=out),
    "full": lambda out: torch.full((2, 3), 4.0, out=out),
    "arange": lambda out: torch.arange(2, 8, out=out),
    "linspace": lambda out: torch.linspace(0, 10, 6, out=out),
    "eye": lambda out: torch.eye(2, 3, out=out),
    "randperm": lambda out: torch.randperm(1, out=out),
}


@check("factory/out", "FACT-014", cases=_OUT)
def factories_fill_an_out_tensor(dev: Device, case: str) -> None:
    """out= is filled, resized when it is empty, and returned."""
    out = torch.empty(0, device=dev.device())
    assert _OUT[case](out) is out
    assert out.device.type == dev.type
    dev.assert_equal(out, _OUT[case](torch.empty(0)))


@check("factory/out:strided", "FACT-014")
def factories_fill_a_strided_out_tensor(dev: Device) -> None:
    """out= that is a view is filled in place, and nothing beside it."""
    base, expected = torch.zeros(3, 4, device=dev.device()), torch.zeros(3, 4)
    torch.ones(2, 3, out=base.t()[1:3])
    expected.t()[1:3] = 1
    dev.assert_equal(base, expected)


# ---- properties ------------------------------------------------------------------------------


_LEAVES: dict[str, Factory] = {
    "zeros": lambda **kw: torch.zeros(3, **kw),
    "empty": lambda **kw: torch.empty(3, **kw),
    "tensor": lambda **kw: torch.tensor([1.0, 2.0, 3.0], **kw),
    "rand": lambda **kw: torch.rand(3, **kw),
    "full": lambda **kw: torch.full((3,), 2.0, **kw),
    "eye": lambda **kw: torch.eye(3, **kw),
}


@check("factory/requires_grad", "FACT-015", cases=_LEAVES)
def factories_make_leaves_that_require_grad(dev: Device, case: str) -> None:
    """requires_grad=True gives a leaf whose gradient arrives on the device."""
    leaf = _LEAVES[case](device=dev.device(), requires_grad=True)
    assert leaf.requires_grad
    assert leaf.is_leaf
    (leaf * 3).sum().backward()
    assert leaf.grad is not None
    dev.assert_equal(leaf.grad, torch.full(leaf.shape, 3.0))


@check("factory/requires_grad_integral", "FACT-021")
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


@check("factory/default_device_nested:nested", "FACT-003")
def device_contexts_nest(dev: Device) -> None:
    """The inner one of two device contexts counts, and after it the outer one."""
    with torch.device(dev.type):
        with torch.device("cpu"):
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device.type == dev.type


@check("factory/default_device_nested:explicit", "FACT-003")
def device_contexts_yield_to_a_named_device(dev: Device) -> None:
    """An explicit device= counts inside of a device context."""
    with torch.device(dev.type):
        assert torch.zeros(1, device="cpu").device.type == "cpu"
    with torch.device("cpu"):
        assert torch.zeros(1, device=dev.device()).device.type == dev.type


@check("factory/default_device_nested:exception", "FACT-003")
def device_contexts_end_with_an_exception(dev: Device) -> None:
    """A device context that is left by an exception has ended."""

    def fail() -> None:
        with torch.device(dev.type):
            raise KeyError

    assert isinstance(raised(fail), KeyError)
    assert torch.zeros(1).device.type == "cpu"


#: Factories of uninitialised memory, given a tensor of the same shape, data type and device.
_UNINITIALISED: dict[str, Like] = {
    "empty": lambda x: torch.empty(3, 5, dtype=x.dtype, device=x.device),
    "empty_strided": lambda x: torch.empty_strided((3, 5), (1, 3), dtype=x.dtype, device=x.device),
    "empty_like": torch.empty_like,
    "new_empty": lambda x: x.new_empty(3, 5),
    "empty_permuted": lambda x: torch.empty_permuted(
        (3, 5), (1, 0), dtype=x.dtype, device=x.device
    ),
}


@check(
    "factory/deterministic_fill",
    "FACT-016",
    cases=_UNINITIALISED,
    dtypes=("float32", "complex64", "int32", "uint8", "bool"),
)
def deterministic_mode_fills_uninitialised_memory(
    dev: Device, case: str, dtype: torch.dtype
) -> None:
    """With deterministic algorithms on, new memory holds NaN, or the largest integer."""
    like = torch.zeros(3, 5, dtype=dtype, device=dev.device())
    with deterministic():
        made = _UNINITIALISED[case](like).cpu()
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
    assert len({x.untyped_storage()._cdata for x in kept}) == len(kept)
    if dev.has("addresses"):
        assert len({x.data_ptr() for x in kept}) == len(kept)
    for x in kept:
        assert x.cpu().unique().numel() == 1


@check("factory/alignment", "FACT-022", needs=("addresses",))
def allocations_are_aligned_for_every_dtype(dev: Device) -> None:
    """The address of a new tensor is a multiple of 16 bytes, the largest element size."""
    alive = [
        torch.empty(size, dtype=torch.uint8, device=dev.device())
        for size in (1, 3, 17, 1000, 70_001, 3_000_017) * 2
    ]
    assert [x.data_ptr() % 16 for x in alive] == [0] * len(alive)


def _made_in_context(device: torch.device) -> torch.nn.Module:
    with torch.device(device.type):
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))


_MODULES: dict[str, Callable[[torch.device], torch.nn.Module]] = {
    "device": lambda d: torch.nn.Linear(3, 4, device=d),
    "context": _made_in_context,
    "to": lambda d: torch.nn.BatchNorm1d(4).to(d),
    "to_empty": lambda d: torch.nn.Linear(3, 4, device="meta").to_empty(device=d),
    "skip_init": lambda d: torch.nn.utils.skip_init(torch.nn.Linear, 3, 4, device=d.type),
}


@check("factory/module", "FACT-018", cases=_MODULES)
def modules_are_made_on_the_device(dev: Device, case: str) -> None:
    """Modules take device=, follow a device context, move with to() and materialise from meta."""
    module = _MODULES[case](dev.device())
    tensors = [*module.parameters(), *module.buffers()]
    assert tensors
    assert {t.device.type for t in tensors} == {dev.type}
    assert all(t.cpu().shape == t.shape for t in tensors)


@check("factory/meta:from_meta", "FACT-023")
def a_meta_tensor_becomes_real(dev: Device) -> None:
    """zeros_like of a meta tensor can be made on the device."""
    made = torch.zeros_like(torch.empty(2, 3, device="meta"), device=dev.device())
    dev.assert_equal(made, torch.zeros(2, 3))


@check("factory/meta:to_meta", "FACT-023")
def a_device_tensor_has_a_meta_twin(dev: Device) -> None:
    """A device tensor on meta keeps its shape, strides and data type."""
    x = ramp((3, 4)).to(dev.device()).t()
    twin = x.to("meta")
    assert twin.device.type == "meta"
    assert (twin.shape, twin.stride(), twin.dtype) == (x.shape, x.stride(), x.dtype)


_LARGE: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "fill": lambda d: torch.full((3_000_017,), 7, dtype=torch.int16, device=d),
    "arange": lambda d: torch.arange(3_000_017, device=d),
    "arange_wide": lambda d: torch.arange(2**24 - 3, 2**24 + 8, device=d),
}


@check("factory/large", "FACT-001", cases=_LARGE)
def large_factories_write_every_element(dev: Device, case: str) -> None:
    """Millions of elements are all written, and large whole numbers are exact."""
    dev.assert_equal(_LARGE[case](dev.device()), _LARGE[case](torch.device("cpu")))


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


#: name -> (what is given to fill_, the value that is written).
_FILLS: dict[str, tuple[Callable[[torch.device], Any], float]] = {
    "scalar": (lambda d: 2.5, 2.5),
    "tensor": (lambda d: torch.tensor(3, device=d), 3.0),
    "host_tensor": (lambda d: torch.tensor(4), 4.0),
}


@check("factory/fill_value", "FACT-019", cases=_FILLS)
def fill_takes_numbers_and_tensors(dev: Device, case: str) -> None:
    """fill_ takes Python numbers and 0-dim tensors."""
    given, value = _FILLS[case]
    x = torch.zeros(5, device=dev.device())
    dev.assert_equal(x.fill_(given(x.device)), torch.full((5,), value))


@check("factory/fill_value:own_element", "FACT-019")
def fill_takes_an_element_of_the_tensor_itself(dev: Device) -> None:
    """fill_ with an element of the tensor that is filled writes its value to all."""
    x = torch.zeros(5, device=dev.device())
    x[2] = 7
    dev.assert_equal(x.fill_(x[2]), torch.full((5,), 7.0))


@check("factory/fill_value:special", "FACT-019")
def fill_keeps_special_values(dev: Device) -> None:
    """fill_ writes infinities and NaN."""
    x = torch.zeros(5, device=dev.device())
    for value in (math.inf, -math.inf, math.nan):
        dev.assert_equal(x.fill_(value), torch.full((5,), value))


@check("factory/fill_value:overflow", "FACT-024")
def fill_checks_the_range(dev: Device) -> None:
    """fill_ with a number that the data type cannot hold raises."""
    x = torch.zeros(5, dtype=torch.int8, device=dev.device())
    assert isinstance(raised(lambda: x.fill_(1000), by=dev.synchronize), RuntimeError)
