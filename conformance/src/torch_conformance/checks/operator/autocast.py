# SPDX-License-Identifier: BSD-3-Clause
"""Autocast: which operators it lowers, where it is on, and to which data types."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise


def _low_precision(dev: Device) -> torch.dtype:
    dtype = torch.get_autocast_dtype(dev.type)
    dev.require(str(dtype).removeprefix("torch."))
    return dtype


_LOWERED: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: x @ x,
    "linear": lambda x: functional.linear(x, x),
    "conv": lambda x: functional.conv1d(x[None], x[:, :, None].expand(4, 4, 1)),
}


@check("operator/autocast", "OP-020", needs=("autocast",), cases=_LOWERED)
def autocast_lowers_products(dev: Device, case: str) -> None:
    """Under autocast matrix products and convolutions are in low precision."""
    low, x = _low_precision(dev), noise((4, 4))
    with torch.autocast(dev.type):
        product = _LOWERED[case](x.to(dev.device()))
    assert product.dtype == low
    dev.assert_close(product.float(), _LOWERED[case](x), rtol=0.05, atol=0.1)


@check("operator/autocast:elementwise", "OP-020", needs=("autocast",))
def autocast_leaves_elementwise_operators_alone(dev: Device) -> None:
    """Under autocast an elementwise operator promotes its operands as it does without."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type):
        assert (x + x).dtype == torch.float32
        assert (x.to(low) + x).dtype == torch.float32


@check("operator/autocast:nested", "OP-020", needs=("autocast",))
def autocast_can_be_off_inside(dev: Device) -> None:
    """autocast(enabled=False) inside autocast switches autocast off for its block only."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type):
        with torch.autocast(dev.type, enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == low


@check("operator/autocast:explicit", "OP-020", needs=("autocast",))
def autocast_takes_a_dtype(dev: Device) -> None:
    """The data type given to autocast inside autocast is used."""
    low, x = _low_precision(dev), noise((4, 4)).to(dev.device())
    with torch.autocast(dev.type), torch.autocast(dev.type, dtype=low):
        assert torch.get_autocast_dtype(dev.type) == low
        assert (x @ x).dtype == low


@check("operator/autocast:backward", "OP-020", needs=("autocast",))
def autocast_gives_gradients_of_the_parameters_dtype(dev: Device) -> None:
    """A float32 parameter used under autocast has a float32 gradient."""
    _low_precision(dev)
    x, w = noise((4, 4)), torch.ones(4, 4, device=dev.device(), requires_grad=True)
    with torch.autocast(dev.type):
        (x.to(dev.device()) @ w).sum().backward()
    assert w.grad is not None
    assert w.grad.dtype == torch.float32
    dev.assert_close(w.grad, x.sum(0)[:, None].expand(4, 4), rtol=0.05, atol=0.1)


@check("operator/autocast:enabled", "OP-020", needs=("autocast",))
def autocast_is_on_inside_only(dev: Device) -> None:
    """is_autocast_enabled is true inside autocast, and false before and after."""
    _low_precision(dev)
    assert not torch.is_autocast_enabled(dev.type)
    with torch.autocast(dev.type):
        assert torch.is_autocast_enabled(dev.type)
    assert not torch.is_autocast_enabled(dev.type)


@check("operator/autocast_types", "OP-020", needs=("autocast", "accelerator"))
def the_module_names_its_autocast_types(dev: Device) -> None:
    """<module>.get_amp_supported_dtype lists what autocast accepts, its default included."""
    if dev.type != torch._C._get_privateuse1_backend_name():
        dev.unsupported("torch knows the types of its built-in devices")
    assert dev.module is not None
    supported = dev.module.get_amp_supported_dtype()
    assert torch.get_autocast_dtype(dev.type) in supported
    for dtype in supported:
        with torch.autocast(dev.type, dtype=dtype):
            assert torch.get_autocast_dtype(dev.type) == dtype
