# SPDX-License-Identifier: BSD-3-Clause
"""Children that are forked before or after the first use of the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import (
    Device,
    check,
    why_ended,
)

#: What the parent does before it forks, and whether it uses the device while its children do.
_FORK_FIRST: dict[str, tuple[str, bool]] = {
    "untouched": ("", True),
    "counted": (
        "torch.accelerator.is_available(); torch.accelerator.device_count()\n"
        "torch.get_device_module(D).is_available(); torch.get_device_module(D).device_count()\n"
        "torch.manual_seed(3)\n",
        False,
    ),
}
_FORK = """
import os, signal, torch
D = {type!r}
{first}
def use():
    x = torch.arange(4.0, device=D)
    assert (x + 1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a hang ends as SIGALRM
        status = 9
        try:
            use()
            status = 0
        finally:
            os._exit(status)
    children.append(child)
if {parent_too}: use()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [0, 0], codes
use()
print("both worked")
"""


@check("thread/fork_before_use", "THREAD-010", cases=_FORK_FIRST, needs=("fork",))
def children_forked_before_first_use_work(dev: Device, case: str) -> None:
    """Children forked before the device was used can use it, and so can the parent at once."""
    first, parent_too = _FORK_FIRST[case]
    done = dev.python(_FORK.format(type=dev.type, first=first, parent_too=parent_too))
    assert done.returncode == 0 and "both worked" in done.stdout, why_ended(done)


_IN_CHILD: dict[str, Callable[[Device, torch.Tensor], Any]] = {
    "allocate": lambda dev, x: torch.ones(4, device=dev.device()),
    "operate": lambda dev, x: x.add(1).cpu(),
    "fill": lambda dev, x: x.fill_(2).cpu(),
    "copy_in": lambda dev, x: torch.ones(4).to(dev.device()),
    "copy_out": lambda dev, x: x.cpu(),
    "set_device": lambda dev, x: dev.module.set_device(0),
}


@check(
    "thread/fork_after_use",
    "THREAD-011",
    cases=_IN_CHILD,
    needs=("fork", "accelerator"),
    isolate=True,
)
def children_forked_after_use_are_told(dev: Device, case: str) -> None:
    """In a child forked after use, the device works or raises RuntimeError: no hang, no crash."""
    _works_or_raises(dev, _IN_CHILD[case])


@check(
    "thread/fork_after_use:synchronize",
    "THREAD-011",
    needs=("fork", "accelerator"),
    isolate=True,
)
def children_forked_after_use_synchronize_or_raise(dev: Device) -> None:
    """In a child forked after use, synchronising returns or raises RuntimeError."""
    dev.require("synchronize")
    _works_or_raises(dev, lambda dev, x: torch.accelerator.synchronize(0))


def _works_or_raises(dev: Device, work: Callable[[Device, torch.Tensor], Any]) -> None:
    x = torch.ones(4, device=dev.device())
    dev.synchronize()

    def child() -> str:
        try:
            work(dev, x)
        except RuntimeError as error:
            return f"raised: {error}"
        return "worked"

    status, value = dev.fork(child, timeout=20.0)
    assert status == 0, f"the child ended with status {status}: {value}"
    if value.startswith("raised"):
        assert "fork" in value.lower(), f"the message does not say why: {value}"
    # The parent is unharmed.
    x.add_(1)
    dev.assert_equal(x, torch.full((4,), 2.0))


def _verify_in_child(dev: Device, child: Callable[[], Any]) -> None:
    """Fail unless `child` is true in a child forked after use, and the parent is unharmed."""
    x = torch.ones(4, device=dev.device())
    dev.synchronize()
    status, value = dev.fork(child, timeout=20.0)
    assert status == 0, f"the child ended with status {status}: {value}"
    assert value is True, value
    dev.assert_equal(x, torch.ones(4))


def _works_on_the_cpu() -> bool:
    return torch.ones(3).add(1).tolist() == [2.0, 2.0, 2.0]


def _uses(dev: Device) -> bool:
    try:
        return (torch.ones(2, device=dev.device()) + 1).cpu().tolist() == [2.0, 2.0]
    except RuntimeError:
        return False


@check("thread/fork_state:bad_fork_flag", "THREAD-012", needs=("fork", "accelerator"), isolate=True)
def bad_forks_know_what_they_are(dev: Device) -> None:
    """_is_in_bad_fork is true in a child exactly where the device does not work in it."""
    _verify_in_child(dev, lambda: dev.module._is_in_bad_fork() != _uses(dev))


@check("thread/fork_state:parent_flag", "THREAD-012", needs=("fork", "accelerator"), isolate=True)
def parents_are_not_in_a_bad_fork(dev: Device) -> None:
    """_is_in_bad_fork remains false in the parent of a child forked after use."""
    in_bad_fork = dev.module._is_in_bad_fork
    _verify_in_child(dev, _works_on_the_cpu)
    assert in_bad_fork() is False


@check("thread/fork_state:manual_seed", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_can_seed(dev: Device) -> None:
    """torch.manual_seed works in a child forked after use."""
    _verify_in_child(dev, lambda: torch.manual_seed(11) is not None)


@check("thread/fork_state:cpu_works", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_work_on_the_cpu(dev: Device) -> None:
    """CPU work gives its result in a child forked after use."""
    _verify_in_child(dev, _works_on_the_cpu)


@check("thread/fork_state:frees", "THREAD-017", needs=("fork", "accelerator"), isolate=True)
def bad_forks_can_free(dev: Device) -> None:
    """A child forked after use can free a tensor, and the parent keeps it."""
    box = [torch.ones(4, device=dev.device())]

    def child() -> bool:
        box.clear()
        return True

    _verify_in_child(dev, child)
    dev.assert_equal(box[0], torch.ones(4))
