# SPDX-License-Identifier: BSD-3-Clause
"""Indices that only the device sees are refused, and work goes on after their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, in_thread, raised
from torch_conformance.checks.error._failures import Runner, in_this_thread

_Indexed = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Each with a 5 x 4 matrix, and one good and one bad index of a row.
_INDEXED: dict[str, _Indexed] = {
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), x[:2]),
    "index_put_accumulate": lambda x, i: x.index_put((i,), x[:2], accumulate=True),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "take": lambda x, i: x[:, 0].clone().take(i),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(2, 4)),
    "scatter": lambda x, i: x.scatter(0, i[:, None].expand(2, 4), 7.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(2, 4), x[:2]),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "nll_loss": lambda x, i: torch.nn.functional.nll_loss(x.t()[:2], i),
}


def _refused_index(dev: Device, case: str, index: int) -> None:
    """Queue work with a bad index; raises if the backend finds out at once."""
    x = torch.arange(20.0).reshape(5, 4).to(dev.device())
    _INDEXED[case](x, torch.tensor([1, index]).to(dev.device()))


def _index_error(work: Callable[[], Any]) -> None:
    """Run what must raise the error of a refused index, and no other."""
    error = raised(work)
    assert isinstance(error, (RuntimeError, IndexError)), f"{type(error).__name__}: {error}"
    assert not isinstance(error, (NotImplementedError, torch.OutOfMemoryError)), str(error)


def _is_refused(dev: Device, case: str, index: int) -> None:
    """A bad index raises, at the call or at the wait that follows."""

    def work() -> None:
        _refused_index(dev, case, index)
        dev.synchronize()

    _index_error(work)


def _is_refused_at_last(dev: Device, case: str, index: int) -> None:
    """A bad index raises; not every device goes on after its error."""
    try:
        _is_refused(dev, case, index)
    finally:
        dev.abandon()


@check("error/index", "ERR-027", cases=_INDEXED, isolate=True)
def an_index_behind_the_last_row_raises(dev: Device, case: str) -> None:
    """An index behind the last row raises, at the call or at the wait that follows."""
    _is_refused_at_last(dev, case, 5)


@check("error/index_below", "ERR-027", cases=("index", "gather", "embedding"), isolate=True)
def an_index_before_the_first_row_raises(dev: Device, case: str) -> None:
    """A negative index that names no row raises, at the call or at the wait that follows."""
    _is_refused_at_last(dev, case, -6)


def _index_is_pending(dev: Device) -> bool:
    """Queue work with a bad index on the current stream; whether its error is still to come."""
    try:
        _refused_index(dev, "index_select", 5)
    except (RuntimeError, IndexError):
        return False
    return True


_RAMP = torch.arange(64.0)


#: Where the error of a bad index is raised.
_RAISED: dict[str, Runner] = {"raised_once": in_this_thread, "thread": in_thread}


@check("error/recovery", "ERR-028", cases=_RAISED, needs=("error_recovery",))
def work_goes_on_after_a_refused_index(dev: Device, case: str) -> None:
    """After the error of a bad index, waits do not raise and results are right, time after time."""
    x = _RAMP.to(dev.device())
    for _ in range(3):
        _RAISED[case](lambda: _is_refused(dev, "index_select", 5))
        dev.synchronize()
        dev.assert_equal(x * 2, _RAMP * 2)


def _surfaces(stream: torch.Stream, pending: bool) -> None:
    """Wait for a stream, which raises the error of a bad index if that is still to come."""
    if pending:
        _index_error(stream.synchronize)
    stream.synchronize()


@check("error/recovery_stream:earlier_work", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_earlier_work(dev: Device) -> None:
    """A bad index on a stream spoils no result of the work before it."""
    x, stream = _RAMP.to(dev.device()), dev.stream()
    dev.synchronize()
    with stream:
        result = x * 3
        pending = _index_is_pending(dev)
    _surfaces(stream, pending)
    with stream:
        assert torch.equal(result.cpu(), _RAMP * 3)


@check("error/recovery_stream:later_work", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_later_work(dev: Device) -> None:
    """A bad index on a stream spoils no result of the work after its error."""
    x, stream = _RAMP.to(dev.device()), dev.stream()
    dev.synchronize()
    with stream:
        pending = _index_is_pending(dev)
    _surfaces(stream, pending)
    with stream:
        assert torch.equal((x * 3).cpu(), _RAMP * 3)


@check("error/recovery_stream:other_stream", "ERR-028", needs=("error_recovery", "streams"))
def a_refused_index_spoils_no_other_stream(dev: Device) -> None:
    """A bad index on a stream neither spoils a result of another stream nor raises there."""
    x, stream, other = _RAMP.to(dev.device()), dev.stream(), dev.stream()
    dev.synchronize()
    with stream:
        pending = _index_is_pending(dev)
    with other:
        result = x * 3
        assert torch.equal(result.cpu(), _RAMP * 3)
    other.synchronize()
    _surfaces(stream, pending)
    assert torch.equal(result.cpu(), _RAMP * 3)


@check("error/recovery_device", "ERR-028", needs=("error_recovery", "multi_device"))
def other_devices_go_on_beside_a_refused_index(dev: Device) -> None:
    """A bad index on one device spoils no result of another and raises nothing there."""
    dev.require("synchronize")
    here = torch.accelerator.current_device_index()
    there = torch.device(dev.type, (here + 1) % dev.count)
    x = _RAMP.to(there)
    dev.synchronize()
    pending = _index_is_pending(dev)
    assert torch.equal((x * 3).cpu(), _RAMP * 3)
    torch.accelerator.synchronize(there)
    if pending:
        _index_error(lambda: torch.accelerator.synchronize(here))
    dev.synchronize()
