# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of operators: of their arguments, memory and results."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant
from torch.nn.attention import SDPBackend, sdpa_kernel

#: The operators that checks define.
_LIBRARY = "conformance_check::"


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


@lie("OP-005", "operator/apart:addmm operator/apart:mv")
def operands_of_another_index_are_moved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A tensor of another device of the type is moved to the device of the last operand."""
    if name in ("addmm", "mv"):
        args = tuple(a.to(args[-1].device) for a in args)
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


@lie("OP-002", "operator/out:sum operator/out:mean")
def empty_outs_stay_empty(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Reductions do not resize an out= tensor without elements, and return it as it was."""
    out = kwargs.get("out")
    if name.startswith(("sum.", "mean.")) and isinstance(out, torch.Tensor) and not out.numel():
        return out
    return call(*args, **kwargs)


@lie("OP-034", "operator/out_wrong_size:add operator/out_wrong_size:matmul")
def outs_are_resized_in_silence(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An out= tensor of another shape is resized without the warning."""
    out = kwargs.get("out")
    if isinstance(out, torch.Tensor) and out.numel():
        fresh = call(*args, **{**kwargs, "out": torch.empty_like(out).resize_(0)})
        return out.resize_(fresh.shape).copy_(fresh)
    return call(*args, **kwargs)


@lie("OP-003", "operator/in_place:relu operator/in_place:exp")
def in_place_results_have_new_memory(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """relu_ and exp_ compute elsewhere and let the tensor point there."""
    functions = {"relu_": torch.relu, "exp_": torch.exp}
    if name in functions:
        return args[0].set_(functions[name](args[0]))
    return call(*args, **kwargs)


@lie("OP-004", "operator/promotion:true_divide")
def quotients_of_integers_are_integers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """True division of two integers gives an integer."""
    result = call(*args, **kwargs)
    whole = name == "div.Tensor" and not any(a.is_floating_point() or a.is_complex() for a in args)
    return result.to(args[0].dtype) if whole else result


@lie("OP-004", "operator/promotion:lt")
def comparisons_take_the_first_type(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A comparison converts its second operand to the type of the first."""
    if name == "lt.Tensor":
        args = (args[0], args[1].to(args[0].dtype))
    return call(*args, **kwargs)


@lie("OP-006", "operator/second_device:matmul operator/second_device:cat")
def results_are_on_the_first_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The result of a product or of cat is on device 0, wherever the operands are."""
    result = call(*args, **kwargs)
    return result.to(torch.device(BACKEND, 0)) if name in ("mm", "cat") else result


@lie("OP-006", "operator/second_device:sort")
def the_device_of_the_operands_becomes_current(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """An operator makes the device of its operand current and leaves it so."""
    if args and isinstance(args[0], torch.Tensor) and args[0].device.type == BACKEND:
        torch.accelerator.set_device_index(args[0].device)
    return call(*args, **kwargs)


@lie("OP-007", "operator/empty:matmul_inner operator/empty:bmm_inner")
def empty_products_are_not_written(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product over no elements returns the memory it was given as it is."""
    result = call(*args, **kwargs)
    return result.fill_(7) if name in ("mm", "bmm") and not args[0].size(-1) else result


@lie("OP-035", "operator/empty_refused:amax operator/empty_refused:max")
def the_largest_of_nothing_is_minus_infinity(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A maximum over no elements gives the number it would have started with."""
    try:
        return call(*args, **kwargs)
    except (RuntimeError, IndexError):
        if name not in ("max", "amax"):
            raise
        shape = args[0].shape[1:] if name == "amax" else ()
        return args[0].new_full(shape, float("-inf"))


@lie("OP-010", "operator/convolution:conv2d operator/convolution:conv2d_no_bias")
def gradients_of_weights_are_averaged(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of a convolution's weight is that of the mean over the batch."""
    if name == "convolution_backward":
        first, weight, bias = call(*args, **kwargs)
        return first, weight / args[0].size(0), bias
    return call(*args, **kwargs)


@lie("OP-011", "operator/recurrent:gru")
def gates_are_in_another_order(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The GRU cell takes the first gate for the second, as another library orders them."""
    if name == "_thnn_fused_gru_cell":
        inputs, hidden, state, *biases = args

        def swapped(gates: torch.Tensor) -> torch.Tensor:
            first, second, third = gates.chunk(3, -1)
            return torch.cat([second, first, third], -1)

        args = (swapped(inputs), swapped(hidden), state, *map(swapped, biases))
    return call(*args, **kwargs)


@lie("OP-011", "operator/recurrent:lstm")
def the_cell_has_no_gradient(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The backward of the LSTM cell ignores the gradient that comes through the cell's state."""
    if name == "_thnn_fused_lstm_cell_backward_impl" and args[1] is not None:
        args = (args[0], torch.zeros_like(args[1]), *args[2:])
    return call(*args, **kwargs)


_FUSED = "_scaled_dot_product_fused_attention_overrideable"


@lie("OP-012", "operator/attention:causal")
def causal_masks_end_at_the_corner(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A causal mask that is not square is aligned with its lower right corner."""
    if name == _FUSED and args[5]:
        queries, keys = args[0].size(2), args[1].size(2)
        mask = torch.ones(queries, keys, dtype=torch.bool, device=args[0].device)
        args = (*args[:3], mask.tril(keys - queries), args[4], False, *args[6:])
    return call(*args, **kwargs)


@lie("OP-012", "operator/attention:empty_row")
def attention_to_nothing_is_nan(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A row of which everything is masked gives NaN instead of zeros."""
    result = call(*args, **kwargs)
    if name == _FUSED:
        masked = torch.isneginf(result[1])[..., None]
        return (result[0].masked_fill(masked, float("nan")), *result[1:])
    return result


@lie("OP-012", "operator/attention:long")
def blocks_of_keys_are_not_joined(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Attention normalises each block of 128 keys by itself."""
    if name == _FUSED:
        blocks = zip(args[1].split(128, 2), args[2].split(128, 2), strict=True)
        results = [call(args[0], k, v, *args[3:], **kwargs) for k, v in blocks]
        mean = torch.stack([result[0] for result in results]).mean(0)
        return (mean, *results[-1][1:])
    return call(*args, **kwargs)


@lie("OP-012", "operator/attention:grouped_query")
def groups_of_heads_are_interleaved(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Query head h has the keys of head h modulo their number; neighbours should share them."""
    if name == _FUSED and args[1].size(1) < args[0].size(1):
        times = (1, args[0].size(1) // args[1].size(1), 1, 1)
        args = (args[0], args[1].repeat(times), args[2].repeat(times), *args[3:])
    return call(*args, **kwargs)


@lie("OP-040", "operator/attention_form:flash_attention", planted=True)
def any_form_of_attention_is_math() -> None:
    """Attention in a form that was forced is computed by its composite form, without a word."""
    attention = torch.nn.functional.scaled_dot_product_attention

    def composite(*args: Any, **kwargs: Any) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return attention(*args, **kwargs)

    plant(torch.nn.functional, "scaled_dot_product_attention", composite)


@lie("OP-043", "operator/attention_dropout_again operator/attention_dropout_gradient:*")
def attention_draws_again_for_its_gradient(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The backward pass of attention with dropout drops other weights than the forward pass."""
    if name == f"{_FUSED}_backward" and args[12] > 0:
        args = (*args[:14], args[14] + 1, *args[15:])
    return call(*args, **kwargs)


@lie("OP-041", "operator/attention_dropout:tenth")
def attention_keeps_what_it_should_drop(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """dropout_p of attention is taken for the share of the weights that are kept."""
    if name == _FUSED and args[4] > 0:
        p = args[4]
        result = call(*args[:4], 1 - p, *args[5:], **kwargs)
        return (result[0] * (p / (1 - p)), *result[1:])
    return call(*args, **kwargs)


@lie("OP-041", "operator/attention_dropout_rows")
def queries_lose_the_same_keys(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Dropout in attention draws for the first query, and takes that for all."""
    if name == _FUSED and args[4] > 0:
        result = call(*args, **kwargs)
        return (result[0][:, :, :1].expand_as(result[0]).contiguous(), *result[1:])
    return call(*args, **kwargs)


@lie("OP-042", "operator/attention_memory")
def fused_attention_makes_the_scores(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The kernel of attention has its matrix of scores in a workspace."""
    if name == _FUSED:
        scores = args[0] @ args[1].mT
        result = call(*args, **kwargs)
        del scores
        return result
    return call(*args, **kwargs)


@lie("OP-009", "operator/tensor_list:foreach_many")
def long_lists_have_an_end(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators on lists treat as many tensors as one launch takes; the rest is as it was."""
    result = call(*args, **kwargs)
    if name == "_foreach_add.Scalar":
        return [*result[:320], *(tensor.clone() for tensor in args[0][320:])]
    return result


@lie("OP-014", "operator/result:var_mean operator/result:std_mean")
def variances_are_biased(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Variances are divided by the number of elements, whatever the correction."""
    if name.startswith(("var", "std")) and "correction" in kwargs:
        kwargs = {**kwargs, "correction": 0}
    return call(*args, **kwargs)


@lie("OP-014", "operator/result:topk")
def topk_is_not_sorted(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """topk finds the right elements and gives them in the order of their positions."""
    result = call(*args, **kwargs)
    if name == "topk":
        indices = result[1].sort().values
        return args[0].gather(-1, indices), indices
    return result


@lie("OP-037", "operator/strided:where")
def conditions_are_read_in_a_row(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """where takes its second operand for contiguous."""
    if name == "where.self" and not args[1].is_contiguous():
        args = (args[0], args[1].as_strided(args[1].shape, args[0].contiguous().stride()), args[2])
    return call(*args, **kwargs)


@lie("OP-036", "operator/far:add operator/far:sum")
def offsets_have_31_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A kernel counts bytes in 31 bits: what is 2 GiB away is read from the start."""
    if name in ("add.Tensor", "sum.dim_IntList"):
        x = args[0]
        reach = [(n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)]
        if sum(reach) * x.element_size() >= 1 << 31:
            limit = (1 << 30) // x.element_size()
            rows = torch.arange(x.size(0), device=x.device) % ((1 << 31) // (limit * x.itemsize))
            args = (x[rows], *args[1:])
    return call(*args, **kwargs)


@lie("OP-015", "operator/linalg:det")
def determinants_lose_their_sign(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The determinant does not count how often rows were exchanged."""
    result = call(*args, **kwargs)
    return (-result[0], *result[1:]) if name == "_linalg_det" else result


@lie("OP-016", "operator/complex:conj_matmul")
def products_transpose_without_conjugating(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product asks its library for the transpose where the conjugate transpose is meant."""
    if name == "mm":
        args = tuple(a.conj() if a.is_conj() else a for a in args)
    return call(*args, **kwargs)


@lie("OP-017", "operator/gradcheck:softmax")
def a_gradient_is_off_by_a_factor(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The backward of softmax gives nine tenths of the gradient in double precision."""
    result = call(*args, **kwargs)
    narrow = name == "_softmax_backward_data" and result.dtype == torch.float64
    return result * 0.9 if narrow else result


@lie("OP-038", "operator/anomaly")
def division_by_zero_is_zero(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A quotient is zero where its divisor is, so that no NaN shows."""
    result = call(*args, **kwargs)
    return torch.where(args[1] == 0, 0.0, result) if name == "div.Tensor" else result


@lie("OP-013 OP-018", "operator/loss:cross_entropy operator/train:sgd")
def losses_are_not_averaged_backward(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of the mean of a loss is that of its sum."""
    if name == "nll_loss_backward" and args[4] == 1:
        args = (*args[:4], 2, *args[5:])
    return call(*args, **kwargs)


@lie("OP-019", "operator/train_fused:adam operator/train_fused:adamw")
def fused_steps_are_counted_twice(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A fused step adds one to the number of steps after others have done so."""
    if name.startswith("_fused_adam"):
        torch._foreach_add_(args[5], 1)
    return call(*args, **kwargs)


@lie("OP-023", "operator/custom:device_kernel", planted=True)
def kernels_of_libraries_are_not_found() -> None:
    """What torch.library registers for the name of the device never reaches its dispatch key."""
    register: Any = torch.library.impl

    def lost(name: Any, types: Any, function: Any = None, *, lib: Any = None) -> Any:
        return None if types == BACKEND else register(name, types, function, lib=lib)

    plant(torch.library, "impl", lost)


@lie("OP-024", "operator/cpu_only:mutation operator/cpu_only:list")
def the_fallback_drops_mutations(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The fallback to the CPU does not copy back what the operator changed."""
    if not name.startswith(_LIBRARY):
        return call(*args, **kwargs)
    copied = [[t.clone() for t in a] if isinstance(a, list) else a for a in args]
    return call(*[a.clone() if isinstance(a, torch.Tensor) else a for a in copied], **kwargs)


@lie("OP-039", "operator/fallback_view:function operator/fallback_view:in_place")
def the_fallback_copies_views(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The fallback runs operators that return views, too, and returns copies."""
    if name == f"{_LIBRARY}first_row":
        return call(args[0].cpu()).to(BACKEND)
    return call(*args, **kwargs)


@lie("OP-025", "operator/fallback_counter", planted=True)
def fallbacks_are_not_counted() -> None:
    """The counter of fallbacks always says that there was none."""
    plant(torch.get_device_module(BACKEND), "_fallback_counts", dict)


@lie("OP-025 STREAM-047", "operator/fallback_hidden:mm")
def products_run_on_the_cpu(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Matrix products and softmax run on the CPU, and the fallback counter does not show it."""
    if name in ("mm", "_softmax"):
        host = [a.cpu() if isinstance(a, torch.Tensor) else a for a in args]
        return call(*host, **kwargs).to(BACKEND)
    return call(*args, **kwargs)


@lie("OP-028", "operator/dlpack_capsule:share", planted=True)
def capsules_hold_copies() -> None:
    """A DLPack capsule carries a copy of the tensor."""
    export = torch.utils.dlpack.to_dlpack
    plant(torch.utils.dlpack, "to_dlpack", lambda tensor: export(tensor.clone()))


@lie("OP-029", "operator/warnings:reduction operator/warnings:train")
def reductions_warn(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Each reduction says that another kernel would be faster."""
    if name.startswith(("sum", "mean", "std")):
        warnings.warn(f"{name} is not optimised for this device", stacklevel=2)
    return call(*args, **kwargs)


@lie("OP-030", "operator/errors:cast")
def results_are_cut_in_place(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An in-place sum converts its result to the type of its tensor, whatever is lost."""
    if name == "add_.Tensor" and not args[0].is_floating_point():
        return args[0].copy_(torch.add(*args, **kwargs))
    return call(*args, **kwargs)


@lie("OP-030", "operator/errors:overlap")
def overlap_with_out_is_accepted(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """out= may share a part of its memory with an operand."""
    out = kwargs.get("out")
    if name == "mul.out" and out.shape == args[0].shape:
        return out.copy_(torch.mul(*args))
    return call(*args, **kwargs)


@lie("OP-030", "operator/errors:dim")
def every_error_is_a_runtime_error(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A dimension that does not exist raises the driver's error, not IndexError."""
    try:
        return call(*args, **kwargs)
    except IndexError as error:
        raise RuntimeError(f"invalid parameter: {error}") from None


@lie("OP-030", "operator/errors:shape operator/errors:matmul")
def wrong_shapes_are_cut(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operands whose shapes do not fit are read as far as the smaller one goes."""
    if name == "add.Tensor" and isinstance(args[1], torch.Tensor) and args[0].dim() == 1:
        size = min(args[0].numel(), args[1].numel() or 1)
        args = (args[0][:size], args[1][:size]) if args[1].dim() else args
    if name == "mm":
        size = min(args[0].size(1), args[1].size(0))
        args = (args[0][:, :size], args[1][:size])
    return call(*args, **kwargs)


@lie("OP-031", "operator/sparse:to_dense", planted=True)
def sparse_tensors_stay_on_the_host() -> None:
    """to_sparse() of a device tensor gives a sparse tensor of the CPU."""
    convert: Any = torch.Tensor.to_sparse
    plant(torch.Tensor, "to_sparse", lambda self, *args: convert(self.cpu(), *args))


@lie("OP-032", "operator/backward_stream:leaf")
def backward_has_a_stream_of_its_own(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Gradients are computed on a stream that waits for nothing."""
    if int(torch._C._current_graph_task_id()) != -1:
        with torch.Stream(torch.device(BACKEND, torch.accelerator.current_device_index())):
            return call(*args, **kwargs)
    return call(*args, **kwargs)


@lie("OPINFO-BLAS-001", "opinfo/forward:addmm:bfloat16")
def bfloat16_has_no_bias(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """addmm in bfloat16, and in no other type, adds nothing to the product."""
    if name.startswith("addmm") and args[0].dtype == torch.bfloat16:
        kwargs = {**kwargs, "beta": 0}
    return call(*args, **kwargs)
