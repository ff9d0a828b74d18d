# SPDX-License-Identifier: BSD-3-Clause
"""Operators defined outside of torch: device kernels, fakes, gradients, opcheck, autocast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.library import Library, custom_op

from torch_conformance.authoring.api import Device, check, in_thread, noise, raised

_SPACE = "conformance_operators"
_UNARY = "(Tensor x) -> Tensor"


@contextmanager
def _library() -> Iterator[Library]:
    """Operators defined for one check only."""
    with torch.library._scoped_library(_SPACE, "FRAGMENT") as library:
        yield library


def _key(dev: Device, prefix: str = "") -> str:
    """The dispatch key of the device, or that of a functionality on it, such as Autocast."""
    return prefix + torch._C._dispatch_key_for_device(dev.type)


def _operator(name: str) -> Any:
    return getattr(getattr(torch.ops, _SPACE), name)


def _x(dev: Device, *shape: int, seed: int = 0) -> Tensor:
    return noise(shape or (3, 4), seed=seed).to(dev.device(), copy=True)


# ---- kernels for the device --------------------------------------------------------------------

_Kernel = Callable[[Tensor], Tensor]


def _by_decorator(dev: Device, _: Library, on_cpu: _Kernel, on_device: _Kernel) -> Any:
    op: Any = custom_op(
        f"{_SPACE}::chosen", on_cpu, mutates_args=(), device_types="cpu", schema=_UNARY
    )
    op.register_kernel(dev.type)(on_device)
    return op


def _by_library(dev: Device, library: Library, on_cpu: _Kernel, on_device: _Kernel) -> Any:
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", on_cpu, "CPU")
    library.impl("twice", on_device, _key(dev))
    return _operator("twice")


_DEFINED: dict[str, Callable[[Device, Library, _Kernel, _Kernel], Any]] = {
    "decorator": _by_decorator,
    "impl": _by_library,
}


@check("custom_operator/choice", "CUSTOM-001", needs=("accelerator",), cases=_DEFINED)
def the_kernel_of_the_device_is_chosen(dev: Device, case: str) -> None:
    """Of kernels for the CPU and for the device each runs for its own tensors."""
    called: list[str] = []

    def kernel(where: str) -> _Kernel:
        def run(x: Tensor) -> Tensor:
            called.append(where)
            return x * 2

        return run

    with _library() as library:
        op = _DEFINED[case](dev, library, kernel("cpu"), kernel("device"))
        dev.assert_equal(op(_x(dev)), noise((3, 4)) * 2)
        assert called == ["device"]
        op(noise((3, 4)))
        assert called == ["device", "cpu"]


@check("custom_operator/missing", "CUSTOM-001", needs=("accelerator",))
def an_operator_for_another_device_only_says_so(dev: Device) -> None:
    """An operator without any kernel raises NotImplementedError that names operator and device."""
    with _library() as library:
        library.define("nowhere(Tensor x) -> Tensor")
        error = raised(lambda: _operator("nowhere")(_x(dev)))
    assert isinstance(error, NotImplementedError)
    assert "nowhere" in str(error)
    assert dev.type.lower() in str(error).lower() or _key(dev).lower() in str(error).lower()


_SCHEMAS: dict[str, tuple[str, Callable[..., Any], Callable[[Any, Tensor], Any]]] = {
    "numbers": (
        "op(Tensor x, float a, int b=2, bool c=True) -> Tensor",
        lambda x, a, b=2, c=True: x * a + b * c,
        lambda op, x: [op(x, 0.5), op(x, 0.5, 3), op(x, 0.5, c=False)],
    ),
    "optional": (
        "op(Tensor x, Tensor? y=None, int[]? sizes=None) -> Tensor",
        lambda x, y=None, sizes=None: (x if y is None else x + y).reshape(sizes or x.shape),
        lambda op, x: [op(x), op(x, x), op(x, None, [4, 3])],
    ),
    "list": (
        "op(Tensor[] x) -> Tensor[]",
        lambda x: [t * i for i, t in enumerate(x)],
        lambda op, x: op([x, x[0], x[:0]]),
    ),
    "optional_list": (
        "op(Tensor?[] x) -> Tensor",
        lambda x: sum(t for t in x if t is not None),
        lambda op, x: op([x, None, x]),
    ),
    "several": (
        "op(Tensor x) -> (Tensor, Tensor, int)",
        lambda x: (x + 1, x.sum(), x.dim()),
        lambda op, x: list(op(x)),
    ),
    "string": (
        "op(Tensor x, str how) -> Tensor",
        lambda x, how: getattr(x, how)(),
        lambda op, x: [op(x, "exp"), op(x, "sum")],
    ),
    "dtype": (
        "op(Tensor x, ScalarType to) -> Tensor",
        lambda x, to: x.to(to),
        lambda op, x: op(x, torch.float16),
    ),
    "keyword": (
        "op(Tensor x, *, float scale) -> Tensor",
        lambda x, *, scale: x * scale,
        lambda op, x: op(x, scale=3.0),
    ),
    "out": (
        "op(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        lambda x, *, out: out.copy_(x * 2),
        lambda op, x: op(x, out=torch.empty_like(x)),
    ),
    "view": (
        "op(Tensor(a) x) -> Tensor(a)",
        lambda x: x[0],
        lambda op, x: op(x),
    ),
    "strided": (
        "op(Tensor x) -> Tensor",
        lambda x: x.t() @ x,
        lambda op, x: op(x.t()[1:]),
    ),
}


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in _flat(part)]
    return [value]


@check(
    "custom_operator/schema",
    "CUSTOM-002",
    cases=_SCHEMAS,
    case_needs={"dtype": "float16"},
)
def arguments_and_results_of_every_kind_pass(dev: Device, case: str) -> None:
    """Library.define and impl for the device's key take every kind of argument and result."""
    schema, kernel, call = _SCHEMAS[case]
    name = f"{case}_op"
    with _library() as library:
        library.define(schema.replace("op(", f"{name}(", 1))
        library.impl(name, kernel, _key(dev))
        actual = _flat(call(_operator(name), _x(dev)))
    expected = _flat(call(kernel, noise((3, 4))))
    for got, wanted in zip(actual, expected, strict=True):
        if isinstance(got, Tensor):
            assert got.device.type == dev.type
            dev.assert_close(got, wanted)
        else:
            assert got == wanted


@check("custom_operator/override", "CUSTOM-002", needs=("privateuse1",))
def a_library_can_give_an_aten_operator_a_kernel(dev: Device) -> None:
    """A kernel for the device's key of an aten operator is used while its library lives."""
    x = _x(dev)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(
            "special_airy_ai", lambda t: torch.full_like(t, 42.0), _key(dev), allow_override=True
        )
        dev.assert_equal(torch.special.airy_ai(x), torch.full((3, 4), 42.0))
    try:
        after = torch.special.airy_ai(x)
    except NotImplementedError:
        return
    dev.assert_close(after, torch.special.airy_ai(noise((3, 4))), rtol=1e-4, atol=1e-5)


def _add_one(x: Tensor) -> None:
    x.add_(1)


def _add_numbers(x: Sequence[Tensor]) -> None:
    for number, tensor in enumerate(x, 1):
        tensor.add_(number)


#: A function that changes its argument, and what is called with the operator and a tensor.
_CHANGES: dict[str, tuple[Callable[[Any], None], Callable[[Any, Tensor], Any]]] = {
    "argument": (_add_one, lambda op, x: op(x)),
    "list": (_add_numbers, lambda op, x: op([x[0], x[1]])),
    "view": (_add_one, lambda op, x: op(x.t()[1:])),
    "version": (_add_one, lambda op, x: [op(x), op(x)]),
}


@check("custom_operator/mutation", "CUSTOM-003", cases=_CHANGES)
def declared_arguments_are_changed_in_place(dev: Device, case: str) -> None:
    """An operator with mutates_args writes to tensors, lists and views, and increases versions."""
    change, call = _CHANGES[case]
    op: Any = custom_op(f"{_SPACE}::change_{case}", change, mutates_args=("x",))
    x, expected = torch.zeros(3, 4, device=dev.device()), torch.zeros(3, 4)
    before = x._version
    call(op, x)
    call(change, expected)
    dev.assert_equal(x, expected)
    assert x._version - before >= expected._version, "a change is not counted"


def _failing(x: Tensor) -> Tensor:
    x.add(1)
    raise LookupError("in the kernel")


#: A call of an operator that takes one tensor, and the errors that it may end with.
_ERRORS: dict[str, tuple[Callable[[Any, Tensor], Any], tuple[type[Exception], ...]]] = {
    "kernel": (lambda op, x: op(x), (LookupError,)),
    "type": (lambda op, x: op("text"), (RuntimeError, TypeError)),
    "count": (lambda op, x: op(x, 1), (RuntimeError, TypeError)),
}


@check("custom_operator/error", "CUSTOM-001", cases=_ERRORS)
def errors_reach_the_caller(dev: Device, case: str) -> None:
    """An exception in a kernel arrives as it is, wrong arguments raise, and work goes on."""
    call, kinds = _ERRORS[case]
    with _library() as library:
        library.define("failing(Tensor x) -> Tensor")
        library.impl("failing", _failing, _key(dev))
        assert isinstance(raised(lambda: call(_operator("failing"), _x(dev))), kinds)
    dev.assert_equal(_x(dev), noise((3, 4)))


@check("custom_operator/stream", "CUSTOM-001", needs=("streams",))
def kernels_see_the_callers_stream(dev: Device) -> None:
    """The current stream in a kernel written in Python is the caller's."""
    seen: list[torch.Stream] = []

    def look(x: Tensor) -> Tensor:
        seen.append(dev.current_stream())
        return x + 1

    side = dev.stream()
    with _library() as library:
        library.define("look(Tensor x) -> Tensor")
        library.impl("look", look, _key(dev))
        with side:
            result = _operator("look")(_x(dev))
    side.synchronize()
    dev.assert_equal(result, noise((3, 4)) + 1)
    assert seen == [side]


@check("custom_operator/second_device", "CUSTOM-001", needs=("multi_device",))
def kernels_run_for_every_device(dev: Device) -> None:
    """Tensors of the second device reach the kernel as such, and so does the result."""
    there = dev.device(1)
    with _library() as library:
        library.define("plus(Tensor x) -> Tensor")
        library.impl("plus", lambda x: x + torch.ones(4, device=x.device), _key(dev))
        result = _operator("plus")(torch.zeros(4, device=there))
    assert result.device == there
    dev.assert_equal(result, torch.ones(4))


@check("custom_operator/thread", "CUSTOM-001", needs=("threads",))
def kernels_run_in_any_thread(dev: Device) -> None:
    """A kernel registered in one thread runs in another."""
    with _library() as library:
        library.define("negate(Tensor x) -> Tensor")
        library.impl("negate", lambda x: -x, _key(dev))
        result = in_thread(lambda: _operator("negate")(_x(dev)))
    dev.assert_equal(result, -noise((3, 4)))


# ---- fakes -------------------------------------------------------------------------------------


def _rows(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y]).contiguous()


def _fake_rows(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty((x.shape[0] + y.shape[0], *x.shape[1:]))


def _rows_operator() -> Any:
    op: Any = custom_op(f"{_SPACE}::rows", _rows, mutates_args=())
    op.register_fake(_fake_rows)
    return op


def _runs_on_fakes(dev: Device, fake: Callable[[FakeTensorMode, Tensor], Tensor]) -> None:
    """The operator takes what `fake` makes of tensors of the device, and tells the real shape."""
    op, mode = _rows_operator(), FakeTensorMode()
    real = [_x(dev, 2, 3), _x(dev, 4, 3)]
    with mode:
        result = op(*(fake(mode, tensor) for tensor in real))
        total = (result * 2).sum(0)
    assert isinstance(result, FakeTensor) and isinstance(total, FakeTensor)
    assert (result.device.type, result.shape, total.shape) == (dev.type, (6, 3), (3,))
    dev.assert_equal(op(*real), torch.cat([noise((2, 3)), noise((4, 3))]))


@check("custom_operator/fake:fake", "CUSTOM-004")
def operators_run_on_tensors_made_fake(dev: Device) -> None:
    """register_fake serves tensors that are made in FakeTensorMode on the device."""
    _runs_on_fakes(dev, lambda mode, x: torch.empty(x.shape, device=dev.device()))


@check("custom_operator/fake:meta", "CUSTOM-004")
def operators_run_on_meta_tensors(dev: Device) -> None:
    """register_fake serves tensors of the device meta."""
    op = _rows_operator()
    result = op(torch.empty(2, 3, device="meta"), torch.empty(4, 3, device="meta"))
    assert (result.device.type, result.shape) == ("meta", (6, 3))


@check("custom_operator/fake:converted", "CUSTOM-004")
def operators_run_on_fakes_of_real_tensors(dev: Device) -> None:
    """register_fake serves fakes that are made from tensors of the device."""
    _runs_on_fakes(dev, FakeTensorMode.from_tensor)


@check("custom_operator/fake:missing", "CUSTOM-004")
def a_missing_fake_is_named(dev: Device) -> None:
    """An operator without a fake says in FakeTensorMode that it has none."""
    bare: Any = custom_op(f"{_SPACE}::bare", lambda x: x + 1, mutates_args=(), schema=_UNARY)
    with FakeTensorMode():
        x = torch.empty(2, device=dev.device())
        assert "fake" in str(raised(lambda: bare(x))).lower()


# ---- gradients ---------------------------------------------------------------------------------


def _scaled_square(x: Tensor, scale: float) -> Tensor:
    return x * x * scale


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.scale = inputs
    ctx.save_for_backward(x)


def _scaled_square_backward(ctx: Any, gradient: Tensor) -> Any:
    (x,) = ctx.saved_tensors
    return gradient * 2 * x * ctx.scale, None


def _square_operator() -> Any:
    op: Any = custom_op(f"{_SPACE}::square", _scaled_square, mutates_args=())
    op.register_fake(lambda x, scale: torch.empty_like(x))
    op.register_autograd(_scaled_square_backward, setup_context=_keep)
    return op


#: What is differentiated, made of the operator and its argument, and the gradient that is due.
_GRADIENTS: dict[str, tuple[Callable[[Any, Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "first": (lambda op, x: op(x, 3.0), lambda x: 6 * x),
    "second": (
        lambda op, x: torch.autograd.grad(op(x, 3.0).sum(), x, create_graph=True)[0].square(),
        lambda x: 72 * x,
    ),
    "in_graph": (lambda op, x: x * 2 + op(x * 3, 0.5) * 4, lambda x: 36 * x + 2),
    "non_tensor": (lambda op, x: op(x, 3.0) + op(x, scale=-0.5), lambda x: 5 * x),
}


@check("custom_operator/gradient", "CUSTOM-005", cases=_GRADIENTS)
def registered_gradients_are_used(dev: Device, case: str) -> None:
    """register_autograd differentiates on the device, twice if its formula can."""
    work, expected = _GRADIENTS[case]
    x = _x(dev).requires_grad_()
    work(_square_operator(), x).sum().backward()
    dev.assert_close(x.grad, expected(noise((3, 4))))


@check("custom_operator/gradient:none_needed", "CUSTOM-005")
def nothing_is_recorded_without_need(dev: Device) -> None:
    """The result for a tensor that does not require grad does not either."""
    assert not _square_operator()(_x(dev), 2.0).requires_grad


@check("custom_operator/gradient:missing", "CUSTOM-005")
def a_missing_gradient_raises(dev: Device) -> None:
    """Backward through an operator without a registered gradient raises RuntimeError."""
    bare: Any = custom_op(f"{_SPACE}::opaque", _scaled_square, mutates_args=())
    out = bare(_x(dev).requires_grad_(), 2.0)
    assert isinstance(raised(lambda: out.sum().backward()), RuntimeError)


@check("custom_operator/gradcheck", "CUSTOM-005", needs=("float64",))
def registered_gradients_pass_gradcheck(dev: Device) -> None:
    """gradcheck and gradgradcheck accept an operator with a registered gradient."""
    op = _square_operator()
    x = noise((2, 3), torch.float64).to(dev.device()).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: op(t, 0.5), (x,))
    assert torch.autograd.gradgradcheck(lambda t: op(t, 0.5), (x,))


# ---- opcheck -----------------------------------------------------------------------------------

_UTILITIES = {
    "schema": "test_schema",
    "fake": "test_faketensor",
    "aot": "test_aot_dispatch_dynamic",
}


@check("custom_operator/opcheck", "CUSTOM-006", cases=_UTILITIES)
def opcheck_passes_a_right_operator(dev: Device, case: str) -> None:
    """torch.library.opcheck accepts a complete operator with arguments on the device."""
    op = _square_operator()
    for x in (_x(dev), _x(dev).requires_grad_(), _x(dev).t(), _x(dev, 1)):
        outcome = torch.library.opcheck(op, (x, 2.0), test_utils=_UTILITIES[case])
        assert set(outcome.values()) == {"SUCCESS"}


@check("custom_operator/opcheck_autograd", "CUSTOM-010")
def opcheck_judges_the_registration_of_gradients(dev: Device) -> None:
    """opcheck accepts a gradient registered by register_autograd for arguments on the device."""
    arguments = (_x(dev).requires_grad_(), 2.0)
    utility = "test_autograd_registration"
    outcome = torch.library.opcheck(_square_operator(), arguments, test_utils=utility)
    assert set(outcome.values()) == {"SUCCESS"}


#: Kernels that do what neither their schema nor torch.empty_like, their fake, says.
_WRONG: dict[str, _Kernel] = {
    "schema": lambda x: x.add_(1).clone(),
    "fake": lambda x: x.sum(0),
}


@check("custom_operator/opcheck_finds", "CUSTOM-006", cases=_WRONG)
def opcheck_finds_a_wrong_operator(dev: Device, case: str) -> None:
    """An undeclared write and a fake of the wrong shape are found on the device."""
    with _library() as library:
        library.define("wrong(Tensor x) -> Tensor")
        library.impl("wrong", _WRONG[case], _key(dev))
        torch.library.register_fake(f"{_SPACE}::wrong", torch.empty_like, lib=library)
        error = raised(
            lambda: torch.library.opcheck(
                _operator("wrong").default, (_x(dev),), test_utils=_UTILITIES[case]
            )
        )
    assert "opcheck" in str(error), str(error)


# ---- transforms and autocast -------------------------------------------------------------------


@check("custom_operator/vmap:rule", "CUSTOM-007")
def operators_can_have_a_batching_rule(dev: Device) -> None:
    """vmap calls the rule of register_vmap, once for all samples."""
    op, host, batches = _square_operator(), noise((3, 4)), []

    def rule(info: Any, dims: Any, x: Tensor, scale: float) -> Any:
        batches.append(info.batch_size)
        return op(x, scale), dims[0]

    op.register_vmap(rule)
    dev.assert_close(torch.func.vmap(lambda t: op(t, 3.0))(_x(dev)), 3 * host * host)
    assert batches == [3]


@check("custom_operator/vmap:fallback", "CUSTOM-007")
def operators_without_a_batching_rule_can_be_vmapped(dev: Device) -> None:
    """vmap runs an operator without a rule for one sample after the other."""
    with _library() as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda t: t / 2, _key(dev))
        dev.assert_close(torch.func.vmap(_operator("halve"))(_x(dev)), noise((3, 4)) / 2)


def _mutated_around(op: Any, x: Tensor) -> Tensor:
    y = x.clone()
    y[0].add_(1)
    return op(y, 2.0).add_(1)


_TRACED: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "pure": lambda op, x: op(x.clone(), 2.0),
    "mutated_around": _mutated_around,
}


@check("custom_operator/functionalize", "CUSTOM-007", cases=_TRACED)
def operators_survive_functionalization(dev: Device, case: str) -> None:
    """torch.func.functionalize and make_fx trace the operator, mutation around it removed."""
    from torch.fx.experimental.proxy_tensor import make_fx

    op = _square_operator()

    def work(x: Tensor) -> Tensor:
        return _TRACED[case](op, x)

    x = _x(dev)
    functional: Callable[[Tensor], Tensor] = torch.func.functionalize(work)
    expected = work(noise((3, 4)))
    dev.assert_close(functional(x), expected)
    traced = make_fx(functional)(x)
    targets = [str(node.target) for node in traced.graph.nodes]
    assert any(_SPACE in target for target in targets)
    assert not any("add_." in target for target in targets), targets
    dev.assert_close(traced(x), expected)


_LOOK = f"{_SPACE}::look_closely"


@contextmanager
def _doubling(dev: Device) -> Iterator[tuple[Library, Any, list[torch.dtype]]]:
    """A library, its operator that doubles, and the data types that the kernel has seen."""
    seen: list[torch.dtype] = []

    def look(x: Tensor) -> Tensor:
        seen.append(x.dtype)
        return x * 2

    with _library() as library:
        library.define("look_closely(Tensor x) -> Tensor")
        library.impl("look_closely", look, _key(dev))
        yield library, _operator("look_closely"), seen


def _register_autocast(dev: Device, library: Library, low: torch.dtype) -> None:
    try:
        torch.library.register_autocast(_LOOK, dev.type, low, lib=library)
    except ValueError as error:
        dev.unsupported(f"register_autocast of this torch: {error}")


def _register_autocast_key(dev: Device, library: Library, low: torch.dtype) -> None:
    key = _key(dev, "Autocast")

    def lowered(x: Tensor) -> Tensor:
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return _operator("look_closely")(x.to(low))

    library.impl("look_closely", lowered, key)


#: How an operator is made known to autocast, whether a region is enabled, and whether it casts.
_AUTOCAST: dict[str, tuple[Callable[[Device, Library, torch.dtype], None], bool, bool]] = {
    "registered": (_register_autocast, True, True),
    "dispatch_key": (_register_autocast_key, True, True),
    "off": (_register_autocast, False, False),
    "unregistered": (lambda dev, library, low: None, True, False),
}


@check("custom_operator/autocast", "CUSTOM-008", needs=("autocast",), cases=_AUTOCAST)
def operators_take_part_in_autocast(dev: Device, case: str) -> None:
    """register_autocast, or a kernel for the autocast key, casts inside of a region only."""
    register, enabled, cast = _AUTOCAST[case]
    low = torch.get_autocast_dtype(dev.type)
    with _doubling(dev) as (library, op, seen):
        register(dev, library, low)
        with torch.autocast(dev.type, enabled=enabled):
            result = op(_x(dev))
    assert seen == [result.dtype] == [low if cast else torch.float32]
    dev.assert_close(result.float(), noise((3, 4)) * 2, rtol=0.02, atol=0.02)


@check("custom_operator/autocast:gradient", "CUSTOM-008", needs=("autocast",))
def registered_gradients_work_under_autocast(dev: Device) -> None:
    """An operator with a gradient, unknown to autocast, is differentiated without a cast."""
    x = _x(dev).requires_grad_()
    with _doubling(dev) as (library, op, seen):
        torch.library.register_autograd(_LOOK, lambda ctx, g: g * 2, lib=library)
        with torch.autocast(dev.type):
            result = op(x)
    assert seen == [result.dtype] == [torch.float32]
    dev.assert_close(result, noise((3, 4)) * 2)
    result.sum().backward()
    dev.assert_equal(x.grad, torch.full((3, 4), 2.0))


def _opaque_twice(dev: Device, library: Library) -> Any:
    library.define("opaque_twice(Tensor x, float y) -> Tensor")
    library.impl("opaque_twice", lambda x, y: x * x * y, _key(dev))
    torch.library.register_fake(
        f"{_SPACE}::opaque_twice", lambda x, y: torch.empty_like(x), lib=library
    )
    return _operator("opaque_twice")


_COMPILED: dict[str, Callable[[Device, Library], Any]] = {
    "custom_op": lambda dev, library: _square_operator(),
    "library": _opaque_twice,
}


@check("custom_operator/compiled", "CUSTOM-009", cases=_COMPILED, deadline=120)
def operators_stay_whole_in_a_traced_graph(dev: Device, case: str) -> None:
    """torch.compile traces the operator as one node, without a graph break."""
    graphs: list[list[str]] = []

    def collect(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append([str(node.target) for node in module.graph.nodes])
        return module.forward

    with _library() as library:
        op = _COMPILED[case](dev, library)
        compiled = torch.compile(lambda x: op(x.sin(), 2.0) + 1, backend=collect, fullgraph=True)
        result = compiled(_x(dev))
    host = noise((3, 4)).sin()
    dev.assert_close(result, host * host * 2 + 1)
    assert len(graphs) == 1
    assert any(_SPACE in target for target in graphs[0])
