# SPDX-License-Identifier: BSD-3-Clause
"""puone::silu_mul, the backend's own operator: kernels, shapes, gradients, tracing, autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import FakeTensorMode

import torch_puone as puone

UTILITIES = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """The operator under test."""
    result: Tensor = torch.ops.puone.silu_mul(gate, up)
    return result


def pair(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> list[Tensor]:
    """Gate and up on the device."""
    made = [torch.randn(shape or (3, 4)).to("puone", dtype) for _ in range(2)]
    return [x.requires_grad_(grad) for x in made]


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[:, ::2],
    "expanded": lambda x: x[0].expand(3, 4),
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[1, 2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATING)
def test_it_computes_on_the_device_what_the_cpu_computes(dtype: torch.dtype, layout: str) -> None:
    gate, up = (LAYOUTS[layout](x) for x in pair(dtype=dtype))
    result = silu_mul(gate, up)
    assert result.device == gate.device
    torch.testing.assert_close(result.cpu(), silu_mul(gate.cpu(), up.cpu()))
    torch.testing.assert_close(result.cpu(), torch.nn.functional.silu(gate.cpu()) * up.cpu())
    assert not puone._fallback_counts()


def test_nothing_is_computed_on_the_cpu_in_training() -> None:
    gate, up = pair(grad=True)
    silu_mul(gate, up).sum().backward()
    assert gate.grad is not None
    assert up.grad is not None
    assert not puone._fallback_counts()


def test_it_runs_on_the_device_of_its_operands() -> None:
    gate, up = (x.to("puone:1") for x in pair())
    assert silu_mul(gate, up).device == torch.device("puone:1")


def wrong_arguments() -> dict[str, tuple[Callable[[Tensor, Tensor], Any], str]]:
    """By case: a wrong call, and what the message says."""
    return {
        "device": (lambda g, u: silu_mul(g, u.cpu()), "up is on cpu, but gate is on puone:0"),
        "device_of_gate": (lambda g, u: silu_mul(g.cpu(), u), "up is on puone:0, but gate is on"),
        "dtype": (lambda g, u: silu_mul(g, u.double()), "up is Double, but gate is Float"),
        "integers": (lambda g, u: silu_mul(g.long(), u.long()), "floating-point tensor, not Long"),
        "dimensions": (lambda g, u: silu_mul(g, u[0]), "up has 1 dimensions, but gate has 2"),
        "size": (
            lambda g, u: silu_mul(g, u[:, :2]),
            "up has size 2 in dimension 1, but gate has 4",
        ),
        "gradient": (
            lambda g, u: torch.ops.puone.silu_mul_backward(g[:1], g, u),
            "grad has size 1 in dimension 0",
        ),
    }


@pytest.mark.parametrize("case", wrong_arguments())
def test_wrong_arguments_are_named(case: str) -> None:
    call, message = wrong_arguments()[case]
    with pytest.raises(RuntimeError, match=message):
        call(*pair())


@pytest.mark.parametrize("case", ["dtype", "integers", "dimensions", "size", "gradient"])
def test_wrong_arguments_are_named_without_memory_too(case: str) -> None:
    call, message = wrong_arguments()[case]
    with pytest.raises(RuntimeError, match=message):
        call(*(x.to("meta") for x in pair()))


@pytest.mark.parametrize("device", ["puone", "cpu"])
def test_first_and_second_gradients_are_right(device: str) -> None:
    inputs = [x.detach().to(device).requires_grad_() for x in pair(2, 3, dtype=torch.float64)]
    assert torch.autograd.gradcheck(silu_mul, inputs)
    assert torch.autograd.gradgradcheck(silu_mul, inputs)


def test_the_gradient_keeps_the_inputs_only() -> None:
    gate, up = pair(grad=True)
    kept: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        silu_mul(gate, up)
    assert sorted(x.data_ptr() for x in kept) == sorted([gate.data_ptr(), up.data_ptr()])


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "expanded", "empty"])
def test_opcheck_finds_nothing(layout: str, grad: bool) -> None:
    arguments = tuple(LAYOUTS[layout](x) for x in pair(grad=grad))
    op = torch.ops.puone.silu_mul.default
    assert set(torch.library.opcheck(op, arguments, test_utils=UTILITIES).values()) == {"SUCCESS"}
    # The registration of gradients is judged on the CPU: opcheck knows no PrivateUse1 for it.
    on_cpu = tuple(x.detach().cpu().requires_grad_(grad) for x in arguments)
    assert set(torch.library.opcheck(op, on_cpu).values()) == {"SUCCESS"}


def test_opcheck_finds_nothing_in_the_backward() -> None:
    gate, up = pair(grad=True)
    op = torch.ops.puone.silu_mul_backward.default
    found = torch.library.opcheck(op, (up, gate, up), test_utils=UTILITIES)
    assert set(found.values()) == {"SUCCESS"}


def test_fake_tensors_get_shape_and_device() -> None:
    with FakeTensorMode():
        gate, up = (torch.empty(5, 6, device="puone", dtype=torch.float16) for _ in range(2))
        result = silu_mul(gate.t(), up.t())
    assert (result.shape, result.stride()) == ((6, 5), (1, 6))
    assert (result.device.type, result.dtype) == ("puone", torch.float16)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_code_keeps_it_whole_and_trains(dynamic: bool) -> None:
    graphs: list[list[str]] = []

    def collect(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append([str(node.target) for node in module.graph.nodes])
        return make_boxed_func(module.forward)

    def work(gate: Tensor, up: Tensor) -> Tensor:
        return silu_mul(gate.sin(), up) + 1

    compiled = torch.compile(
        work,
        backend=aot_autograd(fw_compiler=collect, bw_compiler=collect),
        fullgraph=True,
        dynamic=dynamic,
    )
    gate, up = pair(grad=True)
    result = compiled(gate, up)
    result.sum().backward()
    assert len(graphs) == 2
    assert "puone.silu_mul.default" in graphs[0]
    assert "puone.silu_mul_backward.default" in graphs[1]
    again = [x.detach().requires_grad_() for x in (gate, up)]
    expected = work(*again)
    expected.sum().backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close([gate.grad, up.grad], [x.grad for x in again])


def test_exported_programs_take_other_sizes() -> None:
    class Gate(torch.nn.Module):
        def forward(self, gate: Tensor, up: Tensor) -> Tensor:
            return silu_mul(gate, up)

    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = ({0: rows}, {0: rows})
    program = torch.export.export(Gate(), tuple(pair()), dynamic_shapes=shapes)
    assert "puone.silu_mul.default" in str(program.graph)
    other = pair(17, 4)
    torch.testing.assert_close(program.module()(*other), silu_mul(*other))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_runs_it_for_each_sample() -> None:
    gate, up = pair()
    torch.testing.assert_close(torch.func.vmap(silu_mul)(gate, up), silu_mul(gate, up))
    one_up = torch.func.vmap(silu_mul, in_dims=(0, None))(gate, up[0])
    torch.testing.assert_close(one_up, silu_mul(gate, up[0].expand(3, 4)))


def test_torch_func_refuses_gradients_written_in_cpp() -> None:
    # Upstream's limit, which the documentation names: no wrong gradient comes of it.
    gate, up = pair()
    with pytest.raises(RuntimeError, match=r"C\+\+ torch::autograd::Function with functorch"):
        torch.func.grad(lambda x: silu_mul(x, up).sum())(gate)


def test_autocast_computes_in_the_widest_type() -> None:
    gate, up = pair(dtype=torch.float16, grad=True)
    with torch.autocast("puone", dtype=torch.float16):
        assert silu_mul(gate, up).dtype == torch.float16
        mixed = silu_mul(gate, up.float())
    assert mixed.dtype == torch.float32
    mixed.sum().backward()
    assert gate.grad is not None
    assert gate.grad.dtype == torch.float16
    with pytest.raises(RuntimeError, match="up is Float, but gate is Half"):
        silu_mul(gate, up.float())
