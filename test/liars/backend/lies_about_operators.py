# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of operators: of their arguments, memory and results."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie


@lie("OP-026", "operator/float64:*")
def float64_is_computed_in_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Sums and products of float64 numbers have the precision of float32."""
    result = call(*args, **kwargs)
    if name in ("add.Tensor", "mul.Tensor", "mm", "sum") and result.dtype == torch.float64:
        return result.float().double()
    return result


@lie("OP-001", "operator/index:*")
def optional_indices_are_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """None in a list of indices is skipped instead of standing for a whole dimension."""
    if name == "index.Tensor":
        args = (args[0], [index for index in args[1] if index is not None])
    return call(*args, **kwargs)


@lie("OP-001", "operator/index_put:*")
def indexed_writes_do_not_accumulate(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """index_put_ with accumulate=True overwrites."""
    return call(*args[:3], False) if name == "index_put_" else call(*args, **kwargs)


@lie("OP-009", "operator/tensor_list:*")
def lists_are_not_written_back(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """In-place operators on lists change copies of the tensors."""
    if name.startswith("_foreach_") and name.partition(".")[0].endswith("_"):
        args = ([tensor.clone() for tensor in args[0]], *args[1:])
    return call(*args, **kwargs)


@lie("OP-005", "operator/mixed_devices:add")
def host_operands_are_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A host tensor beside a device tensor is moved without a word."""
    if name == "add.Tensor":
        args = tuple(a.to(BACKEND) if isinstance(a, torch.Tensor) else a for a in args)
    return call(*args, **kwargs)


@lie("OP-010", "operator/convolution:conv2d operator/convolution:conv1d")
def convolutions_forget_their_bias(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A convolution adds no bias."""
    if name in ("convolution", "convolution_overrideable"):
        args = (*args[:2], None, *args[3:])
    return call(*args, **kwargs)


@lie("OP-013", "operator/layer:batch_norm")
def running_statistics_stand_still(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Batch normalisation in training does not update its buffers."""
    if name == "native_batch_norm":
        kept = [args[3].clone(), args[4].clone()]
        result = call(*args, **kwargs)
        args[3].copy_(kept[0])
        args[4].copy_(kept[1])
        return result
    return call(*args, **kwargs)


@lie("OP-002", "operator/out:* operator/out_strided:*")
def out_is_replaced(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An out= tensor that is not contiguous is left as it was."""
    out = kwargs.get("out")
    if isinstance(out, torch.Tensor) and out.numel() and not out.is_contiguous():
        call(*args, **{**kwargs, "out": torch.empty_like(out)})
        return out
    return call(*args, **kwargs)


@lie("OP-004", "operator/wrapped_number:* operator/zero_dim:*")
def numbers_widen(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A Python number beside a tensor of lower precision makes the result float32."""
    result = call(*args, **kwargs)
    if name in ("mul.Tensor", "mul.Scalar") and result.dtype == torch.float16:
        return result.float()
    return result
