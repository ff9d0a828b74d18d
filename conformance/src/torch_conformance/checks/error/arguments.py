# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments raise what they raise on the CPU, and device memory is not shown to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch

from torch_conformance.authoring.api import Device, check, raised, words
from torch_conformance.checks.error._failures import untyped

#: name -> (what is done with a 3 x 4 tensor, the exception PyTorch documents for it).
_REFUSED: dict[str, tuple[Callable[[torch.Tensor], Any], type[Exception]]] = {
    "index_beyond": (lambda x: x[3], IndexError),
    "index_below": (lambda x: x[-4], IndexError),
    "too_many_indices": (lambda x: x[0, 0, 0], IndexError),
    "select_beyond": (lambda x: x.select(1, 4), IndexError),
    "narrow_beyond": (lambda x: x.narrow(1, 2, 3), RuntimeError),
    "bad_dimension": (lambda x: x.sum(dim=2), IndexError),
    "transpose_beyond": (lambda x: x.transpose(0, 5), IndexError),
    "view_size": (lambda x: x.view(5, 2), RuntimeError),
    "reshape_size": (lambda x: x.reshape(-1, 5), RuntimeError),
    "expand_size": (lambda x: x.expand(6, 4), RuntimeError),
    "view_strides": (lambda x: x.t().view(12), RuntimeError),
    "broadcast": (lambda x: x + x[:, :3], RuntimeError),
    "matmul_sizes": (lambda x: x @ x, RuntimeError),
    "cat_sizes": (lambda x: torch.cat([x, x[:, :2]]), RuntimeError),
    "copy_sizes": (lambda x: x.copy_(torch.ones(5, device=x.device)), RuntimeError),
    "negative_size": (lambda x: x.new_empty(-1), RuntimeError),
    "storage_beyond": (
        lambda x: x.as_strided((9,), (4,)),
        RuntimeError,
    ),
    "item_of_many": (lambda x: x.item(), RuntimeError),
    "bool_of_many": (lambda x: bool(x), RuntimeError),
    "iterate_scalar": (lambda x: list(x[0, 0]), TypeError),
    "unknown_argument": (
        lambda x: untyped(torch.empty)(2, device=x.device, nonsense=1),
        TypeError,
    ),
    "in_place_cast": (lambda x: x.to(torch.int32).add_(0.5), RuntimeError),
    "out_dtype": (
        lambda x: torch.add(x, x, out=torch.empty(3, 4, dtype=torch.int32, device=x.device)),
        RuntimeError,
    ),
    "copy_of_none": (lambda x: untyped(x.copy_)(None), TypeError),
}


@check("error/arguments", "ERR-001", cases=_REFUSED)
def bad_arguments_raise_python_exceptions(dev: Device, case: str) -> None:
    """A wrong argument raises the exception it raises on the CPU; the operand stays usable."""
    x = torch.arange(12.0, device=dev.device()).reshape(3, 4)
    act, expected = _REFUSED[case]
    error = raised(lambda: act(x), by=dev.synchronize)
    assert isinstance(error, expected), f"raised {type(error).__name__}: {error}"
    assert str(error).strip(), "the exception has no message"
    dev.assert_equal(x, torch.arange(12.0).reshape(3, 4))


_HOST_VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "asarray": numpy.asarray,
    "memoryview": untyped(memoryview),
}


def _host_view_error(dev: Device, view: Callable[[torch.Tensor], Any]) -> TypeError:
    """The error of asking a device tensor for its bytes as host memory."""
    x = torch.ones(3, device=dev.device())
    error = raised(lambda: view(x))
    assert isinstance(error, TypeError), f"{type(error).__name__}: {error}"
    return error


@check("error/host_view", "ERR-002", cases=_HOST_VIEWS, needs=("accelerator", "plain_tensors"))
def device_memory_is_not_shown_to_the_host(dev: Device, case: str) -> None:
    """Asking a device tensor for its bytes as host memory raises TypeError."""
    _host_view_error(dev, _HOST_VIEWS[case])


@check("error/host_view:message", "ERR-002", needs=("accelerator", "plain_tensors"))
def the_error_of_a_host_view_says_what_to_do(dev: Device) -> None:
    """The error of numpy() on a device tensor names the way over the CPU."""
    error = _host_view_error(dev, _HOST_VIEWS["numpy"])
    assert "cpu" in words(str(error)), f"the message does not say how: {error}"
