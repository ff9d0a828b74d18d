# SPDX-License-Identifier: BSD-3-Clause
"""Every derivative of PyTorch's operator database, with each operand changed in turn.

test_derivatives.py has the examples that this has found.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

import torch_puone

#: Larger tensors are seven times as large when they are changed.
LARGEST = 5000
#: The arguments of each operator, by position and by name.
Calls = dict[OpOverload, tuple[Any, dict[str, Any]]]

#: A kernel may refuse the value of an index.
INDEX = "is out of bounds for dimension"

#: Where the shape function refuses what reads nothing beyond an operand, by (operator, argument).
HARMLESS = {
    ("native_group_norm_backward", 2): "any sizes of as many elements",
    ("native_group_norm_backward", 3): "any sizes of as many elements",
    ("native_layer_norm_backward", 4): "any sizes of as many elements",
    ("native_layer_norm_backward", 5): "any sizes of as many elements",
    ("convolution_backward", 3): "the sizes of the bias follow from the weight",
    ("masked_scatter_backward", 2): "-1 stands for what is left, as in reshape",
    ("masked_scatter_backward", 3): "-1 stands for what is left, as in reshape",
    ("_prelu_kernel_backward", 2): "a weight of more dimensions is broadcast",
}


class _Recorder(TorchDispatchMode):
    """Keeps the first call of each derivative that puone computes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Calls = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = (args, kwargs or {})
        wanted = "backward" in str(function) and function not in self.calls
        if not wanted or not all(x.numel() < LARGEST for x in _tensors(given)):
            return function(*args, **given[1])
        kept = tree_map(lambda x: x.detach().clone() if isinstance(x, Tensor) else x, given)
        before = dict(torch_puone._fallback_counts())
        result = function(*args, **given[1])
        if torch_puone._fallback_counts() == before:
            self.calls[function] = kept
        return result


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _changed(leaf: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(leaf, Tensor):
        if leaf.dim() == 0:
            yield "three elements", leaf.expand(3).clone()
            return
        for dim, size in enumerate(leaf.shape):
            if size > 1:
                yield f"1 in dimension {dim}", leaf.narrow(dim, 0, 1).clone()
            if size > 0:
                yield f"0 in dimension {dim}", leaf.narrow(dim, 0, 0).clone()
                yield f"7 times dimension {dim}", torch.cat([leaf] * 7, dim)
        if leaf.shape[0] > 0:
            yield "a dimension less", leaf[0].clone()
        yield "a dimension more", leaf.unsqueeze(0).clone()
        yield "twice", torch.stack([leaf, leaf])
    elif type(leaf) is int:
        yield from ((str(value), value) for value in (-1, 0, leaf + 1, 7) if value != leaf)


def _recorded() -> Calls:
    recorder = _Recorder()
    for op in op_db:
        if not op.supports_autograd or torch.float32 not in op.dtypes:
            continue
        for sample in list(op.sample_inputs("cpu", torch.float32, requires_grad=True))[:4]:
            moved = tree_map(_moved, (sample.input, tuple(sample.args), dict(sample.kwargs)))
            try:
                with recorder:
                    results = _tensors(op(moved[0], *moved[1], **moved[2]))
                    sums = [x.abs().sum() for x in results if x.requires_grad]
                    torch.autograd.backward(sums)
            except (RuntimeError, TypeError, ValueError):
                continue  # what cannot be differentiated under a mode has no derivatives to change
    return recorder.calls


def _moved(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return leaf.detach().to("puone").requires_grad_(leaf.requires_grad)


def _refused(function: OpOverload, args: Any, kwargs: dict[str, Any]) -> Exception | None:
    try:
        function(*args, **kwargs)
        torch.accelerator.synchronize()
    except Exception as error:
        return error
    return None


@pytest.mark.nightly
def test_a_derivative_takes_nothing_that_its_shape_function_refuses() -> None:
    warnings.simplefilter("ignore")
    calls, wrong, tried = _recorded(), [], 0
    assert len(calls) > 50, "where are the derivatives?"
    for function, given in calls.items():
        leaves, form = tree_flatten(given)
        for at, leaf in enumerate(leaves):
            for how, value in _changed(leaf):
                new = [*leaves[:at], value, *leaves[at + 1 :]]
                copies = [x.clone() if isinstance(x, Tensor) else x for x in new]
                error = _refused(function, *tree_unflatten(copies, form))
                tried += 1
                if isinstance(error, torch.AcceleratorError) and INDEX not in str(error):
                    wrong.append(f"{function}: argument {at} is {how}: {error}")
                elif error is None:
                    metas = [x.to("meta") if isinstance(x, Tensor) else x for x in new]
                    expected = _refused(function, *tree_unflatten(metas, form))
                    name = function.overloadpacket.__name__
                    if expected is not None and (name, at) not in HARMLESS:
                        wrong.append(f"{function}: argument {at} is {how}: not {expected}"[:300])
    assert tried > 1000
    assert not wrong, "\n".join(wrong)
