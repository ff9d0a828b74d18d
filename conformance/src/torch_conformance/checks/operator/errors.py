# SPDX-License-Identifier: BSD-3-Clause
"""Common work gives no warning, wrong arguments raise, and sparse tensors work or are refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, raised, ramp, why_ended
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.refusal import refuses
from torch_conformance.checks.operator._programs import x2
from torch_conformance.checks.operator.indexing import INDEX_PUT
from torch_conformance.checks.operator.training import OPTIMIZERS, train


@check(
    "operator/warnings",
    "OP-029",
    cases=("arithmetic", "reduction", "matmul", "train", "index", "copy", "module"),
    case_needs={"copy": "float16"},
)
def common_work_does_not_warn(dev: Device, case: str) -> None:
    """Common work that is silent on the CPU is silent on the device."""
    device = dev.device()
    works: dict[str, Callable[[], Any]] = {
        "arithmetic": lambda: (x2(device) * 2 + 1).exp().clamp(0, 1),
        "reduction": lambda: (x2(device).sum(), x2(device).mean(0), x2(device).std()),
        "matmul": lambda: x2(device) @ x2(device).t(),
        "train": lambda: train(device, OPTIMIZERS["adam"]),
        "index": lambda: INDEX_PUT["none_then_index"](device),
        "copy": lambda: (x2(device).cpu(), x2(device).half(), x2(device).clone()),
        "module": lambda: torch.nn.Linear(2, 2).to(device).state_dict(),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        works[case]()
    assert not [str(entry.message) for entry in caught]


#: Everyday work of a process: on the CPU at first, so that what is left on stderr is the device's.
_FIRST_USE = """
import sys

for device in ("cpu", sys.argv[1]):
    print("work begins", file=sys.stderr, flush=True)
    x = torch.ones(2000, 8, device=device, requires_grad=True)
    loss = (torch.nn.functional.dropout(x) @ x.t()).mean()
    loss.backward()
    x.grad.cpu()
    torch.optim.SGD([x], lr=0.1).step()
    if device != "cpu":
        torch.accelerator.synchronize()
    del x, loss
"""


@check("operator/warnings:first_use", "OP-029", needs=("accelerator",))
def the_first_use_of_a_device_does_not_warn(dev: Device) -> None:
    """In a fresh process, too, common work writes nothing to stderr that the CPU does not."""
    done = dev.python(_FIRST_USE, args=(dev.type,), env={"PYTHONWARNINGS": "always"})
    assert done.returncode == 0, why_ended(done)
    host, device = (part.splitlines() for part in done.stderr.split("work begins\n")[1:])
    new = [line for line in device if line not in host]
    assert not new, f"{len(new)} lines, the first: {new[0]}"


@check(
    "operator/errors",
    "OP-030",
    cases=("shape", "matmul", "dtype", "dim", "view", "cat", "reduction", "cast", "overlap"),
)
def wrong_arguments_raise_as_on_the_cpu(dev: Device, case: str) -> None:
    """Wrong shapes, data types and dimensions raise the CPU's exception type."""
    works: dict[str, Callable[[torch.device], Any]] = {
        "shape": lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
        "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
        "dtype": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, device=d).long(),
        "dim": lambda d: torch.ones(2, device=d).sum(3),
        "view": lambda d: torch.ones(6, device=d).view(4, 2),
        "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 2, device=d)], 0),
        "reduction": lambda d: torch.ones(2, dtype=torch.int64, device=d).mean(),
        "cast": lambda d: torch.ones(2, dtype=torch.int64, device=d).add_(1.5),
        "overlap": lambda d: torch.mul((x := torch.ones(5, device=d))[1:], 2, out=x[:-1]),
    }
    expected = raised(lambda: works[case](torch.device("cpu")))

    def work() -> None:
        works[case](dev.device())
        dev.synchronize()

    actual = raised(work)
    assert isinstance(actual, type(expected))
    dev.assert_equal(torch.ones(2, device=dev.device()) + 1, torch.full((2,), 2.0))


_DENSE = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])


def _sparse(dev: Device) -> Tensor:
    """A sparse COO tensor on the device."""
    try:
        sparse = _DENSE.to(dev.device()).to_sparse()
    except RuntimeError as error:
        if not refuses(error):
            raise
        dev.unsupported(f"no sparse tensors: {first_line(error)[:100]}")
    assert sparse.device.type == dev.type
    return sparse


@check("operator/sparse:to_dense", "OP-031")
def sparse_tensors_become_dense_or_are_refused(dev: Device) -> None:
    """A sparse COO tensor on the device has the values it was made of, or is refused when made."""
    dev.assert_equal(_sparse(dev).to_dense(), _DENSE)


@check("operator/sparse:matmul", "OP-031")
def sparse_tensors_are_multiplied_or_refused(dev: Device) -> None:
    """A sparse COO tensor on the device multiplies as the CPU's does, or is refused when made."""
    product = torch.sparse.mm(_sparse(dev), ramp((3, 2)).to(dev.device()))
    dev.assert_close(product, _DENSE @ ramp((3, 2)))
