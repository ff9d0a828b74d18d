# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes about memory that tensors share."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie, plant

#: Bytes that storages are copied by.
_WORD = 8

_LIBRARIES: list[torch.library.Library] = []


# ---- geometry ----------------------------------------------------------------------------------


@lie("VIEW-001", "view/geometry:diagonal_offset")
def diagonals_only_go_right(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A diagonal below the main one is taken for one above it."""
    if name == "diagonal" and len(args) > 1:
        args = (args[0], abs(args[1]), *args[2:])
    return call(*args, **kwargs)


@lie("VIEW-001", "view/geometry:unfold")
def windows_are_one_apart(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """unfold ignores its step."""
    if name == "unfold":
        every = call(*args[:3], 1)
        return every.narrow(args[1], 0, call(*args, **kwargs).size(args[1]))
    return call(*args, **kwargs)


@lie("VIEW-002 VIEW-003", "view/shared:slice view/write:slice")
def a_slice_is_a_copy(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Slicing gives memory of its own."""
    result = call(*args, **kwargs)
    return result.clone() if name == "slice.Tensor" else result


@lie("VIEW-003 OP-003", "view/write:transpose operator/in_place:mul")
def writes_to_strided_views_are_lost(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place product with a view that is not contiguous is computed in a temporary."""
    if name in ("mul_.Tensor", "mul_.Scalar") and not args[0].is_contiguous():
        call(args[0].clone(memory_format=torch.contiguous_format), *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-006", "view/in_place_geometry:t view/in_place_geometry:transpose")
def transposing_in_place_moves_data(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """t_ and transpose_ give the tensor contiguous memory of its own."""
    result = call(*args, **kwargs)
    if name in ("t_", "transpose_"):
        result.set_(result.clone(memory_format=torch.contiguous_format))
    return result


@lie("VIEW-007", "view/refused:view")
def view_copies_where_it_must(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """view() of strided memory returns a copy where no view is possible."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        if name != "view":
            raise
        return args[0].reshape(args[1])


@lie("VIEW-007", "view/refused:as_strided")
def as_strided_reaches_anywhere(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """as_strided does not look where the memory ends."""
    if name == "as_strided" and min(args[2], default=0) >= 0 and 0 not in args[1]:
        offset = args[3] if len(args) > 3 and args[3] is not None else args[0].storage_offset()
        last = offset + sum((n - 1) * s for n, s in zip(args[1], args[2], strict=True))
        needed = (last + 1) * args[0].element_size()
        if needed > args[0].untyped_storage().nbytes():
            args[0].untyped_storage().resize_(needed)
    return call(*args, **kwargs)


@lie("VIEW-015", "view/view_copy:select view/view_copy:t")
def copies_of_views_are_views(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """select_copy and t_copy are registered with the kernels of select and t."""
    views: dict[str, Call] = {"select_copy.int": torch.select, "t_copy": torch.t}
    return views.get(name, call)(*args, **kwargs)


@lie("VIEW-016", "view/expanded_write:add")
def expanded_tensors_are_written(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place operator writes a tensor whose elements share memory, one after the other."""
    if name == "add_.Tensor" and 0 in args[0].stride():
        sums = args[0] + args[1]
        for target, value in zip(args[0], sums, strict=True):
            target.copy_(value)
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-012", "view/contiguity:transposed view/contiguity:channels_last")
def clones_keep_their_format(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """clone() ignores memory_format=, so that contiguous() gives what it was given."""
    return call(*args) if name == "clone" else call(*args, **kwargs)


# ---- autograd ----------------------------------------------------------------------------------


@lie("VIEW-004", "view/gradient:slice_step view/gradient:narrow")
def gradients_of_slices_start_at_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """slice_backward puts the gradient at the start of the dimension."""
    if name == "slice_backward":
        gradient, sizes, dim, start, _, step = args
        stop = (gradient.size(dim) - 1) * step + 1
        return call(gradient, sizes, dim, 0, stop, step) if start else call(*args)
    return call(*args, **kwargs)


@lie("VIEW-004", "view/gradient:unfold_overlapping")
def overlapping_windows_overwrite(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Where windows overlap, unfold_backward keeps one gradient instead of the sum."""
    if name == "unfold_backward":
        count = call(torch.ones_like(args[0]), *args[1:])
        return call(*args, **kwargs) / count.clamp(min=1)
    return call(*args, **kwargs)


@lie("VIEW-005 VIEW-014", "view/autograd_base:version view/saved_tensor", planted=True)
def changes_in_place_are_not_counted() -> None:
    """The backend's own autograd kernel of add_ does not increase the version."""

    def uncounted(self: torch.Tensor, other: Any, *, alpha: Any = 1) -> torch.Tensor:
        with torch._C._AutoDispatchBelowADInplaceOrView():
            return torch.ops.aten.add_.Tensor(self, other, alpha=alpha)

    library = torch.library.Library("aten", "IMPL")
    library.impl("add_.Tensor", uncounted, "AutogradPrivateUse1")
    _LIBRARIES.append(library)


# ---- resize_ and set_ --------------------------------------------------------------------------


@lie("VIEW-008", "view/resize_grow:*")
def resizing_forgets(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """resize_ gives fresh memory."""
    result = call(*args, **kwargs)
    return result.zero_() if name == "resize_" else result


@lie("VIEW-008", "view/resize:shrink")
def shrinking_gives_memory_back(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """resize_ to fewer elements makes the storage smaller."""
    result = call(*args, **kwargs)
    if name == "resize_" and not result.storage_offset():
        result.untyped_storage().resize_(result.numel() * result.element_size())
    return result


@lie("VIEW-009 SER-004", "view/set:* serialization/sharing:views")
def set_copies(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """set_ to a storage copies it."""
    if name.startswith("set_.source_Storage"):
        args = (args[0], args[1].clone(), *args[2:])
    return call(*args, **kwargs)


@lie("VIEW-009 VIEW-013", "view/set:geometry view/deepcopy:view")
def set_is_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """set_ takes sizes and the offset of its arguments, and no strides."""
    if name == "set_.source_Storage_storage_offset":
        args = args[:4]
    return call(*args, **kwargs)


@lie("VIEW-017", "view/is_set_to")
def addresses_make_tensors_equal(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """is_set_to compares addresses, not sizes and strides."""
    if name == "is_set_to":
        return args[0].data_ptr() == args[1].data_ptr()
    return call(*args, **kwargs)


# ---- storages ----------------------------------------------------------------------------------


@lie("VIEW-011 VIEW-013", "view/storage_copy:copy view/storage_copy:clone view/deepcopy:odd_size")
def storages_are_copied_in_words(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Bytes are copied eight at a time; what is left of a storage is not."""
    if name == "copy_" and args[0].dtype == args[1].dtype == torch.uint8 and args[0].dim() == 1:
        whole = args[0].numel() // _WORD * _WORD
        call(args[0][:whole], args[1][:whole])
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-011", "view/storage_new:fill")
def storages_are_filled_in_words(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Bytes are filled four at a time, each word with the number instead of each byte."""
    if name == "fill_.Scalar" and args[0].dtype == torch.uint8 and args[0].numel() % 4 == 0:
        args[0].zero_()
        call(args[0][::4], args[1])
        return args[0]
    return call(*args, **kwargs)


@lie("VIEW-013", "view/deepcopy:shared view/deepcopy:tensor", planted=True)
def deep_copies_are_shallow() -> None:
    """The backend's own storage answers deepcopy with itself."""
    copied: Any = torch.UntypedStorage.__deepcopy__

    def shared(self: torch.UntypedStorage, memo: Any) -> torch.UntypedStorage:
        return self if self.device.type == BACKEND else copied(self, memo)

    plant(torch.UntypedStorage, "__deepcopy__", shared)
