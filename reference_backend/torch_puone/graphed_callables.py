# SPDX-License-Identifier: BSD-3-Clause
"""Callables whose forward and backward passes are graphs. As torch.cuda.make_graphed_callables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .devices import synchronize
from .graphs import _POOL_HANDLE, PUONEGraph, graph, graph_pool_handle
from .streams import Stream, StreamContext

_Callable = Callable[..., Any]  # or a module


class _Graphed:
    """One callable, the graphs of its two passes, and the tensors that they read and write."""

    def __init__(self, function: _Callable, args: Sequence[Any]) -> None:
        self.function = function
        self.args = args
        self.user_inputs = tuple(pytree.arg_tree_leaves(*args))
        self.parameters: tuple[Tensor, ...] = ()
        if isinstance(function, torch.nn.Module):
            self.parameters = tuple(function.parameters())
        self.forward_graph = PUONEGraph()
        self.backward_graph = PUONEGraph()
        self.outputs: tuple[Tensor, ...] = ()
        self.spec: pytree.TreeSpec | None = None
        self.output_gradients: tuple[Tensor | None, ...] = ()
        self.input_gradients: tuple[Tensor | None, ...] = ()
        self._check()

    def _check(self) -> None:
        if not all(isinstance(value, Tensor) for value in self.user_inputs):
            raise TypeError("sample_args may hold only tensors")
        module = self.function
        if not isinstance(module, torch.nn.Module):
            return
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            raise RuntimeError("a module must not have hooks yet when it is graphed")
        if any(buffer.requires_grad for buffer in module.buffers()):
            raise RuntimeError("buffers of a module that is graphed must not require gradients")

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.user_inputs + self.parameters

    def run(self, allow_unused: bool) -> None:
        """Both passes, without a graph."""
        outputs = pytree.tree_leaves(self.function(*self.args))
        gradients = tuple(torch.zeros_like(out) for out in outputs if out.requires_grad)
        self._differentiate(outputs, gradients, allow_unused)

    def capture_forward(self, pool: _POOL_HANDLE) -> None:
        with graph(self.forward_graph, pool):
            result = self.function(*self.args)
        leaves, self.spec = pytree.tree_flatten(result)
        self.outputs = tuple(leaves)

    def capture_backward(self, pool: _POOL_HANDLE, allow_unused: bool) -> None:
        self.output_gradients = tuple(
            torch.empty_like(out) if out.requires_grad else None for out in self.outputs
        )
        self.input_gradients = (None,) * len(self.inputs)
        given = tuple(gradient for gradient in self.output_gradients if gradient is not None)
        if not given:
            return
        with graph(self.backward_graph, pool):
            found = iter(self._differentiate(self.outputs, given, allow_unused))
        self.input_gradients = tuple(
            next(found) if value.requires_grad else None for value in self.inputs
        )
        # The autograd graph would keep the nodes of the parameters, which remember this stream.
        self.outputs = tuple(out.detach() for out in self.outputs)

    def _differentiate(
        self, outputs: Sequence[Tensor], gradients: Sequence[Tensor], allow_unused: bool
    ) -> Sequence[Tensor | None]:
        if not gradients:
            return ()
        return torch.autograd.grad(
            outputs=[out for out in outputs if out.requires_grad],
            inputs=[value for value in self.inputs if value.requires_grad],
            grad_outputs=gradients,
            allow_unused=allow_unused,
        )

    def replay_forward(self, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        for static, value in zip(self.user_inputs, given, strict=False):
            if static.data_ptr() != value.data_ptr():
                static.copy_(value)
        self.forward_graph.replay()
        return tuple(out.detach() for out in self.outputs)

    def replay_backward(self, given: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        for static, value in zip(self.output_gradients, given, strict=True):
            if static is not None and value is not None:
                static.copy_(value)
        self.backward_graph.replay()
        return tuple(None if value is None else value.detach() for value in self.input_gradients)

    def callable(self) -> _Callable:
        """What takes the place of the function: one autograd node that replays the graphs."""
        graphed = self

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
                return graphed.replay_forward(inputs)

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
                return graphed.replay_backward(gradients)

        def replayed(*args: Any) -> Any:
            leaves = pytree.arg_tree_leaves(*args)
            assert graphed.spec is not None
            out = Replay.apply(*leaves, *graphed.parameters)
            return pytree.tree_unflatten(out, graphed.spec)

        return replayed


def _replace_forward(module: torch.nn.Module, graphed: _Callable) -> torch.nn.Module:
    """Let the module replay while it is in the mode that it was captured in."""
    captured_in_training = module.training
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        replays = module.training == captured_in_training
        return (graphed if replays else original)(*args, **kwargs)

    module.forward = forward
    return module


@overload
def make_graphed_callables(
    callables: _Callable,
    sample_args: tuple[Tensor, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: _POOL_HANDLE | None = None,
) -> _Callable: ...
@overload
def make_graphed_callables(
    callables: tuple[_Callable, ...],
    sample_args: tuple[tuple[Tensor, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: _POOL_HANDLE | None = None,
) -> tuple[_Callable, ...]: ...
def make_graphed_callables(
    callables: _Callable | tuple[_Callable, ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: _POOL_HANDLE | None = None,
) -> _Callable | tuple[_Callable, ...]:
    """Callables that replay the forward and backward passes of `callables` as graphs.

    A module is changed in place, and runs as before in the other mode (training or evaluation).
    Gradients of gradients are not possible. The results of a call are overwritten by the next.

    Args:
        callables: functions of tensors or modules; several are given in the order of their calls.
        sample_args: arguments of each; later ones need the same shapes, dtypes and requires_grad.
        num_warmup_iters: passes that run before the capture.
        allow_unused_input: whether an input may have no part in the outputs.
        pool: of the memory of all their graphs; a new one if None.

    Raises TypeError for arguments that are not tensors; RuntimeError for modules with hooks or
    buffers with gradients, and if autocast caches casts, whose results a capture would lose.
    """
    if torch.is_autocast_enabled("puone") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables needs torch.autocast(..., cache_enabled=False): the graphs "
            "would use casts of weights that were cached in another capture"
        )
    several = isinstance(callables, tuple)
    functions = callables if isinstance(callables, tuple) else (callables,)
    all_args = sample_args if several else (sample_args,)
    graphed = [_Graphed(f, args) for f, args in zip(functions, all_args, strict=True)]
    pool = graph_pool_handle() if pool is None else pool

    synchronize()
    with StreamContext(Stream()):
        for one in graphed:
            for _ in range(num_warmup_iters):
                one.run(allow_unused_input)
    synchronize()
    for one in graphed:
        one.capture_forward(pool)
    for one in reversed(graphed):
        one.capture_backward(pool, allow_unused_input)

    made = tuple(
        _replace_forward(one.function, one.callable())
        if isinstance(one.function, torch.nn.Module)
        else one.callable()
        for one in graphed
    )
    return made if several else made[0]
