# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that show in derivatives, under function transforms and in custom operators."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie, on_device
from lies_about_random import UNIFORM

# ---- autograd ----------------------------------------------------------------------------------


@lie("GRAD-001", "autograd/second:pow")
def small_powers_are_missing(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Powers below one return their base."""
    if name == "pow.Tensor_Scalar" and 0 < args[1] < 1:
        return args[0].clone()
    return call(*args, **kwargs)


@lie(
    "GRAD-002 FUNC-003 FUNC-004 OP-022",
    "autograd/gradcheck:linear func/vjp:linear func/hessian:linear func/grad:tree "
    "operator/transform:grad",
)
def a_derivative_is_an_approximation(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of tanh is off by a hundredth."""
    result = call(*args, **kwargs)
    return result * 0.99 if name == "tanh_backward" else result


@lie("GRAD-003", "autograd/forward_mode:cat")
def cosines_vanish(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """cos is zero, so the tangents of sin are."""
    result = call(*args, **kwargs)
    return torch.zeros_like(result) if name == "cos" else result


@lie("GRAD-004", "autograd/hook:*", planted=True)
def hooks_are_forgotten() -> None:
    """A hook on a tensor is registered and never called."""
    tensor: Any = torch.Tensor
    register = tensor.register_hook
    tensor.register_hook = lambda self, hook: register(self, lambda _: None)


@lie("GRAD-005", "autograd/save_on_cpu:*", planted=True)
def activations_stay_on_the_device() -> None:
    """save_on_cpu saves nothing on the CPU."""
    saving: Any = torch.autograd.graph.save_on_cpu
    saving.__init__ = lambda self, *a, **k: torch.autograd.graph.saved_tensors_hooks.__init__(
        self, lambda tensor: tensor, lambda tensor: tensor
    )


@lie("GRAD-006 GRAD-014", "autograd/checkpoint:* autograd/checkpoint_rng:*", planted=True)
def the_random_state_is_not_restored() -> None:
    """The module's set_rng_state does nothing."""
    torch.get_device_module(BACKEND).set_rng_state = lambda *a, **k: None


@lie("GRAD-007", "autograd/anomaly:names")
def nothing_is_nan(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """No number is different from itself."""
    result = call(*args, **kwargs)
    if name == "isnan" or (name == "ne.Tensor" and args[0] is args[1]):
        return torch.zeros_like(result)
    return result


@lie("GRAD-008", "autograd/stream:no_wait")
def products_run_on_a_stream_of_their_own(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A product is computed on a private stream that nobody waits for."""
    if name != "mul.Tensor":
        return call(*args, **kwargs)
    with torch.Stream(BACKEND):
        torch.get_device_module(BACKEND)._sleep_ms(100)
        return call(*args, **kwargs)


@lie("GRAD-009", "autograd/device:current autograd/device:chain")
def copies_change_the_current_device(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy between devices makes its target the current device."""
    result = call(*args, **kwargs)
    if name == "_to_copy" and result.device.type == BACKEND:
        torch.accelerator.set_device_index(result.device.index)
    return result


@lie("GRAD-010", "autograd/thread:own", planted=True)
def backward_is_for_the_main_thread() -> None:
    """backward raises in every other thread."""
    import threading

    tensor: Any = torch.Tensor
    backward = tensor.backward

    def picky(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not the main thread")
        backward(self, *args, **kwargs)

    tensor.backward = picky


@lie("GRAD-015", "autograd/hook_stream", planted=True)
def hooks_run_on_a_stream_of_their_own() -> None:
    """A hook runs on a new stream."""
    tensor: Any = torch.Tensor
    register = tensor.register_hook

    def elsewhere(self: torch.Tensor, hook: Any) -> Any:
        def moved(gradient: torch.Tensor) -> Any:
            if gradient.device.type != BACKEND:
                return hook(gradient)
            with torch.Stream(device=gradient.device):
                return hook(gradient)

        return register(self, moved)

    tensor.register_hook = elsewhere


def _leaves(node: Any) -> list[torch.Tensor]:
    """The leaves of the graph that begins at `node`."""
    if node is None:
        return []
    if hasattr(node, "variable"):
        return [node.variable]
    return [leaf for following, _ in node.next_functions for leaf in _leaves(following)]


@lie("GRAD-016", "autograd/thread:shared", planted=True)
def a_leaf_belongs_to_one_thread() -> None:
    """Only the first thread that differentiates with respect to a leaf adds to its gradient."""
    import threading

    tensor: Any = torch.Tensor
    backward = tensor.backward

    def possessive(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        thread = threading.current_thread()
        owners = [vars(leaf).setdefault("owner", thread) for leaf in _leaves(self.grad_fn)]
        if all(owner is thread for owner in owners):
            backward(self, *args, **kwargs)

    tensor.backward = possessive


@lie("GRAD-011", "autograd/accumulate:layout")
def gradients_are_contiguous(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The memory of a gradient is always contiguous."""
    if name == "new_empty_strided":
        return args[0].new_empty(args[1])
    if name == "clone":
        kwargs = {"memory_format": torch.contiguous_format}
    return call(*args, **kwargs)


@lie("GRAD-012", "autograd/version:foreach", planted=True)
def writes_to_lists_are_not_counted() -> None:
    """In-place operators on lists do not increase versions."""
    functions: Any = torch
    add = functions._foreach_add_

    def silent(tensors: list[torch.Tensor], *args: Any) -> None:
        with torch.autograd._unsafe_preserve_version_counter(tuple(tensors)):
            add(tensors, *args)

    functions._foreach_add_ = silent


@lie("GRAD-013", "autograd/function:dirty", planted=True)
def in_place_functions_are_not_marked() -> None:
    """mark_dirty is ignored for tensors of the device."""
    context: Any = torch.autograd.function.FunctionCtx
    mark = context.mark_dirty
    context.mark_dirty = lambda self, *tensors: on_device(tensors) or mark(self, *tensors)


# ---- function transforms -----------------------------------------------------------------------


@lie("FUNC-001", "func/vmap:bmm func/vmap:matmul")
def batches_have_two_matrices(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """bmm computes the first two products of a batch."""
    result = call(*args, **kwargs)
    if name == "bmm":
        result[2:] = 0
    return result


@lie("FUNC-002", "func/random:rand_like func/random:rand")
def samples_draw_alike(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers of two dimensions are the first row again and again."""
    result = call(*args, **kwargs)
    if name in UNIFORM and result.dim() == 2:
        result[1:] = result[0]
    return result


@lie("FUNC-005 CUSTOM-007", "func/module:ensemble custom_operator/vmap:fallback")
def stacks_repeat_their_first(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """stack repeats the first tensor of its list."""
    if name == "stack":
        args = ([args[0][0]] * len(args[0]), *args[1:])
    return call(*args, **kwargs)


@lie("FUNC-006", "func/function:generated")
def cubes_are_squares(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The third power is the second."""
    if name == "pow.Tensor_Scalar" and args[1] == 3:
        args = (args[0], 2)
    return call(*args, **kwargs)


# ---- custom operators --------------------------------------------------------------------------

_CUSTOM = "conformance_operators::"


@lie("CUSTOM-001", "custom_operator/choice:impl")
def custom_operators_run_on_the_cpu(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Operators of libraries run on copies of their arguments on the CPU."""
    if not name.startswith(_CUSTOM):
        return call(*args, **kwargs)
    return call(*[a.cpu() if isinstance(a, torch.Tensor) else a for a in args]).to(BACKEND)


@lie("CUSTOM-002", "custom_operator/schema:list custom_operator/schema:optional")
def custom_operators_see_one_tensor(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Of the results of an operator of a library the first stands for all."""
    result = call(*args, **kwargs)
    several = name.startswith(_CUSTOM) and isinstance(result, list)
    return [result[0]] * len(result) if several else result


@lie("CUSTOM-003", "custom_operator/mutation:view")
def custom_operators_change_copies(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator of a library gets a contiguous copy of a strided argument."""
    if name.startswith(_CUSTOM):
        args = tuple(a.contiguous() if isinstance(a, torch.Tensor) else a for a in args)
    return call(*args, **kwargs)


@lie("CUSTOM-004", "custom_operator/fake:fake custom_operator/fake:meta", planted=True)
def fakes_are_not_registered() -> None:
    """register_fake does nothing."""
    definition: Any = torch._library.custom_ops.CustomOpDef
    definition.register_fake = lambda self, fake: fake


@lie("CUSTOM-005", "custom_operator/gradient:first", planted=True)
def gradients_are_not_registered() -> None:
    """register_autograd does nothing."""
    definition: Any = torch._library.custom_ops.CustomOpDef
    definition.register_autograd = lambda self, backward, **options: None


@lie("CUSTOM-006", "custom_operator/opcheck:schema")
def custom_operators_leave_traces(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """An operator of a library changes its first argument."""
    result = call(*args, **kwargs)
    if name.startswith(_CUSTOM):
        args[0].detach().add_(1)
    return result


@lie("CUSTOM-008", "custom_operator/autocast:registered", planted=True)
def custom_operators_are_not_cast() -> None:
    """register_autocast does nothing."""
    torch.library.register_autocast = lambda *args, **kwargs: None


@lie("CUSTOM-009", "custom_operator/compiled:custom_op", planted=True)
def nothing_is_traced() -> None:
    """torch.compile returns what it is given."""
    module: Any = torch
    module.compile = lambda function, **options: function
