# SPDX-License-Identifier: BSD-3-Clause
"""Reductions, sorting, searching, products and arithmetic: all that an operator returns agrees."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import (
    Device,
    Program,
    agree,
    check,
    gradients,
    leaf,
    noise,
    ramp,
    tensors,
)
from torch_conformance.checks.operator._programs import filled_memory, image, ints, x2, x3

# ---- products with an activation ---------------------------------------------------------------

_ACTIVATED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda x, w: torch._addmm_activation(w[0], x, w),
    "relu_scaled": lambda x, w: torch._addmm_activation(w, x, w, beta=0.5, alpha=2.0),
    "gelu": lambda x, w: torch._addmm_activation(w[0], x, w, use_gelu=True),
    "gelu_scaled": lambda x, w: torch._addmm_activation(
        w, x, w, beta=0.5, alpha=2.0, use_gelu=True
    ),
}


@check("operator/addmm_activation", "OP-014", cases=_ACTIVATED)
def activations_of_products_agree(dev: Device, case: str) -> None:
    """A product with its activation agrees with the CPU, whichever formula of gelu it takes."""
    agree(
        dev,
        lambda d: _ACTIVATED[case](image(d, 5, 5), image(d, 5, 5, seed=1)),
        rtol=1e-3,
        atol=2e-3,
    )


# ---- results of several kinds ----------------------------------------------------------------


def _named(device: torch.device, *names: str) -> dict[str, Tensor]:
    """An empty tensor for each name of an output."""
    return {name: torch.empty(0, device=device) for name in names}


def _with_statistics(
    device: torch.device, normalise: Callable[..., Any], *, strided: bool = False
) -> list[Tensor]:
    """What a normalisation returns and leaves in its running mean and variance, after two calls."""
    mean, variance = torch.zeros(3, device=device), torch.ones(3, device=device)
    if strided:
        mean, variance = torch.stack([mean, variance], dim=1).unbind(1)
    results = [normalise(noise((4, 3, 5), seed=i).to(device), mean, variance) for i in (0, 1)]
    return [*tensors(results), mean, variance]


def _resized_with_gradients(device: torch.device, width: int, to: int) -> list[Tensor]:
    """Images that become much wider or narrower, in every mode."""
    results = []
    modes = {2: "nearest nearest-exact bilinear bicubic area", 1: "linear", 3: "trilinear"}
    for dims, names in modes.items():
        for mode in names.split():
            x = leaf(device, 1, 2, *(3, 4, width)[3 - dims :])
            out = functional.interpolate(x, (5, 3, to)[3 - dims :], mode=mode)
            results += gradients(out, x)
    return results


_MULTIPLE: dict[str, Program] = {
    "max": lambda d: list(x2(d).max(1)),
    "min": lambda d: list(x2(d).min(0, keepdim=True)),
    "median": lambda d: list(x2(d).median(1)),
    "kthvalue": lambda d: list(x2(d).kthvalue(2, 1)),
    "cummax": lambda d: list(x2(d).cummax(1)),
    "sort": lambda d: list(x2(d).sort(1, descending=True)),
    "sort_stable": lambda d: list((x2(d) > 0).int().sort(dim=1, stable=True)),
    "argsort": lambda d: x2(d).argsort(0),
    "topk": lambda d: list(x2(d).topk(3, 1)),
    "topk_smallest": lambda d: list(x2(d).topk(2, 0, largest=False)),
    "unique": lambda d: list(
        torch.unique(ints(d, 3, 1, 3, 2, 1), return_inverse=True, return_counts=True)
    ),
    "unique_consecutive": lambda d: list(
        torch.unique_consecutive(ints(d, 1, 1, 2, 2, 1), return_counts=True)
    ),
    "unique_dim": lambda d: torch.unique(ints(d, 1, 2, 1, 2, 3, 4).view(3, 2), dim=0),
    "var_mean": lambda d: list(torch.var_mean(x2(d), 1)),
    "std_mean": lambda d: list(torch.std_mean(x2(d), 0)),
    "nll_total_weight": lambda d: [
        weight
        for reduction in (0, 1, 2)
        for weight in torch.ops.aten.nll_loss_forward(
            x2(d), ints(d, 1, 5, 0, 1), x2(d)[0].abs(), reduction, 1
        )
    ],
    "nll_total_weight_2d": lambda d: [
        weight
        for reduction in (0, 1, 2)
        for weight in torch.ops.aten.nll_loss2d_forward(
            x2(d).view(1, 4, 2, 3), ints(d, 1, 3, 0, 1, 2, 3).view(1, 2, 3), None, reduction, 1
        )
    ],
    "batch_norm_update_stats": lambda d: _with_statistics(
        d, lambda x, m, v: torch.batch_norm_update_stats(x, m, v, 0.25)
    ),
    "batch_norm_out": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten.native_batch_norm.out(
            x, None, None, m, v, True, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        ),
    ),
    "batch_norm_out_evaluated": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten.native_batch_norm.out(
            x, None, None, m, v, False, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        )[0],
    ),
    "batch_norm_legit_out": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten._native_batch_norm_legit.out(
            x, None, None, m, v, True, 0.25, 1e-5, **_named(d, "out", "save_mean", "save_invstd")
        ),
    ),
    "batch_norm_with_update": lambda d: _with_statistics(
        d,
        lambda x, m, v: torch.ops.aten._batch_norm_with_update(x, None, None, m, v, 0.25, 1e-5)[:3],
    ),
    "instance_norm_statistics": lambda d: _with_statistics(
        d, lambda x, m, v: functional.instance_norm(x, m, v, momentum=0.25)
    ),
    "batch_norm_of_strided_statistics": lambda d: _with_statistics(
        d, lambda x, m, v: functional.batch_norm(x, m, v, training=True), strided=True
    ),
    "unfold_of_one": lambda d: functional.unfold(noise((2, 5, 6)).to(d), (2, 3)),
    "fold_of_one": lambda d: functional.fold(noise((8, 15)).to(d), (4, 6), 2),
    "fill_of_expanded": lambda d: [
        ramp((3, 1)).to(d).expand(3, 4).fill_(2),
        ramp((1, 4)).to(d).expand(3, 4).zero_(),
    ],
    "resized_far_down": lambda d: _resized_with_gradients(d, 120, 9),
    "resized_far_up": lambda d: _resized_with_gradients(d, 5, 77),
    "aminmax": lambda d: list(x2(d).aminmax(dim=1)),
    "frexp": lambda d: list(torch.frexp(x2(d))),
    "histogram": lambda d: torch.histc(x2(d), 5, -50, 50),
    "bincount": lambda d: torch.bincount(ints(d, 0, 3, 3, 1), weights=ramp((4,)).to(d)),
    "searchsorted": lambda d: torch.searchsorted(ints(d, 1, 3, 5), ints(d, 0, 3, 9)),
    "bucketize": lambda d: torch.bucketize(ints(d, 0, 3, 9), ints(d, 1, 3, 5), right=True),
    "logsumexp": lambda d: torch.logsumexp(x2(d), 1),
    "norms": lambda d: [torch.linalg.vector_norm(x2(d), p) for p in (0, 1, 2, float("inf"))],
    "norms_of_any_order": lambda d: [
        torch.linalg.vector_norm(x, p, dim)
        for x in (x2(d) + 40, (x2(d) + 40).t())
        for p in (3, 0.5, -1, -2.5, float("-inf"))
        for dim in (None, 0, 1)
    ],
    "cumulative": lambda d: [x2(d).cumsum(0), (x2(d) / 30).cumprod(1), x2(d).logcumsumexp(1)],
    "quantile": lambda d: torch.quantile(x2(d), torch.tensor([0.25, 0.5], device=d), 1),
    "argmax": lambda d: [x2(d).argmax(), x2(d).argmin(1)],
    "isin": lambda d: torch.isin(ints(d, 1, 2, 3), ints(d, 2, 3)),
    "tensordot": lambda d: torch.tensordot(x3(d), x3(d), dims=([1, 2], [1, 2])),
    "roll_flip": lambda d: [x2(d).roll(2, 1), x2(d).flip(0), x2(d).rot90()],
    "repeat_interleave": lambda d: x2(d).repeat_interleave(ints(d, 1, 0, 2, 1), 0),
    "tril_triu": lambda d: [x2(d).tril(-1), x2(d).triu(1)],
    "bitwise": lambda d: [ints(d, 12, 10) & ints(d, 10, 3), ints(d, 12) << 2, ~ints(d, 5)],
    "division": lambda d: [ints(d, 7, -7) // 2, ints(d, 7, -7) % 3, torch.fmod(ints(d, 7, -7), 3)],
    "comparison": lambda d: [x2(d) >= 0, torch.isclose(x2(d), x2(d)), torch.isnan(x2(d))],
    "allclose_any": lambda d: [(x2(d) > 0).any(1), (x2(d) > -100).all()],
    "lerp_clamp": lambda d: [x2(d).clamp(min=x2(d)[0]), torch.lerp(x2(d), -x2(d), 0.3)],
    "cdist": lambda d: torch.cdist(x2(d) / 50, x2(d)[:2] / 50),
    "cross": lambda d: torch.linalg.cross(x3(d).transpose(1, 2), x3(d).transpose(1, 2).flip(0)),
}


@check("operator/result", "OP-014", cases=tuple(_MULTIPLE))
def operators_agree(dev: Device, case: str) -> None:
    """Reductions, sorting, searching and operators with several results agree with the CPU."""
    with filled_memory():
        agree(dev, _MULTIPLE[case], rtol=1e-5, atol=1e-5)


# ---- a number before a tensor ----

_WHOLE = (0, 1, 2, 3, 7, -5)
_REAL = (0.5, -1.25, 2.0, 3.75, -0.125, 7.0)
_DEGREES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_POLYNOMIALS = (
    *(f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
)
_NUMBER_FIRST: dict[str, tuple[Callable[..., Tensor], float, tuple[float, ...]]] = {
    "add": (operator.add, 7, _REAL),
    "sub": (operator.sub, 7, _REAL),
    "mul": (operator.mul, 7, _REAL),
    "truediv": (operator.truediv, 7, _REAL),
    "floordiv": (operator.floordiv, 7, _REAL),
    "mod": (operator.mod, 7, _REAL),
    "mod_whole": (operator.mod, -7, (3, 2, 5, -3, -2, 7)),
    "pow": (operator.pow, 2.5, _REAL),
    "pow_whole": (operator.pow, 3, (0, 1, 2, 3, 4, 5)),
    "and": (operator.and_, 12, _WHOLE),
    "or": (operator.or_, 12, _WHOLE),
    "xor": (operator.xor, 12, _WHOLE),
    "lshift": (operator.lshift, 3, (0, 1, 2, 3, 4, 5)),
    "rshift": (operator.rshift, 1000, (0, 1, 2, 3, 4, 5)),
    "compare": (lambda number, x: (number < x) == (number >= x), 2, _REAL),
    "float_power": (torch.float_power, 2, _WHOLE),
    "isin": (lambda number, x: torch.isin(number, x), 3, _WHOLE),
    "bucketize": (lambda number, x: torch.bucketize(number, x.sort().values), 2.5, _REAL),
    "xlogy": (torch.xlogy, 2.5, (0.0, 0.5, 1.0, 3.0, math.inf, math.nan)),
    "xlogy_zero": (torch.xlogy, 0.0, (0.0, 0.5, 1.0, 3.0, math.inf, math.nan)),
    "xlog1py": (torch.special.xlog1py, 2.5, (0.0, 0.5, -0.5, 3.0, math.inf, math.nan)),
    "zeta": (torch.special.zeta, 2.5, (0.5, 1.0, 2.0, 3.75, 10.0, 100.0)),
    "zeta_below": (torch.special.zeta, 3, (-0.3, -0.9, -1.5, -2.75, -7.2, -2.0)),
    **{name: (getattr(torch.special, name), 0.7, _DEGREES) for name in _POLYNOMIALS},
}
#: Functions of torch among them with a form that writes to a tensor.
_NUMBER_FIRST_OUT = ("pow", "float_power", "xlogy")


@check("operator/number_first", "OP-014", cases=tuple(_NUMBER_FIRST))
def operators_take_a_number_first(dev: Device, case: str) -> None:
    """Operators of a number and a tensor, in this order, agree with the CPU."""
    function, number, values = _NUMBER_FIRST[case]
    with filled_memory():
        agree(dev, lambda d: function(number, torch.tensor(values, device=d)))


@check("operator/number_first_out", "OP-014", cases=_NUMBER_FIRST_OUT)
def operators_take_a_number_first_and_write(dev: Device, case: str) -> None:
    """The same into a tensor of the program."""
    function: Callable[..., Tensor] = getattr(torch, case)
    _, number, values = _NUMBER_FIRST[case]

    def program(d: torch.device) -> Tensor:
        x = torch.tensor(values, device=d)
        out = torch.full_like(function(number, x), 77)
        assert function(number, x, out=out) is out
        return out

    agree(dev, program)
