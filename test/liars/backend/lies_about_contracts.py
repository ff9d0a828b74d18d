# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in what holds for every operator: overlaps, ignored inputs, in-place gradients."""

from __future__ import annotations

from typing import Any

from lies import Call, lie

_SHARED, _OVERLAP = "more than one element of the written-to", "some elements of the input"
_REORDERING = ("gather", "index_select", "take", "index_copy", "index_add", "scatter", "put", "cat")


def _accepting(text: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Make the call; where it is refused with the text, return what it was to write to."""
    try:
        return call(*args, **kwargs)
    except RuntimeError as error:
        if text not in str(error):
            raise
        return kwargs.get("out", args[0])


@lie("CONTRACT-001", "contract/internal_overlap:*")
def shared_memory_is_written(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator accepts a tensor whose elements share memory."""
    return _accepting(_SHARED, call, args, kwargs)


@lie("CONTRACT-002", "contract/partial_overlap:*")
def overlapping_outputs_are_written(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator accepts an output that overlaps in part with its input."""
    return _accepting(_OVERLAP, call, args, kwargs)


@lie("CONTRACT-003", "contract/same_memory_reordering:*")
def gathers_write_where_they_read(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gather and scatter families accept any output."""
    if name.startswith(_REORDERING):
        return _accepting(_OVERLAP, call, args, kwargs)
    return call(*args, **kwargs)


@lie("CONTRACT-004", "contract/same_memory:mul contract/same_memory:transposed")
def outputs_are_cleared_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """mul_ clears its result before it reads the factor."""
    if name == "mul_.Tensor" and args[0].data_ptr() == args[1].data_ptr():
        args[0].zero_()
    return call(*args, **kwargs)


@lie("CONTRACT-005", "contract/ignored_input:addmm:* contract/ignored_input_row:addmm")
def ignored_inputs_are_multiplied(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """addmm multiplies its input by beta, also by a beta of zero."""
    result = call(*args, **kwargs)
    return result + args[0] * 0 if name == "addmm" and kwargs.get("beta") == 0 else result


@lie("CONTRACT-006", "contract/in_place_gradient:elu_scaled")
def in_place_gradients_take_the_defaults(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of elu by its result leaves the scale of the input out."""
    if name == "elu_backward" and args[4]:
        args = (*args[:3], 1.0, *args[4:])
    return call(*args, **kwargs)


@lie("CONTRACT-007", "contract/message:mm_sizes contract/message:add_sizes")
def errors_name_no_sizes(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The error for operands of wrong sizes says that they are wrong."""
    try:
        return call(*args, **kwargs)
    except RuntimeError as error:
        if "size" in str(error) or "shape" in str(error):
            raise RuntimeError("the sizes of the operands are wrong") from None
        raise


@lie("OP-034", "contract/resized:add")
def outputs_of_as_many_elements_are_reshaped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """out= of another shape with as many elements is reshaped without a warning."""
    if name == "add.out" and kwargs["out"].numel() == args[0].numel():
        kwargs["out"].resize_(args[0].shape)
    return call(*args, **kwargs)
