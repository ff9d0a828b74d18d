# SPDX-License-Identifier: BSD-3-Clause
"""Views and storages: sharing, strides and offsets, writes through views, resize_ and set_."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_conformance.authoring.api import (
    DTYPES,
    DTYPES_BY_SIZE,
    Device,
    apart,
    check,
    raised,
    ramp,
)

Make = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class View:
    """One way to make a view of a (4, 6) tensor, and what may be done with the result."""

    make: Make
    dtype: torch.dtype = torch.float32
    writable: bool = True  # no two elements share a location
    differentiable: bool = True
    needs: str = ""


_C64 = torch.complex64

VIEWS: dict[str, View] = {
    "view": View(lambda x: x.view(3, 8)),
    "view_infer": View(lambda x: x.view(2, -1)),
    "view_as": View(lambda x: x.view_as(torch.empty(6, 4))),
    "reshape": View(lambda x: x.reshape(24)),
    "flatten": View(lambda x: x.flatten()),
    "ravel": View(lambda x: x.ravel()),
    "unflatten": View(lambda x: x.unflatten(1, (2, 3))),
    "t": View(lambda x: x.t()),
    "upper_t": View(lambda x: x.T),
    "matrix_t": View(lambda x: x.mT),
    "upper_h": View(lambda x: x.H),
    "transpose": View(lambda x: x.transpose(0, 1)),
    "swapaxes": View(lambda x: x.swapaxes(1, 0)),
    "permute": View(lambda x: x.view(2, 3, 4).permute(2, 0, 1)),
    "movedim": View(lambda x: x.view(2, 3, 4).movedim(0, 2)),
    "expand": View(lambda x: x[:1].expand(3, 6), writable=False),
    "expand_as": View(lambda x: x[:, :1].expand_as(torch.empty(4, 3)), writable=False),
    "broadcast_to": View(lambda x: x[1].broadcast_to(2, 6), writable=False),
    "narrow": View(lambda x: x.narrow(1, 2, 3)),
    "slice": View(lambda x: x[1:3]),
    "slice_step": View(lambda x: x[::2, 1::3]),
    "slice_ellipsis": View(lambda x: x[..., 2:]),
    "select": View(lambda x: x.select(0, 2)),
    "select_last": View(lambda x: x[-1]),
    "element": View(lambda x: x[1, 2]),
    "new_axis": View(lambda x: x[:, None, :, None]),
    "squeeze": View(lambda x: x.view(1, 4, 1, 6).squeeze()),
    "squeeze_dim": View(lambda x: x.view(1, 4, 1, 6).squeeze(2)),
    "squeeze_dims": View(lambda x: x.view(1, 4, 1, 6).squeeze((0, 2))),
    "unsqueeze": View(lambda x: x.unsqueeze(1)),
    "unfold": View(lambda x: x.unfold(1, 3, 3)),
    "unfold_overlapping": View(lambda x: x.unfold(1, 3, 1), writable=False),
    "as_strided": View(lambda x: x.as_strided((3, 2), (7, 2), 1)),
    "diagonal": View(lambda x: x.diagonal()),
    "diagonal_offset": View(lambda x: x.diagonal(-1)),
    "linalg_diagonal": View(lambda x: torch.linalg.diagonal(x, offset=1)),
    "split": View(lambda x: x.split(3, dim=1)[1]),
    "split_sizes": View(lambda x: x.split([1, 2, 3], dim=1)[2]),
    "chunk": View(lambda x: x.chunk(3, dim=1)[1]),
    "tensor_split": View(lambda x: x.tensor_split((1, 3))[1]),
    "hsplit": View(lambda x: x.hsplit(2)[1]),
    "vsplit": View(lambda x: x.vsplit(2)[1]),
    "unbind": View(lambda x: x.unbind(1)[2]),
    "iteration": View(lambda x: list(x)[3]),
    "atleast_3d": View(lambda x: torch.atleast_3d(x)),
    "real": View(lambda x: x.real, _C64, needs="complex64"),
    "imag": View(lambda x: x.imag, _C64, needs="complex64"),
    "view_as_real": View(lambda x: torch.view_as_real(x), _C64, needs="complex64"),
    "view_as_complex": View(lambda x: torch.view_as_complex(x.view(4, 3, 2)), needs="complex64"),
    "conj": View(lambda x: x.conj(), _C64, needs="complex64"),
    "matrix_h": View(lambda x: x.mH, _C64, needs="complex64"),
    "neg_view": View(lambda x: torch._neg_view(x)),
    "view_dtype_same": View(lambda x: x.view(torch.int32), differentiable=False),
    "view_dtype_smaller": View(lambda x: x.view(torch.int16), differentiable=False),
    "view_dtype_larger": View(lambda x: x.view(torch.int64), differentiable=False),
    "detach": View(lambda x: x.detach(), differentiable=False),
    "alias": View(lambda x: torch.ops.aten.alias(x)),
    "view_copy_of_view": View(lambda x: x.t()[1:].t()),
}


def _place(view: View, dev: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """The same (4, 6) base on the device and on the CPU."""
    if view.needs:
        dev.require(view.needs)
    base = ramp((4, 6), view.dtype)
    return base.to(dev.device(), copy=True), base


@check("view/geometry", "VIEW-001", cases=tuple(VIEWS))
def views_have_the_geometry_of_the_cpu(dev: Device, case: str) -> None:
    """Sizes, strides, storage offset, data type and values equal the CPU's."""
    view = VIEWS[case]
    actual_base, expected_base = _place(view, dev)
    actual, expected = view.make(actual_base), view.make(expected_base)
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert actual.storage_offset() == expected.storage_offset()
    assert actual.dtype == expected.dtype
    assert actual.is_conj() == expected.is_conj()
    assert actual.is_neg() == expected.is_neg()
    assert actual.device == actual_base.device
    dev.assert_equal(actual.resolve_conj(), expected.resolve_conj())


@check("view/shared", "VIEW-002", cases=tuple(VIEWS))
def views_share_the_storage_of_their_base(dev: Device, case: str) -> None:
    """A view has the storage, and an address inside the memory, of its base."""
    view = VIEWS[case]
    base, _ = _place(view, dev)
    made = view.make(base)
    assert made.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert made.untyped_storage()._cdata == base.untyped_storage()._cdata
    if dev.has("addresses"):
        offset = made.storage_offset() * made.element_size()
        assert made.data_ptr() == base.untyped_storage().data_ptr() + offset


@check("view/write", "VIEW-003", cases=tuple(name for name, v in VIEWS.items() if v.writable))
def writes_through_a_view_reach_the_base(dev: Device, case: str) -> None:
    """fill_, copy_, mul_ and add_ on a view change exactly the same elements as on the CPU."""
    view = VIEWS[case]
    actual, expected = _place(view, dev)
    for base in (actual, expected):
        made = view.make(base)
        made.fill_(2)
        made.add_(1)
        made.mul_(3)
    dev.assert_equal(actual, expected)
    source = ramp(view.make(expected).shape, view.make(expected).dtype)
    view.make(expected).copy_(source)
    view.make(actual).copy_(source.to(dev.device()))
    # A view of another dtype is a view of its own: it is not made on the device.
    dev.assert_equal(dev.cpu(actual).view(torch.uint8), expected.view(torch.uint8))


@check("view/read_after_write", "VIEW-003", cases=tuple(VIEWS))
def writes_to_the_base_are_seen_by_a_view(dev: Device, case: str) -> None:
    """A view made before the base was changed shows the change."""
    view = VIEWS[case]
    actual, expected = _place(view, dev)
    seen, wanted = view.make(actual), view.make(expected)
    for base in (actual, expected):
        base[1:3].mul_(2)
        base[:, 2].fill_(5)
    dev.assert_equal(seen.resolve_conj().resolve_neg(), wanted.resolve_conj().resolve_neg())


@check(
    "view/gradient",
    "VIEW-004",
    cases=tuple(name for name, v in VIEWS.items() if v.differentiable),
)
def gradients_flow_through_views(dev: Device, case: str) -> None:
    """The gradient of a weighted sum over a view equals the CPU's, element by element."""
    view = VIEWS[case]
    actual, expected = _place(view, dev)
    for leaf in (actual.requires_grad_(), expected.requires_grad_()):
        made = view.make(leaf)
        weight = ramp(made.shape, made.dtype).to(made.device)
        (made * weight).sum().abs().backward()
    assert actual.grad is not None
    assert actual.grad.device == actual.device
    assert expected.grad is not None
    dev.assert_close(actual.grad, expected.grad, rtol=1e-4, atol=1e-4)


@check("view/autograd_base:base", "VIEW-005")
def autograd_knows_views(dev: Device) -> None:
    """A view knows its base; the base is not a view."""
    x = ramp((4, 6)).to(dev.device())
    view = x.t()[1:]
    assert view._is_view()
    assert view._base is x
    assert not x._is_view()


@check("view/autograd_base:in_place", "VIEW-005")
def in_place_changes_of_views_are_in_the_graph(dev: Device) -> None:
    """An in-place change of a view is in the graph of its base."""
    leaf = ramp((4, 6)).to(dev.device()).requires_grad_()
    y = leaf * 1
    y.t()[2].mul_(10)
    y.sum().backward()
    expected = torch.ones(4, 6)
    expected[:, 2] = 10
    assert leaf.grad is not None
    dev.assert_equal(leaf.grad, expected)


@check("view/autograd_base:version", "VIEW-005")
def views_share_the_version_of_their_base(dev: Device) -> None:
    """A change of a view counts in the version of its base; a change of x.data does not."""
    x = ramp((4, 6)).to(dev.device())
    view = x[1]
    before = x._version
    view.add_(1)
    assert x._version == view._version == before + 1
    assert x.detach()._version == x._version
    x.data.add_(1)
    assert x._version == before + 1


@check("view/autograd_base:multi_output", "VIEW-014")
def views_of_several_outputs_refuse_in_place_changes(dev: Device) -> None:
    """An in-place change of one of several views that one operator returned raises."""
    leaf = ramp((4, 6)).to(dev.device()).requires_grad_()
    first, _ = (leaf * 1).split(3, dim=1)
    assert isinstance(raised(lambda: first.mul_(2)), RuntimeError)


@check("view/saved_tensor", "VIEW-014")
def changing_a_saved_tensor_through_a_view_is_noticed(dev: Device) -> None:
    """backward raises when a tensor it needs was changed in place through a view."""
    leaf = torch.ones(4, device=dev.device(), requires_grad=True)
    y = leaf * 2
    z = (y * y).sum()
    y.detach()[1:].add_(1)
    assert isinstance(raised(z.backward), RuntimeError)


_INPLACE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "t": lambda x: x.t_(),
    "transpose": lambda x: x.transpose_(0, 1),
    "swapdims": lambda x: x.swapdims_(0, 1),
    "unsqueeze": lambda x: x.unsqueeze_(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze_(0),
    "as_strided": lambda x: x.as_strided_((3, 2), (7, 2), 1),
    "detach": lambda x: x.detach_(),
}


@check("view/in_place_geometry", "VIEW-006", cases=tuple(_INPLACE))
def in_place_geometry_changes_move_no_data(dev: Device, case: str) -> None:
    """t_, transpose_, squeeze_, as_strided_ ... change geometry in place and keep the memory."""
    expected = ramp((4, 6))
    actual = expected.to(dev.device(), copy=True)
    address = actual.data_ptr()
    made, wanted = _INPLACE[case](actual), _INPLACE[case](expected)
    assert (made.shape, made.stride()) == (wanted.shape, wanted.stride())
    assert made.untyped_storage().data_ptr() == address
    dev.assert_equal(made, wanted)


@check(
    "view/refused", "VIEW-007", cases=("view", "as_strided", "negative_stride", "dtype", "squeeze")
)
def impossible_views_are_refused(dev: Device, case: str) -> None:
    """A view that the memory cannot give raises; it never copies or reads out of bounds."""
    x = ramp((4, 6)).to(dev.device())
    works: dict[str, Callable[[], torch.Tensor]] = {
        "view": lambda: x.t().view(24),
        "as_strided": lambda: x.as_strided((4, 7), (6, 1), 0),
        "negative_stride": lambda: x.as_strided((2, 2), (-1, 1), 3),
        "dtype": lambda: x[:, :5].view(torch.int64),
        "squeeze": lambda: x.view(5, 5),
    }
    assert isinstance(raised(works[case], by=dev.synchronize), RuntimeError)


@check(
    "view/copies",
    "VIEW-015",
    cases=("reshape", "flatten", "contiguous", "clone", "as_strided_copy"),
)
def what_cannot_be_a_view_is_a_copy(dev: Device, case: str) -> None:
    """reshape and its kin copy when no view is possible; the copy is separate and contiguous."""
    source = ramp((4, 6))
    makes: dict[str, Make] = {
        "reshape": lambda x: x.t().reshape(24),
        "flatten": lambda x: x.t().flatten(),
        "contiguous": lambda x: x.t().contiguous(),
        "clone": lambda x: x[:, ::2].clone(),
        "as_strided_copy": lambda x: torch.as_strided_copy(x, (3, 2), (7, 2), 1),
    }
    x = source.to(dev.device(), copy=True)
    made = makes[case](x)
    assert apart(made, x)
    assert made.is_contiguous()
    dev.assert_equal(made, makes[case](source))
    made.zero_()
    dev.assert_equal(x, source)


_VIEW_COPIES = ("view", "expand", "permute", "t", "select", "unsqueeze", "diagonal", "unfold")


@check("view/view_copy", "VIEW-015", cases=_VIEW_COPIES)
def view_copy_operators_do_not_alias(dev: Device, case: str) -> None:
    """The *_copy operators, which compilers use, give the view's values in memory of their own."""
    arguments: dict[str, tuple[Any, ...]] = {
        "view": ((3, 8),),
        "expand": ((2, 4, 6),),
        "permute": ((1, 0),),
        "t": (),
        "select": (0, 2),
        "unsqueeze": (1,),
        "diagonal": (),
        "unfold": (1, 3, 2),
    }
    operator = getattr(torch, f"{case}_copy")
    source = ramp((4, 6))
    x = source.to(dev.device(), copy=True)
    made = operator(x, *arguments[case])
    assert apart(made, x)
    dev.assert_equal(made, operator(source, *arguments[case]))


# ---- resize ----------------------------------------------------------------------------------


@check("view/resize_grow", "VIEW-008", dtypes=DTYPES_BY_SIZE)
def growing_keeps_the_elements(dev: Device, dtype: torch.dtype) -> None:
    """resize_ to more elements keeps the old ones and gives memory for the new ones."""
    source = ramp((7,), dtype)
    x = source.to(dev.device(), copy=True)
    assert x.resize_(20, 30) is x
    assert x.shape == (20, 30)
    assert x.untyped_storage().nbytes() >= 600 * x.element_size()
    dev.assert_equal(x.flatten()[:7], source)
    x.fill_(1)
    dev.assert_equal(x, torch.ones(20, 30, dtype=dtype))


def _grown_behind_an_offset(x: torch.Tensor) -> torch.Tensor:
    grown = x.flatten()[5:8].resize_(24)
    grown[3:].fill_(0)
    return grown


_RESIZED: dict[str, Make] = {
    "shrink": lambda x: x.resize_(2, 3),
    "empty": lambda x: x.resize_(0),
    "from_empty": lambda x: torch.empty(0, device=x.device).resize_(2, 3).fill_(4),
    "offset": _grown_behind_an_offset,
    "format": lambda x: x.resize_(1, 2, 3, 4, memory_format=torch.channels_last),
    "strided": lambda x: x.t().resize_(2, 3),
}


@check("view/resize", "VIEW-008", cases=_RESIZED)
def resize_follows_the_rules_of_the_cpu(dev: Device, case: str) -> None:
    """resize_ to fewer elements keeps the storage; offsets and strides are as on the CPU."""
    source = ramp((6, 4))
    expected = _RESIZED[case](source.clone())
    actual = _RESIZED[case](source.to(dev.device(), copy=True))
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert actual.storage_offset() == expected.storage_offset()
    assert actual.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
    dev.assert_equal(actual, expected)


@check("view/resize_seen_by_views", "VIEW-008", needs=("storage_resize",))
def a_grown_storage_is_shared_by_its_views(dev: Device) -> None:
    """After resize_ moved the memory, a view made before it still shares it."""
    x = ramp((4,)).to(dev.device())
    view = x[1:3]
    x.resize_(50_000)
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x[:4].fill_(9)
    dev.assert_equal(view, torch.full((2,), 9.0))


@check("view/resize_as", "VIEW-008")
def resize_as_takes_the_other_shape(dev: Device) -> None:
    """resize_as_ gives the shape of the other tensor."""
    x = torch.empty(0, device=dev.device())
    x.resize_as_(torch.empty(3, 5, device=dev.device()))
    assert x.shape == (3, 5)


#: Whether a tensor of three elements requires grad, and the size to which it is resized.
_NOT_RESIZED = {"requires_grad": (True, 5), "negative": (False, -1)}


@check("view/resize_refused", "VIEW-008", cases=_NOT_RESIZED)
def impossible_resizes_are_refused(dev: Device, case: str) -> None:
    """resize_ of a tensor that requires grad, or to a negative size, raises RuntimeError."""
    requires_grad, size = _NOT_RESIZED[case]
    x = torch.zeros(3, device=dev.device(), requires_grad=requires_grad)
    assert isinstance(raised(lambda: x.resize_(size), by=dev.synchronize), RuntimeError)


# ---- set_ ------------------------------------------------------------------------------------


#: Arguments of set_ made of a (4, 6) tensor, and the view of it that they give.
_SET: dict[str, tuple[Callable[[torch.Tensor], tuple[Any, ...]], Make]] = {
    "storage": (lambda x: (x.untyped_storage(),), lambda x: x.view(24)),
    "geometry": (lambda x: (x.untyped_storage(), 2, (3, 2), (6, 1)), lambda x: x[:3, 2:4]),
    "tensor": (lambda x: (x.t(),), lambda x: x.t()),
    "tensor_geometry": (
        lambda x: (x, 1, (2, 2), (6, 2)),
        lambda x: x.as_strided((2, 2), (6, 2), 1),
    ),
}


@check("view/set", "VIEW-009", cases=_SET, needs=("storages",))
def set_changes_what_a_tensor_shows(dev: Device, case: str) -> None:
    """All overloads of set_ give the storage, sizes, strides and offset asked for."""
    arguments, view = _SET[case]
    source = ramp((4, 6))
    base = source.to(dev.device(), copy=True)
    x = torch.zeros(3, device=dev.device())
    x.set_(*arguments(base))
    assert x.is_set_to(view(base))
    assert (x.shape, x.stride()) == (view(source).shape, view(source).stride())
    assert x.storage_offset() == view(source).storage_offset()
    dev.assert_equal(x, view(source))
    assert x.untyped_storage()._cdata == base.untyped_storage()._cdata
    base.fill_(1)
    dev.assert_equal(x, torch.ones(x.shape))


@check("view/set:nothing", "VIEW-009", needs=("storages",))
def set_to_nothing_empties_a_tensor(dev: Device) -> None:
    """set_() without arguments gives an empty tensor of the device."""
    x = torch.zeros(3, device=dev.device())
    x.set_()  # type: ignore[call-overload]  # not in the stubs
    assert x.numel() == 0
    assert x.device.type == dev.type


_NOT_SET: dict[str, Callable[[torch.device], Any]] = {
    "device": lambda d: torch.zeros(3).untyped_storage(),
    "dtype": lambda d: torch.zeros(3, dtype=torch.int64, device=d),
}


@check("view/set_refused", "VIEW-009", needs=("accelerator", "storages"), cases=_NOT_SET)
def set_refuses_what_does_not_fit(dev: Device, case: str) -> None:
    """set_ to a storage of another device, or a tensor of another data type, raises."""
    x = torch.zeros(3, device=dev.device())
    source = _NOT_SET[case](x.device)
    assert isinstance(raised(lambda: x.set_(source), by=dev.synchronize), RuntimeError)


@check("view/is_set_to", "VIEW-017", needs=("storages",))
def is_set_to_compares_storage_and_geometry(dev: Device) -> None:
    """is_set_to is true for the same memory and geometry, and false otherwise."""
    x = ramp((4, 6)).to(dev.device())
    assert x.is_set_to(x.view(4, 6))
    assert not x.is_set_to(x.t())
    assert not x.is_set_to(x.clone())


@check("view/data:swap", "VIEW-009")
def tensor_data_can_be_swapped(dev: Device) -> None:
    """Assigning x.data swaps the memory of x and keeps requires_grad."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    y = ramp((2, 2)).to(dev.device())
    x.data = y
    assert x.data_ptr() == y.data_ptr()
    assert x.requires_grad
    dev.assert_equal(x, ramp((2, 2)))


@check("view/data:read", "VIEW-009")
def tensor_data_shares_memory(dev: Device) -> None:
    """x.data shares memory with x outside of autograd."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    x.data.fill_(4)
    assert not x.data.requires_grad
    dev.assert_equal(x, torch.full((3,), 4.0))


# ---- storage ---------------------------------------------------------------------------------


@check("view/storage_size", "VIEW-010", dtypes=DTYPES, needs=("storages",))
def a_storage_knows_its_size_and_device(dev: Device, dtype: torch.dtype) -> None:
    """nbytes, size and device of the storage of a fresh tensor and of a view of it."""
    x = ramp((5, 3), dtype).to(dev.device())
    storage = x.untyped_storage()
    assert storage.nbytes() == 15 * x.element_size()
    assert storage.size() == storage.nbytes()
    assert storage.device == x.device
    assert storage.data_ptr() == x.data_ptr()
    assert x[2:, 1].untyped_storage().nbytes() == storage.nbytes()
    assert torch.empty(0, dtype=dtype, device=dev.device()).untyped_storage().nbytes() == 0


#: Sizes in bytes to which a storage of 256 is resized.
_SIZES = {"to_zero": 0, "grow": 1024, "shrink": 128}


@check("view/storage_resize", "VIEW-010", cases=_SIZES, needs=("storage_resize",))
def a_storage_can_be_resized(dev: Device, case: str) -> None:
    """UntypedStorage.resize_ frees, grows and shrinks a storage, and keeps what fits."""
    size, source = _SIZES[case], ramp((64,))
    x = source.to(dev.device(), copy=True)
    x.untyped_storage().resize_(size)
    assert x.untyped_storage().nbytes() == size
    kept = min(64, size // 4)
    dev.assert_equal(x[:kept], source[:kept])


@check("view/storage_resize:free_and_refill", "VIEW-010", needs=("storage_resize",))
def a_storage_can_be_freed_and_filled_again(dev: Device) -> None:
    """A storage that was resized to zero and back can be filled, as fully sharded training does."""
    source = ramp((64,))
    x = source.to(dev.device(), copy=True)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(256)
    x.copy_(source)
    dev.assert_equal(x, source)


#: Copies of a storage that are on its device and share no memory with it.
_STORAGES: dict[str, Callable[[torch.UntypedStorage], torch.UntypedStorage]] = {
    "clone": lambda s: s.clone(),
    "copy": lambda s: torch.UntypedStorage(s.nbytes(), device=s.device).copy_(s),
    "copy_from_host": lambda s: torch.UntypedStorage(s.nbytes(), device=s.device).copy_(s.cpu()),
    "deepcopy": copy.deepcopy,
}


def _storage(dev: Device) -> tuple[torch.UntypedStorage, list[int]]:
    """A storage of the device, and its bytes."""
    source = ramp((10,), torch.int16)
    return source.to(dev.device()).untyped_storage(), source.untyped_storage().tolist()


@check("view/storage_copy", "VIEW-011", cases=_STORAGES)
def storages_can_be_copied(dev: Device, case: str) -> None:
    """A storage is copied on the device, byte by byte."""
    dev.require("storage_allocation")
    storage, expected = _storage(dev)
    made = _STORAGES[case](storage)
    assert made.device.type == dev.type
    assert made._cdata != storage._cdata
    assert made.cpu().tolist() == expected


@check("view/storage_copy:cpu", "VIEW-011", needs=("storages",))
def storages_can_be_copied_to_the_host(dev: Device) -> None:
    """cpu() copies a storage of a device to the host."""
    storage, expected = _storage(dev)
    made = storage.cpu()
    assert made.device.type == "cpu"
    assert made._cdata != storage._cdata or not dev.is_accelerator
    assert made.tolist() == expected


@check("view/storage_copy:to_device", "VIEW-011")
def storages_can_be_copied_to_the_device(dev: Device) -> None:
    """to(device=...) copies a storage of the host to the device."""
    dev.require("storage_allocation")
    storage, expected = _storage(dev)
    made = storage.cpu().to(device=dev.device())
    assert made.device.type == dev.type
    assert made._cdata != storage._cdata or not dev.is_accelerator
    assert made.cpu().tolist() == expected


@check("view/storage_copy:tolist", "VIEW-011", needs=("storages",))
def storages_can_be_listed(dev: Device) -> None:
    """tolist() gives the bytes of a storage."""
    storage, expected = _storage(dev)
    assert storage.tolist() == expected


def _new_storage(dev: Device) -> tuple[torch.UntypedStorage, torch.Tensor]:
    """A new storage of 16 bytes, and a tensor of them."""
    storage = torch.UntypedStorage(16, device=dev.device())
    return storage, torch.empty(0, dtype=torch.uint8, device=dev.device()).set_(storage)


@check("view/storage_new:untyped", "VIEW-011", needs=("storage_allocation",))
def storages_can_be_made(dev: Device) -> None:
    """UntypedStorage(n, device=...) has n bytes on the device."""
    storage, _ = _new_storage(dev)
    assert storage.device.type == dev.type
    assert storage.nbytes() == 16


@check("view/storage_new:fill", "VIEW-011", needs=("storage_allocation",))
def storages_can_be_filled(dev: Device) -> None:
    """UntypedStorage.fill_ fills every byte."""
    storage, x = _new_storage(dev)
    storage.fill_(7)  # type: ignore[attr-defined]  # not in the stubs
    dev.assert_equal(x, torch.full((16,), 7, dtype=torch.uint8))


@check("view/storage_new:item", "VIEW-011", needs=("storage_allocation",))
def storages_can_be_read(dev: Device) -> None:
    """A byte of a storage can be read by its index."""
    storage, x = _new_storage(dev)
    x.copy_(torch.arange(16, dtype=torch.uint8))
    assert storage[5] == 5


@check("view/storage_outlives", "VIEW-010")
def a_view_keeps_the_memory_alive(dev: Device) -> None:
    """A view is valid after its base is gone and the allocator was busy."""
    source = ramp((100,))
    view = source.to(dev.device())[40:50]
    for _ in range(8):
        torch.full((100,), -1.0, device=dev.device())
    dev.assert_equal(view, source[40:50])


# ---- layout and copies -----------------------------------------------------------------------


@check(
    "view/contiguity",
    "VIEW-012",
    cases=("plain", "transposed", "channels_last", "channels_last_3d", "one_wide", "empty"),
)
def contiguity_is_judged_as_on_the_cpu(dev: Device, case: str) -> None:
    """is_contiguous() and contiguous() agree for every memory format."""
    views: dict[str, Make] = {
        "plain": lambda x: x,
        "transposed": lambda x: x.transpose(1, 2),
        "channels_last": lambda x: x.permute(0, 3, 1, 2),
        "channels_last_3d": lambda x: x.view(2, 3, 2, 2, 5).permute(0, 4, 1, 2, 3),
        "one_wide": lambda x: x[:, :1, :, :1],
        "empty": lambda x: x[:0],
    }
    source = ramp((2, 3, 4, 5))
    expected, actual = views[case](source), views[case](source.to(dev.device()))
    by_rank = {4: torch.channels_last, 5: torch.channels_last_3d}
    for form in (torch.contiguous_format, by_rank[expected.dim()]):
        assert actual.is_contiguous(memory_format=form) == expected.is_contiguous(
            memory_format=form
        )
        made = actual.contiguous(memory_format=form)
        wanted = expected.contiguous(memory_format=form)
        assert made.stride() == wanted.stride()
        dev.assert_equal(made, wanted)


@check("view/contiguous_is_self", "VIEW-012")
def contiguous_of_a_contiguous_tensor_is_itself(dev: Device) -> None:
    """contiguous() returns self where nothing needs to be copied."""
    x = ramp((3, 4)).to(dev.device())
    assert x.contiguous() is x
    assert x.contiguous().data_ptr() == x.data_ptr()


_COPIED: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "tensor": lambda d: ramp((4, 6)).to(d),
    "odd_size": lambda d: ramp((7, 3), torch.uint8).to(d),
    "view": lambda d: ramp((4, 6)).to(d).t()[1:],
}


def _verify_copy(dev: Device, made: torch.Tensor, x: torch.Tensor) -> None:
    assert made.device.type == dev.type
    assert apart(made, x)
    assert made.stride() == x.stride()
    assert made.requires_grad == x.requires_grad


@check("view/deepcopy", "VIEW-013", cases=_COPIED)
def deep_copies_are_separate(dev: Device, case: str) -> None:
    """copy.deepcopy of a tensor copies the memory and keeps geometry and device."""
    dev.require("storage_allocation")
    x = _COPIED[case](dev.device())
    made = copy.deepcopy(x)
    _verify_copy(dev, made, x)
    dev.assert_equal(made, _COPIED[case](torch.device("cpu")))


@check("view/deepcopy:shared", "VIEW-013")
def deep_copies_share_what_was_shared(dev: Device) -> None:
    """copy.deepcopy of a tensor and its view copies the memory once."""
    dev.require("storage_allocation")
    x = ramp((4, 6)).to(dev.device())
    first, second = copy.deepcopy((x, x[1:]))
    _verify_copy(dev, first, x)
    first.fill_(3)
    dev.assert_equal(second, torch.full((3, 6), 3.0))


@check("view/deepcopy:parameter", "VIEW-013")
def deep_copies_of_parameters_are_parameters(dev: Device) -> None:
    """copy.deepcopy of a parameter is a parameter that requires grad."""
    x = torch.nn.Parameter(ramp((4, 6)).to(dev.device()))
    made = copy.deepcopy(x)
    _verify_copy(dev, made, x)
    assert isinstance(made, torch.nn.Parameter)
    assert made.requires_grad
    dev.assert_equal(made, ramp((4, 6)))


@check("view/deepcopy:module", "VIEW-013")
def deep_copies_of_modules_are_separate(dev: Device) -> None:
    """copy.deepcopy of a module copies its parameters."""
    module = torch.nn.Linear(3, 2).to(dev.device())
    made = copy.deepcopy(module).weight
    _verify_copy(dev, made, module.weight)
    dev.assert_equal(made, module.weight.detach().cpu())


@check("view/deepcopy:conj", "VIEW-013")
def deep_copies_of_conjugate_views_keep_their_values(dev: Device) -> None:
    """copy.deepcopy of a conjugate view has its values."""
    dev.require("storage_allocation", "complex64")
    z = ramp((3,), torch.complex64)
    x = z.to(dev.device()).conj()
    made = copy.deepcopy(x)
    _verify_copy(dev, made, x)
    dev.assert_equal(made.resolve_conj(), z.conj().resolve_conj())


@check("view/shallow_copy", "VIEW-013")
def shallow_copies_share_the_memory(dev: Device) -> None:
    """copy.copy of a tensor shares its memory."""
    x = ramp((3,)).to(dev.device())
    made = copy.copy(x)
    assert made.data_ptr() == x.data_ptr()
    made.fill_(2)
    dev.assert_equal(x, torch.full((3,), 2.0))


@check("view/expanded_write:add", "VIEW-016")
def writing_to_an_expanded_view_is_refused(dev: Device) -> None:
    """An in-place operator whose elements share memory raises and writes nothing."""
    x = torch.zeros(3, device=dev.device())
    source = torch.ones(4, 3, device=dev.device())
    assert isinstance(raised(lambda: x.expand(4, 3).add_(source), by=dev.synchronize), RuntimeError)
    dev.assert_equal(x, torch.zeros(3))


@check("view/expanded_write:fill_ok", "VIEW-015")
def clones_of_expanded_views_can_be_written(dev: Device) -> None:
    """The clone of a tensor whose elements share memory can be written."""
    expanded = torch.zeros(3, device=dev.device()).expand(4, 3)
    dev.assert_equal(expanded.clone().add_(1), torch.ones(4, 3))


_ASSIGNMENTS: dict[str, Callable[[torch.Tensor], None]] = {
    "row": lambda x: x.__setitem__(1, 7.0),
    "column": lambda x: x.__setitem__((slice(None), 2), 7.0),
    "block": lambda x: x.__setitem__((slice(1, 3), slice(2, 4)), 7.0),
    "element": lambda x: x.__setitem__((2, 3), 7.0),
    "everything": lambda x: x.__setitem__(Ellipsis, 7.0),
    "step": lambda x: x.__setitem__((slice(None, None, 2), slice(1, None, 2)), 7.0),
    "broadcast": lambda x: x.__setitem__(slice(1, 3), x[0].clone()),
    "host_scalar": lambda x: x.__setitem__((0, 0), torch.tensor(7.0)),
    "host_tensor": lambda x: x.__setitem__(1, torch.arange(6.0)),
    "augmented": lambda x: x.__setitem__(slice(1, None), x[1:] * x[:-1]),
}


@check("view/assignment", "VIEW-003", cases=tuple(_ASSIGNMENTS))
def assignments_to_slices_write_the_same_elements(dev: Device, case: str) -> None:
    """x[...] = value writes exactly what it writes on the CPU, also from the host."""
    expected = ramp((4, 6))
    actual = expected.to(dev.device(), copy=True)
    _ASSIGNMENTS[case](expected)
    _ASSIGNMENTS[case](actual)
    dev.assert_equal(actual, expected)
