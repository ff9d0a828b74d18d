# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of dropout drops its share, and scales the rest."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise
from torch_conformance.checks._statistics import MANY, assert_chi_square
from torch_conformance.checks.random._draws import FLOATING

_DROPOUTS: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "dropout1d": (lambda x: functional.dropout1d(x, 0.3), 1),
    "dropout2d": (lambda x: functional.dropout2d(x, 0.3), 2),
    "dropout3d": (lambda x: functional.dropout3d(x, 0.3), 3),
}


@check("random/channels", "RAND-013", needs=("generator",), cases=tuple(_DROPOUTS))
def channel_dropout_drops_whole_channels(dev: Device, case: str) -> None:
    """dropout1d, 2d and 3d zero whole channels at their rate and scale the others."""
    function, dims = _DROPOUTS[case]
    torch.manual_seed(71)
    out = function(torch.ones(50, 40, *[3] * dims, device=dev.device())).cpu().flatten(2)
    assert bool((out == out[:, :, :1]).all()), "a channel was dropped in part"
    kept = (out[:, :, 0] != 0).flatten()
    assert_chi_square(torch.bincount(kept.long(), minlength=2), torch.tensor([0.3, 0.7]))
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 1 / 0.7))


@check("random/alpha_dropout", "RAND-013", needs=("generator",))
def alpha_dropout_keeps_mean_and_variance(dev: Device) -> None:
    """Alpha dropout of standard normal numbers keeps mean 0 and variance 1."""
    torch.manual_seed(72)
    x = torch.randn(MANY, device=dev.device())
    out = functional.alpha_dropout(x, 0.4, training=True).cpu().double()
    assert abs(float(out.mean())) < 6 / math.sqrt(MANY)
    assert abs(float(out.var()) - 1) < 0.08


@check("random/dropout_rate", "RAND-013", needs=("generator",), dtypes=FLOATING)
def dropout_keeps_its_rate_in_every_type(dev: Device, dtype: torch.dtype) -> None:
    """A small rate is honoured in float16 and bfloat16 too, and masks change from call to call."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(73)
    x = torch.ones(MANY, dtype=dtype, device=dev.device())
    masks = [(functional.dropout(x, 0.02).cpu() != 0).long() for _ in range(2)]
    for mask in masks:
        assert_chi_square(torch.bincount(mask, minlength=2), torch.tensor([0.02, 0.98]))
    assert not torch.equal(*masks)


#: Of native_dropout: the probability, whether it is training, and the share that is kept.
_COMPLEX_DROPOUTS: dict[str, tuple[float, bool | None, float]] = {
    "some": (0.2, True, 0.8),
    "few": (0.9, True, 0.1),
    "by_default": (0.5, None, 0.5),
    "never": (0.0, True, 1.0),
    "always": (1.0, True, 0.0),
    "evaluated": (0.5, False, 1.0),
}


@check(
    "random/dropout_complex",
    "RAND-013",
    needs=("generator", "complex64"),
    cases=_COMPLEX_DROPOUTS,
)
def dropout_scales_complex_numbers(dev: Device, case: str) -> None:
    """native_dropout keeps its share of complex numbers, scaled, and returns which they are."""
    p, train, share = _COMPLEX_DROPOUTS[case]
    torch.manual_seed(74)
    given = torch.complex(noise((MANY,)), noise((MANY,), seed=1))
    out, mask = torch.native_dropout(given.to(dev.device()), p, train)
    assert mask.dtype == torch.bool
    kept = dev.cpu(mask)
    found = float(kept.double().mean())
    assert abs(found - share) <= 6 * math.sqrt(share * (1 - share) / MANY), found
    dev.assert_close(out, given * kept * (1 / share if share else 0.0))
