# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise operators: what OpInfo's samples do not reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from interpreter import Python
from torch import Tensor
from torch.nn import functional

import torch_puone as puone

INFINITY = float("inf")
SPECIAL = [0.0, -0.0, INFINITY, -INFINITY, float("nan"), 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, -1.0]

# The largest error of a function of floats, in units in the last place of the exact result.
FUNCTIONS: dict[str, tuple[float, float, float]] = {
    "exp": (-104, 88.7, 1.5),
    "exp2": (-150, 127.9, 1.5),
    "expm1": (-20, 88.7, 2),
    "log": (0, 3e38, 1.5),
    "log2": (0, 3e38, 1.5),
    "log10": (0, 3e38, 2),
    "log1p": (-0.999, 3e38, 2),
    "sin": (-3e5, 3e5, 2),
    "cos": (-3e5, 3e5, 2),
    "tan": (-3e5, 3e5, 4),
    "asin": (-1, 1, 3),
    "acos": (-1, 1, 2),
    "atan": (-50, 50, 3),
    "sinh": (-88, 88, 3),
    "cosh": (-88, 88, 3),
    "tanh": (-12, 12, 3),
    "asinh": (-1e6, 1e6, 2),
    "acosh": (1, 1e6, 2),
    "atanh": (-0.999, 0.999, 3),
    "sigmoid": (-80, 80, 3),
    "erf": (-5, 5, 2),
    "rsqrt": (1e-30, 1e30, 2),
}


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    """None of these tests may borrow an operator from the CPU."""
    yield
    assert not puone._fallback_counts()


def ulps(result: Tensor, exact: Tensor) -> Tensor:
    """How far floats are from exact values, in units in the last place."""
    rounded = exact.float()
    unit = (rounded.nextafter(torch.tensor(INFINITY)) - rounded).abs().double()
    return ((result.double() - exact).abs() / unit)[(exact.abs() > 1e-37) & exact.isfinite()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_floats_are_accurate_over_their_whole_range(name: str) -> None:
    low, high, limit = FUNCTIONS[name]
    function = getattr(torch, name)
    spread = torch.linspace(0, 1, 100_003, dtype=torch.float64)
    near_zero = torch.logspace(-30, 0, 20_001, dtype=torch.float64)
    x = torch.cat([low + (high - low) * spread, near_zero, -near_zero]).float()
    x = x[(x >= low) & (x <= high)]
    result = function(x.to("puone")).cpu()
    assert ulps(result, function(x.double())).max() <= limit


@pytest.mark.parametrize("name", [*FUNCTIONS, "abs", "neg", "sign", "ceil", "round", "frac"])
def test_special_numbers_give_what_they_give_on_the_cpu(name: str) -> None:
    x = torch.tensor(SPECIAL)
    function = getattr(torch, name)
    expected = function(x)
    result = function(x.to("puone")).cpu()
    torch.testing.assert_close(result, expected, rtol=2e-6, atol=1e-44, equal_nan=True)
    zeros = (expected == 0) & (result == 0)
    assert torch.equal(result.signbit()[zeros], expected.signbit()[zeros])


BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "pow": torch.pow,
    "atan2": torch.atan2,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "copysign": torch.copysign,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "xlogy": torch.xlogy,
    "heaviside": torch.heaviside,
    "nextafter": torch.nextafter,
    "le": torch.le,
    "eq": torch.eq,
    "logical_xor": torch.logical_xor,
}


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_special_numbers_give_what_they_give_on_the_cpu(name: str) -> None:
    values = torch.tensor([*SPECIAL, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 7.5])
    a, b = values[:, None], values[None, :]
    expected = BINARY[name](a, b)
    result = BINARY[name](a.to("puone"), b.to("puone")).cpu()
    if name in ("fmod", "remainder"):  # the CPU does not know the rest of enormous quotients
        enormous = (a / b).isinf() & a.isfinite() & (b != 0)
        result, expected = result[~enormous], expected[~enormous]
    torch.testing.assert_close(result, expected, rtol=2e-6, atol=1e-44, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
def test_integers_wrap_around_and_division_never_traps(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    a = torch.tensor([info.min, info.max, info.max, 5], dtype=dtype)
    x = a.to("puone")
    assert torch.equal((x + 1).cpu(), a + 1)
    assert torch.equal((x * x).cpu(), a * a)
    assert torch.equal(x.neg().cpu(), a.neg())
    assert torch.equal(x.pow(3).cpu(), a.pow(3))
    zero = torch.zeros_like(x)
    for operator in (torch.floor_divide, torch.remainder, torch.fmod, torch.gcd, torch.lcm):
        operator(x, zero)  # an unspecified number
    if info.min < 0:
        minus_one = torch.full_like(x, -1)
        assert x.floor_divide(minus_one)[0].item() == info.min
        assert x.remainder(minus_one)[0].item() == 0
    puone.synchronize()


# Operands that are promoted to a narrower type than their own, or results that leave it.
NARROWED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a scalar wraps in a comparison": lambda x, y: x == -1,
    "a scalar wraps in an order": lambda x, y: x > -2,
    "a scalar wraps in a quotient": lambda x, y: x.floor_divide(-3),
    "a scalar wraps in a remainder": lambda x, y: x.remainder(-3),
    "a tensor without dimensions wraps": lambda x, y: torch.maximum(x, y[0]),
    "a tensor without dimensions wraps, of one element": lambda x, y: x[:1] <= y[1],
    "a tensor without dimensions wraps as a limit": lambda x, y: x.clamp(max=y[0]),
    "a tensor without dimensions is divided": lambda x, y: y[0] // x,
    "a scalar wraps where it is chosen": lambda x, y: torch.where(x > 2, x, -1),
    "a sum wraps before it is widened": lambda x, y: torch.add(x, x, out=torch.empty_like(y)),
    "a product wraps before it is widened": lambda x, y: torch.mul(
        x, x, out=torch.empty_like(y, dtype=torch.float32)
    ),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
@pytest.mark.parametrize("name", NARROWED)
def test_short_integers_wrap_to_what_they_are_promoted_to(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([1, 2, 3, 44, 100, 255, 32767]).to(dtype)
    y = torch.tensor([70300, -1, 300, 70301, 5, 6, 7])
    expected, actual = NARROWED[name](x, y), NARROWED[name](x.to("puone"), y.to("puone"))
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0)


def test_mixed_types_scalars_and_broadcasting_follow_the_cpu() -> None:
    for a_type in (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float32):
        for b_type in (torch.int16, torch.float16, torch.float64):
            a = torch.arange(12).reshape(3, 4).to(a_type)
            b = (torch.arange(4) + 1).to(b_type)
            for operator in (torch.add, torch.remainder, torch.pow, torch.gt, torch.maximum):
                expected = operator(a, b)
                result = operator(a.to("puone"), b.to("puone"))
                assert result.dtype == expected.dtype
                torch.testing.assert_close(result.cpu(), expected, equal_nan=True)
    x = torch.arange(6.0).to("puone")
    assert torch.equal(
        torch.where(x > 2, x, torch.tensor(-1.5)).cpu(), torch.tensor([-1.5] * 3 + [3, 4, 5])
    )
    assert torch.where(x > 2, 1, 0).dtype == torch.int64
    assert torch.equal((2**x).cpu(), 2 ** torch.arange(6.0))
    assert torch.equal((7 % x[1:]).cpu(), 7 % torch.arange(1.0, 6.0))
    assert torch.equal((1 << x.int()).cpu(), 1 << torch.arange(6).int())


def test_operators_reach_strided_expanded_and_empty_tensors() -> None:
    base = torch.randn(6, 7, 5)
    device = base.to("puone")
    for view in (
        lambda t: t.transpose(0, 2),
        lambda t: t[::2, 1:, ::3],
        lambda t: t[:, :1].expand(6, 7, 5),
        lambda t: t.select(1, 3),
        lambda t: t[:0],
    ):
        torch.testing.assert_close(view(device).exp().cpu(), view(base).exp())
        torch.testing.assert_close(view(device).clamp(-1, 0.5).cpu(), view(base).clamp(-1, 0.5))
        assert view(device).tanh().stride() == view(base).tanh().stride()
    out = torch.empty(0, device="puone")
    assert torch.equal(torch.sign(device, out=out).cpu(), base.sign())
    device[:, ::2].mul_(2).clamp_(min=0)
    base[:, ::2].mul_(2).clamp_(min=0)
    assert torch.equal(device.cpu(), base)


def test_a_bound_beyond_the_dtype_bounds_nothing_or_is_refused() -> None:
    x = torch.tensor([0, 1, 200], dtype=torch.uint8, device="puone")
    assert functional.hardtanh(x).tolist() == [0, 1, 1]
    assert x.clamp(-300, 300).tolist() == [0, 1, 200]
    with pytest.raises(RuntimeError, match="Clamp min value 300 is outside"):
        x.clamp(min=300)
    with pytest.raises(RuntimeError, match="Clamp max value -1 is outside"):
        x.clamp(max=-1)
    assert x.long().clamp(min=2**62).tolist() == [2**62] * 3


def test_operators_refuse_what_the_cpu_refuses() -> None:
    x = torch.ones(3, device="puone")
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(3).add_(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].mul_(x[:-1])
    with pytest.raises(RuntimeError, match=r"same device|at least two devices"):
        torch.maximum(x, torch.ones(3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.exp(x, out=torch.empty(3, dtype=torch.int32, device="puone"))
    with pytest.raises(NotImplementedError, match="not implemented"):
        torch.frac(x.int())
    with pytest.raises(RuntimeError, match="boolean"):
        torch.where(x, x, x)


def test_conjugate_and_negative_views_are_operands_like_others() -> None:
    z = torch.randn(5, dtype=torch.complex64)
    d = z.to("puone")
    torch.testing.assert_close(d.conj().exp().cpu(), z.conj().exp())
    torch.testing.assert_close((d.conj() * d).cpu(), z.conj() * z)
    torch.testing.assert_close(d.conj().imag.tanh().cpu(), z.conj().imag.tanh())
    torch.testing.assert_close(d.abs().cpu(), z.abs())
    for view in (torch.clone, torch.conj, lambda t: t.conj().imag):
        ours, expected = view(d.clone()), view(z.clone())
        assert torch.equal(ours.conj_physical_().cpu(), expected.conj_physical_())
    assert not puone._fallback_counts()


def test_complex_halves_are_computed_in_complex_floats() -> None:
    z = torch.tensor([3 + 4j, -1 + 0j, 0j, 0.5 - 2j])
    half = z.to("puone", torch.complex32)
    puone._reset_fallback_counts()
    for operator in (torch.neg, torch.sgn, torch.conj_physical, torch.abs, torch.exp):
        result, expected = operator(half), operator(z)
        assert result.dtype == (torch.complex32 if expected.is_complex() else torch.float16)
        assert torch.equal(result, expected.to(result.dtype).to("puone"))
    assert half.eq(3 + 4j).tolist() == [True, False, False, False]
    assert half.ne(half.conj()).tolist() == [True, False, False, True]
    assert not puone._fallback_counts()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "elu": lambda x: functional.elu(x, 1.5),
    "selu": functional.selu,
    "celu": lambda x: functional.celu(x, 0.7),
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "mish": functional.mish,
    "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid,
    "hardtanh": lambda x: functional.hardtanh(x, -0.5, 2),
    "softplus": lambda x: functional.softplus(x, 1.5, 8),
    "softshrink": functional.softshrink,
    "hardshrink": functional.hardshrink,
    "logsigmoid": functional.logsigmoid,
    "glu": functional.glu,
    "prelu": lambda x: functional.prelu(x, torch.tensor([0.3], device=x.device, dtype=x.dtype)),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "logit": lambda x: torch.logit(x, 2**-6),
}


TOLERANCES = {
    torch.float32: (1e-5, 2e-6),
    torch.bfloat16: (1.6e-2, 2e-2),
    torch.float64: (1e-7, 1e-9),
}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_gradients_are_right(name: str, dtype: torch.dtype) -> None:
    edges = torch.tensor([[-4, 4, -0.25, 0.25] * 10])
    x = torch.cat([torch.randn(30, 40) * 3, edges]).to(dtype)
    ours = x.to("puone").requires_grad_()
    exact = x.double().requires_grad_()
    result, expected = ACTIVATIONS[name](ours), ACTIVATIONS[name](exact)
    gradient = torch.randn_like(expected).to(dtype)
    result.backward(gradient.to("puone"))
    expected.backward(gradient.double())
    assert ours.grad is not None and exact.grad is not None
    assert result.dtype == ours.grad.dtype == dtype
    rtol, atol = TOLERANCES[dtype]
    for actual, wanted in ((result.detach(), expected.detach()), (ours.grad, exact.grad)):
        torch.testing.assert_close(actual.cpu().double(), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_the_bounds_of_logit_are_not_rounded_to_16_bits(dtype: torch.dtype) -> None:
    x = torch.tensor([0.9, 0.1], dtype=dtype, device="puone")
    bounded = torch.logit(x, 0.2).cpu()
    torch.testing.assert_close(
        bounded, torch.tensor([1, -1], dtype=dtype) * math.log(4), rtol=2e-7, atol=0
    )


def test_many_elements_are_the_same_on_any_number_of_cores(python: Python) -> None:
    program = """
import hashlib, torch, torch_puone
x = torch.randn(300_001, generator=torch.Generator().manual_seed(1)).to("puone")
y = torch.where(x.sin() > 0, x.pow(2.5).nan_to_num(), torch.nn.functional.gelu(x.half()).float())
print(hashlib.sha256((y * 1e5).sin().cpu().numpy().tobytes()).hexdigest())
"""
    one, two = (python(program, env={"PUONE_SIM_CORES": cores}) for cores in ("1", "2"))
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert one.stdout == two.stdout != ""


def test_operators_are_queued_not_waited_for() -> None:
    x = torch.zeros(4, device="puone")
    puone._sleep_ms(60)
    y = x.exp().add(1).tanh()
    assert not puone.current_stream().query()
    torch.testing.assert_close(y.cpu(), torch.full((4,), 2.0).tanh())


def test_a_truncated_quotient_is_not_rounded_before() -> None:
    a = torch.tensor([-8.5625, 8.625], dtype=torch.bfloat16, device="puone")
    b = torch.tensor([0.140625, -0.2109375], dtype=torch.bfloat16, device="puone")
    assert (a / b).tolist() == [-61.0, -41.0]  # of -60.89 and -40.89
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [-60.0, -40.0]


DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
)
INTO_OUT: dict[str, Callable[..., Tensor]] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "scaled": lambda x, out: torch.add(x, x[:1], alpha=3, out=out),
    "mul": lambda x, out: torch.mul(x, x, out=out),
    "quotient": lambda x, out: torch.div(x, x.flip(0), out=out),
    "maximum": lambda x, out: torch.maximum(x, x.flip(0), out=out),
    "number": lambda x, out: torch.mul(x, 3, out=out),
    "zero_dimensional": lambda x, out: torch.add(x, x.new_ones((), dtype=torch.float32), out=out),
}


@pytest.mark.parametrize("size", [7, 5000], ids=["elements", "vectors"])
@pytest.mark.parametrize("name", INTO_OUT)
def test_results_are_of_the_promoted_type_before_they_are_of_the_outputs(
    name: str, size: int
) -> None:
    """They wrap around, and narrow floats are rounded: also into an output that could hold more."""

    def result(device: str, dtype: torch.dtype, into: torch.dtype) -> Tensor | type[Exception]:
        x = (torch.arange(size) % 97 * 1.37 + 1).to(dtype).to(device)
        try:
            return INTO_OUT[name](x, torch.empty(size, dtype=into, device=device)).cpu()
        except (RuntimeError, NotImplementedError):
            return RuntimeError

    compared = 0
    for dtype, into in itertools.product(DTYPES, DTYPES):
        expected, found = result("cpu", dtype, into), result("puone", dtype, into)
        if isinstance(expected, Tensor):
            assert isinstance(found, Tensor), f"{dtype} into {into}"
            bound = 1e-5 if name == "quotient" and dtype.is_complex else 0.0
            torch.testing.assert_close(
                found, expected, rtol=bound, atol=0, msg=f"{dtype} into {into}"
            )
            compared += 1
    assert compared > 30
