# SPDX-License-Identifier: BSD-3-Clause
"""Views and storages: sharing, strides and offsets, writes through views, resize_ and set_."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from conformance.check import check
from conformance.device import Device
from conformance.observe import raised
from conformance.tensors import DTYPES, DTYPES_BY_SIZE, ramp

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
    dev.assert_equal(actual.view(torch.uint8), expected.view(torch.uint8))


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


@check("view/autograd_base", "VIEW-005", cases=("base", "in_place", "version", "multi_output"))
def autograd_knows_views(dev: Device, case: str) -> None:
    """Views know their base, share its version, and carry in-place changes into its graph."""
    x = ramp((4, 6)).to(dev.device())
    if case == "base":
        view = x.t()[1:]
        assert view._is_view()
        assert view._base is x
        assert not x._is_view()
    elif case == "in_place":
        leaf = x.clone().requires_grad_()
        y = leaf * 1
        y.t()[2].mul_(10)
        y.sum().backward()
        expected = torch.ones(4, 6)
        expected[:, 2] = 10
        assert leaf.grad is not None
        dev.assert_equal(leaf.grad, expected)
    elif case == "version":
        view = x[1]
        before = x._version
        view.add_(1)
        assert x._version == view._version == before + 1
        assert x.detach()._version == x._version
        x.data.add_(1)
        assert x._version == before + 1
    else:
        leaf = x.clone().requires_grad_()
        first, _ = (leaf * 1).split(3, dim=1)
        assert isinstance(raised(lambda: first.mul_(2)), RuntimeError)


@check("view/saved_tensor", "VIEW-005")
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
    assert isinstance(raised(works[case]), RuntimeError)


@check(
    "view/copies",
    "VIEW-007",
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
    assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert made.is_contiguous()
    dev.assert_equal(made, makes[case](source))
    made.zero_()
    dev.assert_equal(x, source)


_VIEW_COPIES = ("view", "expand", "permute", "t", "select", "unsqueeze", "diagonal", "unfold")


@check("view/view_copy", "VIEW-007", cases=_VIEW_COPIES)
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
    assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
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


@check(
    "view/resize",
    "VIEW-008",
    cases=("shrink", "empty", "from_empty", "offset", "format", "strided"),
)
def resize_follows_the_rules_of_the_cpu(dev: Device, case: str) -> None:
    """resize_ to fewer elements keeps the storage; offsets and strides are as on the CPU."""
    source = ramp((6, 4))
    results = []
    for base in (source.clone(), source.to(dev.device(), copy=True)):
        x = base
        if case == "shrink":
            x.resize_(2, 3)
        elif case == "empty":
            x.resize_(0)
        elif case == "from_empty":
            x = torch.empty(0, device=base.device).resize_(2, 3).fill_(4)
        elif case == "offset":
            x = base.flatten()[5:8]
            x.resize_(24)
            x[3:].fill_(0)
        elif case == "format":
            x.resize_(1, 2, 3, 4, memory_format=torch.channels_last)
        else:
            x = base.t()
            x.resize_(2, 3)
        results.append(x)
    expected, actual = results
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


@check("view/resize_refused", "VIEW-008", cases=("requires_grad", "negative"))
def impossible_resizes_are_refused(dev: Device, case: str) -> None:
    """resize_ of a tensor that requires grad, or to a negative size, raises RuntimeError."""
    x = torch.zeros(3, device=dev.device(), requires_grad=case == "requires_grad")
    assert isinstance(raised(lambda: x.resize_(5 if case == "requires_grad" else -1)), RuntimeError)


# ---- set_ ------------------------------------------------------------------------------------


@check(
    "view/set", "VIEW-009", cases=("storage", "geometry", "tensor", "nothing", "tensor_geometry")
)
def set_changes_what_a_tensor_shows(dev: Device, case: str) -> None:
    """All overloads of set_ give the storage, sizes, strides and offset asked for."""
    source = ramp((4, 6))
    base = source.to(dev.device(), copy=True)
    x = torch.zeros(3, device=dev.device())
    if case == "storage":
        x.set_(base.untyped_storage())
        assert x.shape == (24,)
        dev.assert_equal(x, source.flatten())
    elif case == "geometry":
        x.set_(base.untyped_storage(), 2, (3, 2), (6, 1))
        assert x.storage_offset() == 2
        dev.assert_equal(x, source[:3, 2:4])
    elif case == "tensor":
        x.set_(base.t())  # type: ignore[call-overload]  # not in the stubs
        assert x.is_set_to(base.t())
        dev.assert_equal(x, source.t())
    elif case == "tensor_geometry":
        x.set_(base, 1, (2, 2), (6, 2))  # type: ignore[call-overload]  # not in the stubs
        dev.assert_equal(x, source.as_strided((2, 2), (6, 2), 1))
    else:
        x.set_()  # type: ignore[call-overload]  # not in the stubs
        assert x.numel() == 0
        assert x.device.type == dev.type
        return
    assert x.untyped_storage()._cdata == base.untyped_storage()._cdata
    base.fill_(1)
    dev.assert_equal(x, torch.ones(x.shape))


@check("view/set_refused", "VIEW-009", needs=("accelerator",), cases=("device", "dtype"))
def set_refuses_what_does_not_fit(dev: Device, case: str) -> None:
    """set_ to a storage of another device, or a tensor of another data type, raises."""
    x = torch.zeros(3, device=dev.device())
    other = (
        torch.zeros(3) if case == "device" else torch.zeros(3, dtype=torch.int64, device=x.device)
    )
    source: Any = other.untyped_storage() if case == "device" else other
    assert isinstance(raised(lambda: x.set_(source)), RuntimeError)


@check("view/is_set_to", "VIEW-009")
def is_set_to_compares_storage_and_geometry(dev: Device) -> None:
    """is_set_to is true for the same memory and geometry, and false otherwise."""
    x = ramp((4, 6)).to(dev.device())
    assert x.is_set_to(x.view(4, 6))
    assert not x.is_set_to(x.t())
    assert not x.is_set_to(x.clone())


@check("view/data", "VIEW-009", cases=("swap", "read"))
def tensor_data_can_be_swapped(dev: Device, case: str) -> None:
    """x.data shares memory with x outside of autograd, and assigning it swaps the memory."""
    x = torch.ones(3, device=dev.device(), requires_grad=True)
    if case == "read":
        x.data.fill_(4)
        assert not x.data.requires_grad
        dev.assert_equal(x, torch.full((3,), 4.0))
    else:
        y = ramp((2, 2)).to(dev.device())
        x.data = y
        assert x.data_ptr() == y.data_ptr()
        assert x.requires_grad
        dev.assert_equal(x, ramp((2, 2)))


# ---- storage ---------------------------------------------------------------------------------


@check("view/storage_size", "VIEW-010", dtypes=DTYPES)
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


@check(
    "view/storage_resize",
    "VIEW-010",
    cases=("to_zero", "grow", "shrink", "free_and_refill"),
    needs=("storage_resize",),
)
def a_storage_can_be_resized(dev: Device, case: str) -> None:
    """UntypedStorage.resize_ frees, grows with its contents, and can be filled again."""
    source = ramp((64,))
    x = source.to(dev.device(), copy=True)
    storage = x.untyped_storage()
    if case == "to_zero":
        storage.resize_(0)
        assert storage.nbytes() == 0
    elif case == "grow":
        storage.resize_(1024)
        assert storage.nbytes() == 1024
        dev.assert_equal(x, source)
    elif case == "shrink":
        storage.resize_(128)
        assert storage.nbytes() == 128
        dev.assert_equal(x[:32], source[:32])
    else:
        # What fully sharded training does: drop the memory of a parameter, then gather it again.
        storage.resize_(0)
        storage.resize_(256)
        x.copy_(source)
        dev.assert_equal(x, source)


_STORAGES: dict[str, Callable[[torch.UntypedStorage, Device], Any]] = {
    "clone": lambda s, dev: s.clone(),
    "cpu": lambda s, dev: s.cpu(),
    "to_device": lambda s, dev: s.cpu().to(device=dev.device()),
    "copy": lambda s, dev: torch.UntypedStorage(s.nbytes(), device=dev.device()).copy_(s),
    "copy_from_host": lambda s, dev: torch.UntypedStorage(s.nbytes(), device=dev.device()).copy_(
        s.cpu()
    ),
    "deepcopy": lambda s, dev: copy.deepcopy(s),
    "tolist": lambda s, dev: s.tolist(),
}


@check("view/storage_copy", "VIEW-011", cases=tuple(_STORAGES))
def storages_can_be_copied(dev: Device, case: str) -> None:
    """A storage is copied on the device, to the host and back, byte by byte."""
    if case not in ("cpu", "tolist"):
        dev.require("storage_allocation")
    source = ramp((10,), torch.int16)
    storage = source.to(dev.device()).untyped_storage()
    made = _STORAGES[case](storage, dev)
    expected = source.untyped_storage().tolist()
    if case == "tolist":
        assert made == expected
        return
    assert made.device.type == ("cpu" if case == "cpu" else dev.type)
    if dev.is_accelerator or case not in ("cpu", "to_device"):
        assert made._cdata != storage._cdata
    assert made.cpu().tolist() == expected


@check(
    "view/storage_new",
    "VIEW-011",
    cases=("untyped", "fill", "item"),
    needs=("storage_allocation",),
)
def storages_can_be_made_and_used(dev: Device, case: str) -> None:
    """UntypedStorage(n, device=...) gives n bytes there that can be filled and read."""
    storage = torch.UntypedStorage(16, device=dev.device())
    assert storage.device.type == dev.type
    assert storage.nbytes() == 16
    if case == "fill":
        storage.fill_(7)  # type: ignore[attr-defined]  # not in the stubs
        x = torch.empty(0, dtype=torch.uint8, device=dev.device()).set_(storage)
        dev.assert_equal(x, torch.full((16,), 7, dtype=torch.uint8))
    elif case == "item":
        x = torch.empty(0, dtype=torch.uint8, device=dev.device()).set_(storage)
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


@check(
    "view/deepcopy",
    "VIEW-013",
    cases=("tensor", "odd_size", "view", "shared", "parameter", "module", "conj"),
)
def deep_copies_are_separate(dev: Device, case: str) -> None:
    """copy.deepcopy copies the memory, keeps geometry, sharing, requires_grad and device."""
    if case not in ("parameter", "module"):
        dev.require("storage_allocation")  # a parameter is cloned, any other tensor's storage is
    x = ramp((4, 6)).to(dev.device())
    if case == "tensor":
        made = copy.deepcopy(x)
        dev.assert_equal(made, ramp((4, 6)))
    elif case == "odd_size":
        made = copy.deepcopy(ramp((7, 3), torch.uint8).to(dev.device()))
        dev.assert_equal(made, ramp((7, 3), torch.uint8))
    elif case == "view":
        made = copy.deepcopy(x.t()[1:])
        assert made.stride() == x.t()[1:].stride()
        dev.assert_equal(made, ramp((4, 6)).t()[1:])
    elif case == "shared":
        first, second = copy.deepcopy((x, x[1:]))
        first.fill_(3)
        dev.assert_equal(second, torch.full((3, 6), 3.0))
        made = first
    elif case == "parameter":
        made = copy.deepcopy(torch.nn.Parameter(x))
        assert isinstance(made, torch.nn.Parameter)
        assert made.requires_grad
        dev.assert_equal(made, ramp((4, 6)))
    elif case == "module":
        module = torch.nn.Linear(3, 2).to(dev.device())
        made = copy.deepcopy(module).weight
        assert made.data_ptr() != module.weight.data_ptr()
        dev.assert_equal(made, module.weight.detach().cpu())
    else:
        dev.require("complex64")
        z = ramp((3,), torch.complex64)
        made = copy.deepcopy(z.to(dev.device()).conj())
        dev.assert_equal(made.resolve_conj(), z.conj().resolve_conj())
    assert made.device.type == dev.type
    assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


@check("view/shallow_copy", "VIEW-013")
def shallow_copies_share_the_memory(dev: Device) -> None:
    """copy.copy of a tensor shares its memory."""
    x = ramp((3,)).to(dev.device())
    made = copy.copy(x)
    assert made.data_ptr() == x.data_ptr()
    made.fill_(2)
    dev.assert_equal(x, torch.full((3,), 2.0))


@check("view/expanded_write", "VIEW-007", cases=("add", "fill_ok"))
def writing_to_an_expanded_view(dev: Device, case: str) -> None:
    """An in-place operator whose elements share memory raises; its clone can be written."""
    x = torch.zeros(3, device=dev.device())
    expanded = x.expand(4, 3)
    if case == "add":
        source = torch.ones(4, 3, device=dev.device())
        assert isinstance(raised(lambda: expanded.add_(source)), RuntimeError)
        dev.assert_equal(x, torch.zeros(3))
    else:
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
