# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision: what torch.autocast casts, and to what, is the same on every accelerator.

The lists of operators are CUDA's. They are written out by operator and overload with arguments for
one call each; a test of the suite compares them with what the dispatcher knows for CUDA.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, in_thread, index, noise, raised
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.refusal import refuses

LOW = ("float16", "bfloat16")

#: Makes a tensor of a shape, on the device and of the dtype of the operand it is for.
Make = Callable[..., Tensor]
#: The arguments of one call; operands come from the first maker, and from the second where the
#: operator promotes operands of different types.
Arguments = Callable[[Make, Make], tuple[Any, ...]]


def _make(device: torch.device, dtype: torch.dtype, *shape: int) -> Tensor:
    """Values in (0.1, 0.9), where every function of the lists is defined."""
    return (noise(shape, seed=len(shape)).sigmoid() * 0.8 + 0.1).to(device, dtype)


def _image(t: Make, dims: int, channels: tuple[int, int] = (3, 2)) -> tuple[Any, ...]:
    """Input and weight of a convolution with two input channels."""
    return t(1, 2, *[5] * dims), t(*channels, *[3] * dims)


def _cell(t: Make, gates: int) -> tuple[Any, ...]:
    """Input, hidden state, weights and biases of a recurrent cell of size 4."""
    return (
        t(2, 3),
        t(2, 4),
        t(4 * gates, 3),
        t(4 * gates, 4),
        t(4 * gates),
        t(4 * gates),
    )


def _lstm(t: Make) -> tuple[Any, ...]:
    x, h, *parameters = _cell(t, 4)
    return x, [h, h], *parameters


def _convolution(t: Make, *flags: bool) -> tuple[Any, ...]:
    return *_image(t, 2), t(3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1, *flags


def _attention(t: Make) -> tuple[Any, ...]:
    return t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8)


#: Operators that run in the low precision: their operands are given in float32.
LOWER: dict[str, Arguments] = {
    "_convolution": lambda t, _: _convolution(t, False, False, True, True),
    "_convolution.deprecated": lambda t, _: _convolution(t, False, False, True),
    "conv1d": lambda t, _: _image(t, 1),
    "conv2d": lambda t, _: _image(t, 2),
    "conv3d": lambda t, _: _image(t, 3),
    "conv_tbc": lambda t, _: (t(5, 1, 2), t(3, 2, 4), t(4)),
    "conv_transpose1d": lambda t, _: _image(t, 1, (2, 3)),
    "conv_transpose2d.input": lambda t, _: _image(t, 2, (2, 3)),
    "conv_transpose3d.input": lambda t, _: _image(t, 3, (2, 3)),
    "convolution": lambda t, _: _convolution(t),
    "prelu": lambda t, _: (t(2, 3), t(1)),
    "addmm": lambda t, _: (t(2, 2), t(2, 3), t(3, 2)),
    "addmv": lambda t, _: (t(2), t(2, 3), t(3)),
    "addr": lambda t, _: (t(2, 3), t(2), t(3)),
    "matmul": lambda t, _: (t(4, 2, 3), t(3, 2)),
    "einsum": lambda t, _: ("ij,jk->ik", [t(2, 3), t(3, 2)]),
    "mm": lambda t, _: (t(2, 3), t(3, 2)),
    "mv": lambda t, _: (t(2, 3), t(3)),
    "linalg_vecdot": lambda t, _: (t(2, 3), t(2, 3)),
    "linear": lambda t, _: (t(2, 3), t(4, 3), t(4)),
    "addbmm": lambda t, _: (t(2, 2), t(4, 2, 3), t(4, 3, 2)),
    "baddbmm": lambda t, _: (t(4, 2, 2), t(4, 2, 3), t(4, 3, 2)),
    "bmm": lambda t, _: (t(4, 2, 3), t(4, 3, 2)),
    "chain_matmul": lambda t, _: ([t(2, 3), t(3, 2), t(2, 4)],),
    "linalg_multi_dot": lambda t, _: ([t(2, 3), t(3, 2), t(2, 4)],),
    "_thnn_fused_lstm_cell": lambda t, _: (t(2, 16), t(2, 16), t(2, 4)),
    "_thnn_fused_gru_cell": lambda t, _: (t(2, 12), t(2, 12), t(2, 4)),
    "lstm_cell": lambda t, _: _lstm(t),
    "gru_cell": lambda t, _: _cell(t, 3),
    "rnn_tanh_cell": lambda t, _: _cell(t, 1),
    "rnn_relu_cell": lambda t, _: _cell(t, 1),
    "_scaled_dot_product_flash_attention": lambda t, _: _attention(t),
    "scaled_dot_product_attention": lambda t, _: _attention(t),
}


def _one(t: Make, _: Make) -> tuple[Any, ...]:
    return (t(4),)


def _two(t: Make, _: Make) -> tuple[Any, ...]:
    return t(2, 3), t(2, 3).flip(0)


def _by_dim(t: Make, _: Make) -> tuple[Any, ...]:
    return t(2, 3), 1


def _resized(t: Make, _: Make, *, dims: int, corners: bool | None = None) -> tuple[Any, ...]:
    """An image, its new size, and how to align corners where the operator asks for it."""
    return t(1, 1, *[3] * dims), [5] * dims, *([] if corners is None else [corners])


#: Operators that run in float32: their operands are given in the low precision.
FP32: dict[str, Arguments] = {
    **dict.fromkeys(
        (
            *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p"),
            *("reciprocal", "rsqrt", "sinh", "tan", "softplus", "prod", "sum"),
            "linalg_vector_norm",
        ),
        _one,
    ),
    **dict.fromkeys(
        (
            *("l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "soft_margin_loss"),
            *("dist", "cdist", "kl_div", "hinge_embedding_loss", "cosine_similarity"),
            *("binary_cross_entropy_with_logits", "pow.Tensor_Tensor"),
        ),
        _two,
    ),
    **dict.fromkeys(
        ("softmax.int", "log_softmax.int", "cumprod", "cumsum", "prod.dim_int"), _by_dim
    ),
    "pow.Tensor_Scalar": lambda t, _: (t(4), 1.7),
    "pow.Scalar": lambda t, _: (1.7, t(4)),
    "layer_norm": lambda t, _: (t(2, 3), [3]),
    "native_layer_norm": lambda t, _: (t(2, 3), [3], None, None, 1e-5),
    "rms_norm": lambda t, _: (t(2, 3), [3]),
    "group_norm": lambda t, _: (t(2, 4), 2),
    "frobenius_norm.dim": lambda t, _: (t(2, 3), [1]),
    "nuclear_norm": lambda t, _: (t(3, 3),),
    "nuclear_norm.dim": lambda t, _: (t(3, 3), [0, 1]),
    "linalg_matrix_norm": lambda t, _: (t(3, 3), 1),
    "linalg_matrix_norm.str_ord": lambda t, _: (t(3, 3), "fro"),
    "norm.Scalar": lambda t, _: (t(4), 2),
    "norm.ScalarOpt_dim": lambda t, _: (t(4), 2, [0]),
    "sum.dim_IntList": lambda t, _: (t(2, 3), [1]),
    "poisson_nll_loss": lambda t, _: (t(2, 3), t(2, 3), True, False, 1e-8, 1),
    "cosine_embedding_loss": lambda t, _: (t(2, 3), t(2, 3), t(2)),
    "nll_loss": lambda t, _: (t(2, 3), index(t(1), 0, 2)),
    "nll_loss2d": lambda t, _: (t(1, 3, 1, 2), index(t(1), 0, 2).view(1, 1, 2)),
    "margin_ranking_loss": lambda t, _: (t(3), t(3), t(3)),
    "multilabel_margin_loss": lambda t, _: (t(1, 3), index(t(1), 0, 2, -1).view(1, 3)),
    "triplet_margin_loss": lambda t, _: (t(2, 3), t(2, 3), t(2, 3)),
    "multi_margin_loss": lambda t, _: (t(2, 3), index(t(1), 0, 2)),
    "pdist": lambda t, _: (t(3, 2),),
    "renorm": lambda t, _: (t(2, 3), 2, 0, 1.0),
    "logsumexp": lambda t, _: (t(2, 3), [1]),
    "upsample_nearest1d": partial(_resized, dims=1),
    "_upsample_nearest_exact1d": partial(_resized, dims=1),
    "upsample_nearest2d": partial(_resized, dims=2),
    "_upsample_nearest_exact2d": partial(_resized, dims=2),
    "upsample_nearest3d": partial(_resized, dims=3),
    "_upsample_nearest_exact3d": partial(_resized, dims=3),
    "upsample_linear1d": partial(_resized, dims=1, corners=False),
    "upsample_bilinear2d": partial(_resized, dims=2, corners=False),
    "_upsample_bilinear2d_aa": partial(_resized, dims=2, corners=False),
    "upsample_bicubic2d": partial(_resized, dims=2, corners=False),
    "_upsample_bicubic2d_aa": partial(_resized, dims=2, corners=False),
    "upsample_trilinear3d": partial(_resized, dims=3, corners=False),
}

#: Operators that run in the widest type among their operands: low precision and another.
PROMOTE: dict[str, Arguments] = {
    "addcdiv": lambda t, f: (f(4), t(4), t(4)),
    "addcmul": lambda t, f: (t(4), f(4), t(4)),
    "atan2": lambda t, f: (f(4), t(4)),
    "bilinear": lambda t, f: (t(1, 2), f(1, 2), t(1, 2, 2), f(1)),
    "cross": lambda t, f: (f(3), t(3)),
    "dot": lambda t, f: (t(4), f(4)),
    "vdot": lambda t, f: (t(4), f(4)),
    "grid_sampler": lambda t, f: (t(1, 2, 3, 3), f(1, 2, 2, 2), 0, 0, False),
    "index_put": lambda t, f: (t(4), [index(t(1), 1)], f(1)),
    "tensordot": lambda t, f: (f(2, 3), t(3, 2), [1], [0]),
    "scatter_add": lambda t, f: (t(3), 0, index(t(1), 0, 2), f(2)),
}

#: Operators that autocast refuses, because they are not safe in low precision.
REFUSED: dict[str, Arguments] = {"binary_cross_entropy": _two}


def case_of(operator: str) -> str:
    """The word for an operator and overload in a check id."""
    return operator.replace(".", "_").lower()


_OPERATOR = {case_of(name): name for name in (*LOWER, *FP32, *PROMOTE)}


def _call(name: str, arguments: tuple[Any, ...]) -> Tensor:
    """Call an operator by its dispatcher name; the first tensor of what it returns."""
    base, _, overload = name.partition(".")
    result = getattr(getattr(torch.ops.aten, base), overload or "default")(*arguments)
    first: Tensor = result if isinstance(result, Tensor) else result[0]
    return first


def _on_cudas_list(name: str) -> bool:
    """Whether the installed torch casts the operator on CUDA: lists grow with torch."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "AutocastCUDA")


def _exists(name: str, arguments: Arguments, plain: Make) -> bool:
    """Whether the operator has a kernel on the device, apart from autocast."""
    try:
        _call(name, arguments(plain, plain))
    except RuntimeError as error:
        if not refuses(error):
            raise
        return False
    return True


def _result(dev: Device, case: str, arguments: Arguments, kinds: tuple[torch.dtype, ...]) -> Tensor:
    """What the operator returns under autocast for operands of two dtypes, low precision last."""
    name, low = _OPERATOR[case], kinds[-1]
    if not _on_cudas_list(name):
        dev.unsupported(f"this torch does not cast aten::{name} on CUDA either")
    makers = [partial(_make, dev.device(), kind) for kind in kinds[:2]]
    try:
        with torch.autocast(dev.type, dtype=low):
            return _call(name, arguments(*makers))
    except NotImplementedError as error:
        own = low if name in LOWER else torch.float32
        if _exists(name, arguments, partial(_make, dev.device(), own)):
            raise
        dev.unsupported(f"no kernel for aten::{name}: {first_line(error)}")


@check(
    "autocast/lower",
    "AUTOCAST-001",
    needs=("autocast", "accelerator"),
    cases=[case_of(name) for name in LOWER],
    dtypes=LOW,
)
def the_lower_precision_list_is_lowered(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The operator casts float32 operands to the region's data type."""
    dev.require(str(dtype).removeprefix("torch."))
    arguments = LOWER[_OPERATOR[case]]
    result = _result(dev, case, arguments, (torch.float32, torch.float32, dtype))
    assert result.dtype == dtype, f"{result.dtype} where {dtype} is due"


@check(
    "autocast/fp32",
    "AUTOCAST-002",
    needs=("autocast", "accelerator"),
    cases=[case_of(name) for name in FP32],
    dtypes=LOW,
)
def the_fp32_list_runs_in_float32(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The operator casts operands of low precision to float32."""
    dev.require(str(dtype).removeprefix("torch."))
    result = _result(dev, case, FP32[_OPERATOR[case]], (dtype, dtype, dtype))
    assert result.dtype == torch.float32, f"{result.dtype} where float32 is due"


@check(
    "autocast/promote",
    "AUTOCAST-003",
    needs=("autocast", "accelerator"),
    cases=[case_of(name) for name in PROMOTE],
    dtypes=LOW,
)
def the_promote_list_takes_the_widest_type(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Operands of mixed types give float32; operands all of low precision stay as they are."""
    dev.require(str(dtype).removeprefix("torch."))
    arguments = PROMOTE[_OPERATOR[case]]
    mixed = _result(dev, case, arguments, (dtype, torch.float32, dtype))
    assert mixed.dtype == torch.float32, f"{mixed.dtype} where float32 is due"
    low = _result(dev, case, arguments, (dtype, dtype, dtype))
    assert low.dtype == dtype, f"{low.dtype} where {dtype} is due"


@check("autocast/refused", "AUTOCAST-004", needs=("autocast", "accelerator"), cases=REFUSED)
def what_is_unsafe_is_refused(dev: Device, case: str) -> None:
    """An operator that is unsafe in low precision raises and names the safe one."""
    make = partial(_make, dev.device(), torch.float32)
    with torch.autocast(dev.type):
        error = raised(lambda: _call(case, REFUSED[case](make, make)))
    assert isinstance(error, RuntimeError)
    assert "binary_cross_entropy_with_logits" in str(error) or "BCEWithLogits" in str(error)
    _call(case, REFUSED[case](make, make))  # and works outside


# ---- what is left alone ------------------------------------------------------------------------


def _supported(dev: Device) -> list[torch.dtype]:
    """float16 and bfloat16, as far as the backend has them."""
    return [dtype for dtype in (torch.float16, torch.bfloat16) if dtype in dev.dtypes("floating")]


_UNLISTED: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2,
    "relu": torch.relu,
    "cat": lambda x: torch.cat([x, x]),
    "max": lambda x: x.max(),
    "clone": torch.clone,
    "transpose": lambda x: x.t(),
    "sigmoid": torch.sigmoid,
    "mean": lambda x: x.mean(),
    "max_pool": lambda x: torch.nn.functional.max_pool1d(x[None], 2),
}


@check("autocast/unlisted", "AUTOCAST-005", needs=("autocast",), cases=_UNLISTED)
def operators_on_no_list_keep_their_type(dev: Device, case: str) -> None:
    """An operator on no list gives under autocast the type that it gives without."""
    x = _make(dev.device(), torch.float32, 4, 4)
    for low in _supported(dev):
        with torch.autocast(dev.type, dtype=low):
            assert _UNLISTED[case](x).dtype == torch.float32
            assert _UNLISTED[case](x.to(low)).dtype == low


@check("autocast/float64", "AUTOCAST-005", needs=("autocast", "float64"))
def float64_is_never_cast(dev: Device) -> None:
    """float64 operands keep their type in operators of the lower and the float32 list."""
    x = _make(dev.device(), torch.float64, 3, 3)
    with torch.autocast(dev.type):
        assert (x @ x).dtype == torch.float64
        assert x.exp().dtype == torch.float64


@check("autocast/integers", "AUTOCAST-005", needs=("autocast",))
def integers_are_never_cast(dev: Device) -> None:
    """An integer operand passes through the lists unchanged."""
    x = torch.arange(6, device=dev.device())
    with torch.autocast(dev.type):
        assert x.sum().dtype == torch.int64
        assert x.cumsum(0).dtype == torch.int64


@check("autocast/explicit_dtype", "AUTOCAST-002", needs=("autocast", "accelerator"), dtypes=LOW)
def an_explicit_dtype_wins(dev: Device, dtype: torch.dtype) -> None:
    """dtype= given to a reduction of the float32 list decides its result."""
    dev.require(str(dtype).removeprefix("torch."))
    x = _make(dev.device(), dtype, 4)
    with torch.autocast(dev.type, dtype=dtype):
        for result in (x.sum(dtype=dtype), x.cumsum(0, dtype=dtype), x.softmax(0, dtype=dtype)):
            assert result.dtype == dtype


@check("autocast/out", "AUTOCAST-005", needs=("autocast", "accelerator"))
def out_variants_and_in_place_operators_are_not_cast(dev: Device) -> None:
    """out= and in-place forms run in the type of their operands."""
    x = _make(dev.device(), torch.float32, 3, 3)
    out = torch.empty_like(x)
    with torch.autocast(dev.type):
        torch.mm(x, x, out=out)
        y = x.clone().addmm_(x, x)
    assert y.dtype == out.dtype == torch.float32
    host = x.cpu()
    dev.assert_close(out, host @ host)
    dev.assert_close(y, host + host @ host)


@check("autocast/other_device", "AUTOCAST-006", needs=("autocast", "accelerator"))
def a_region_is_about_its_own_device(dev: Device) -> None:
    """Autocast for the device leaves the CPU alone, and the reverse; both nest."""
    here, there = noise((3, 3)), noise((3, 3)).to(dev.device())
    low = torch.get_autocast_dtype(dev.type)
    with torch.autocast(dev.type):
        assert (here @ here).dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert (here @ here).dtype == torch.bfloat16
            assert (there @ there).dtype == low
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (there @ there).dtype == torch.float32


# ---- the region --------------------------------------------------------------------------------


def _product(dev: Device) -> torch.dtype:
    x = _make(dev.device(), torch.float32, 2, 2)
    return (x @ x).dtype


#: What nesting is tried with: an outer region in float16, and in it this one.
_INNER = torch.bfloat16
_NESTING = ("autocast", "float16", "bfloat16")


@contextmanager
def _outer(dev: Device) -> Iterator[None]:
    """A region in float16 that must be in force when the block ends, and over after it."""
    with torch.autocast(dev.type, dtype=torch.float16):
        yield
        assert _product(dev) == torch.float16, "the outer region is not restored"
    assert _product(dev) == torch.float32
    assert not torch.is_autocast_enabled(dev.type)


@check("autocast/nesting:dtype", "AUTOCAST-006", needs=_NESTING)
def an_inner_region_has_its_own_dtype(dev: Device) -> None:
    """An inner region overrides the data type of the outer one, and restores it."""
    with _outer(dev), torch.autocast(dev.type, dtype=_INNER):
        assert _product(dev) == _INNER


@check("autocast/nesting:disabled", "AUTOCAST-006", needs=_NESTING)
def an_inner_region_can_switch_off(dev: Device) -> None:
    """Nothing is cast in an inner region with enabled=False."""
    with _outer(dev), torch.autocast(dev.type, enabled=False):
        assert _product(dev) == torch.float32


@check("autocast/nesting:reenabled", "AUTOCAST-006", needs=_NESTING)
def a_region_can_switch_on_again(dev: Device) -> None:
    """A region inside one with enabled=False casts to its own data type."""
    off = torch.autocast(dev.type, enabled=False)
    with _outer(dev), off, torch.autocast(dev.type, dtype=_INNER):
        assert _product(dev) == _INNER


@check("autocast/nesting:exception", "AUTOCAST-006", needs=_NESTING)
def an_error_restores_the_outer_region(dev: Device) -> None:
    """An exception leaves the inner region, passes through it, and the outer one is restored."""
    with _outer(dev):
        error = raised(lambda: torch.autocast(dev.type, dtype=_INNER)(_fails)())
        assert isinstance(error, ZeroDivisionError)


@check("autocast/nesting:decorator", "AUTOCAST-006", needs=_NESTING)
def a_region_can_decorate_a_function(dev: Device) -> None:
    """A function that a region decorates runs in it, and what follows its call does not."""
    assert torch.autocast(dev.type, dtype=_INNER)(_product)(dev) == _INNER
    assert _product(dev) == torch.float32


@check("autocast/nesting:thread", "AUTOCAST-006", needs=_NESTING)
def a_region_belongs_to_its_thread(dev: Device) -> None:
    """A thread that is started in a region is not in it."""
    dev.require("threads")
    with _outer(dev):
        assert in_thread(lambda: _product(dev)) == torch.float32


@check("autocast/nesting:state", "AUTOCAST-006", needs=_NESTING)
def the_state_of_a_region_can_be_asked_for(dev: Device) -> None:
    """is_autocast_enabled and get_autocast_dtype describe the region they are called in."""
    with _outer(dev):
        assert torch.is_autocast_enabled(dev.type)
        assert torch.get_autocast_dtype(dev.type) == torch.float16


def _fails() -> float:
    return 1 / 0


@check("autocast/default_dtype", "AUTOCAST-007", needs=("autocast",))
def the_default_dtype_can_be_set(dev: Device) -> None:
    """torch.set_autocast_dtype decides what a region without dtype= uses."""
    before = torch.get_autocast_dtype(dev.type)
    try:
        for dtype in _supported(dev):
            torch.set_autocast_dtype(dev.type, dtype)
            with torch.autocast(dev.type):
                assert _product(dev) == dtype
    finally:
        torch.set_autocast_dtype(dev.type, before)


@check("autocast/unsupported_dtype", "AUTOCAST-011", needs=("autocast", "privateuse1"))
def an_unsupported_dtype_warns_and_disables(dev: Device) -> None:
    """A dtype that the module does not list warns, names those it lists, and casts nothing."""
    supported = dev.module.get_amp_supported_dtype()
    dtype = next((d for d in (torch.float64, torch.float32) if d not in supported), None)
    if dtype is None:
        dev.unsupported("every floating data type is listed by get_amp_supported_dtype")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autocast(dev.type, dtype=dtype):
            assert not torch.is_autocast_enabled(dev.type)
            assert _product(dev) == torch.float32
    text = "\n".join(str(warning.message) for warning in caught)
    assert f"In {dev.type} autocast, but the target dtype is not supported" in text, text
    assert all(str(listed) in text for listed in supported)


# ---- the cache of casts ------------------------------------------------------------------------


def _cast_node(product: Tensor) -> Any:
    """The node of the graph through which the second operand of a product was cast."""
    assert product.grad_fn is not None
    return product.grad_fn.next_functions[1][0]


_CACHE = {"on": True, "off": False}


@check("autocast/cache", "AUTOCAST-012", needs=("autocast",), cases=_CACHE)
def a_weight_is_cast_once_in_a_region(dev: Device, case: str) -> None:
    """A leaf that requires grad is cast once in a region; with cache_enabled=False every time."""
    enabled = _CACHE[case]
    x = _make(dev.device(), torch.float32, 2, 2)
    w = _make(dev.device(), torch.float32, 2, 2).requires_grad_()
    with torch.autocast(dev.type, cache_enabled=enabled):
        first, second = x.mm(w), x.mm(w)
        assert (_cast_node(first) is _cast_node(second)) == enabled
    with torch.autocast(dev.type, cache_enabled=enabled):
        assert _cast_node(x.mm(w)) is not _cast_node(first)


@check("autocast/cache_cleared", "AUTOCAST-008", needs=("autocast",))
def leaving_the_region_drops_the_cache(dev: Device) -> None:
    """A weight updated after the region is used with its new value in the next."""
    x = torch.ones(1, 2, device=dev.device())
    w = torch.ones(2, 1, device=dev.device(), requires_grad=True)
    with torch.autocast(dev.type):
        with torch.autocast(dev.type):
            dev.assert_equal(x.mm(w).float(), [[2.0]])
        assert _cast_node(x.mm(w)) is _cast_node(x.mm(w)), "an inner region dropped the cache"
    with torch.no_grad():
        w.add_(1)
    with torch.autocast(dev.type):
        dev.assert_equal(x.mm(w).float(), [[4.0]])


@check("autocast/cache_freed", "AUTOCAST-008", needs=("autocast", "accelerator", "memory_stats"))
def leaving_the_region_frees_the_casts(dev: Device) -> None:
    """The memory of the cached casts is given back when the region ends."""
    index = dev.device().index
    allocated = []
    for _ in range(2):  # what the backend keeps for itself is there from the first time on
        w = torch.ones(256, 256, device=dev.device(), requires_grad=True)
        with torch.autocast(dev.type):
            w.mm(w)
            inside = torch.accelerator.memory_allocated(index)
        dev.synchronize()
        del w
        allocated.append(torch.accelerator.memory_allocated(index))
    assert inside > allocated[0], "nothing was cached"
    assert allocated[1] == allocated[0], "the casts are still held"


# ---- gradients ---------------------------------------------------------------------------------


@check("autocast/gradients", "AUTOCAST-009", needs=("autocast",), dtypes=LOW)
def gradients_have_the_type_of_their_parameter(dev: Device, dtype: torch.dtype) -> None:
    """Float32 parameters of a lowered network get float32 gradients near the exact ones."""
    dev.require(str(dtype).removeprefix("torch."))
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    x = noise((8, 6))
    module(x).square().mean().backward()
    expected = [p.grad for p in module.parameters()]
    module.zero_grad()
    module.to(dev.device())
    with torch.autocast(dev.type, dtype=dtype):
        out = module(x.to(dev.device()))
        assert out.dtype == dtype
        loss = out.square().mean()
    loss.backward()
    for parameter, wanted in zip(module.parameters(), expected, strict=True):
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        dev.assert_close(parameter.grad, wanted, rtol=0.1, atol=0.02)


class _Square(torch.autograd.Function):
    """Notes the types it sees and whether autocast is on, forward and backward."""

    seen: list[Any] = []  # noqa: RUF012 - shared between the static methods on purpose

    @staticmethod
    def note(device: str, x: Tensor) -> None:
        _Square.seen.append((x.dtype, torch.is_autocast_enabled(device), (x @ x).dtype))


def _decorated(device: str, cast_inputs: torch.dtype | None) -> type[torch.autograd.Function]:
    """A function with custom_fwd and custom_bwd for a device type."""

    class Decorated(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=cast_inputs)
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            _Square.note(device, x)
            return x * x

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx: Any, *gradients: Any) -> Any:
            (x,) = ctx.saved_tensors
            _Square.note(device, x)
            return 2 * x * gradients[0].to(x.dtype)

    return Decorated


#: cast_inputs, whether the function is applied in a region, and what it is to see.
_FUNCTIONS: dict[str, tuple[torch.dtype | None, bool, tuple[torch.dtype, bool, torch.dtype]]] = {
    "cast_inputs": (torch.float32, True, (torch.float32, False, torch.float32)),
    "plain": (None, True, (torch.float16, True, torch.float16)),
    "outside": (torch.float32, False, (torch.float16, False, torch.float16)),
}


@check(
    "autocast/custom_function",
    "AUTOCAST-010",
    needs=("autocast", "float16"),
    cases=_FUNCTIONS,
)
def custom_functions_take_part(dev: Device, case: str) -> None:
    """custom_fwd casts and switches autocast off, or keeps it; custom_bwd runs as forward did."""
    cast_inputs, inside, expected = _FUNCTIONS[case]
    _Square.seen = []
    x = _make(dev.device(), torch.float16, 2, 2).requires_grad_()
    function: Any = _decorated(dev.type, cast_inputs)
    with torch.autocast(dev.type, dtype=torch.float16, enabled=inside):
        out = function.apply(x)
    out.float().sum().backward()
    assert _Square.seen == [expected, expected]
    assert x.grad is not None
    dev.assert_close(x.grad, 2 * x.detach().cpu())
