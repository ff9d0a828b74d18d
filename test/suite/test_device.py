# SPDX-License-Identifier: BSD-3-Clause
"""The handle of the device under test, on backends that lack what it would like to use."""

from __future__ import annotations

import pytest
import torch

from torch_conformance.authoring.device import Device
from torch_conformance.authoring.observe import raised
from torch_conformance.running import loading
from torch_conformance.spec import descriptor


@pytest.fixture
def puone() -> descriptor.Descriptor:
    found = descriptor.find("puone")
    loading.bring_up(found)
    return found


def synchronize_raises(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def synchronize(index: int) -> None:
        raise error

    monkeypatch.setattr(torch.accelerator, "synchronize", synchronize)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Backend doesn't support synchronizing all streams on device."),
        NotImplementedError("synchronize"),
    ],
    ids=["c10", "python"],
)
def test_a_backend_that_cannot_be_waited_for_is_not_charged_with_that_in_every_check(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor, error: Exception
) -> None:
    synchronize_raises(monkeypatch, error)
    Device(puone).synchronize()


def test_a_backend_without_copies_is_not_charged_with_that_in_every_check(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    synchronize_raises(monkeypatch, RuntimeError("Backend doesn't support synchronizing"))
    monkeypatch.setattr(Device, "_refusal_to_read", lambda dev: NotImplementedError("copy_"))
    Device(puone).synchronize()


def test_an_error_of_the_work_waited_for_is_raised(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    dev = Device(puone)
    synchronize_raises(monkeypatch, RuntimeError("kernel copy failed"))
    with pytest.raises(RuntimeError, match="kernel copy failed"):
        dev.synchronize()


def test_wrong_arguments_may_be_refused_as_late_as_the_device_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    dev, late = Device(puone), RuntimeError("p is not in [0, 1]")
    with pytest.raises(AssertionError, match="nothing was raised; the call returned int"):
        raised(lambda: 3, by=dev.synchronize)
    synchronize_raises(monkeypatch, late)
    assert raised(lambda: 3, by=dev.synchronize) is late
    with pytest.raises(AssertionError, match="nothing was raised"):
        raised(lambda: 3)


def test_an_error_at_the_first_wait_is_no_reason_to_stop_waiting(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    late = [RuntimeError("device lost")]
    calls: list[int] = []

    def synchronize(index: int) -> None:
        calls.append(index)
        if late:
            raise late.pop()

    monkeypatch.setattr(torch.accelerator, "synchronize", synchronize)
    dev = Device(puone)
    calls.clear()
    dev.synchronize(0)
    assert calls == [0]


def test_a_device_that_is_lost_is_not_taken_for_one_that_cannot_wait(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    synchronize_raises(monkeypatch, RuntimeError("device lost"))
    monkeypatch.setattr(Device, "_refusal_to_read", lambda dev: RuntimeError("device lost"))
    with pytest.raises(RuntimeError, match="device lost"):
        Device(puone).synchronize()


def test_the_error_of_queued_work_is_read_where_nothing_can_wait(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    synchronize_raises(monkeypatch, RuntimeError("this chip has one queue"))
    dev = Device(puone)
    dev.synchronize()
    row = torch.arange(4, device=dev.device())
    row.index_select(0, torch.tensor([9]).to(dev.device()))
    with pytest.raises((RuntimeError, IndexError)):
        dev.synchronize()
    dev.synchronize()


def test_what_waits_by_reading_does_not_read_what_the_host_has_kept(
    monkeypatch: pytest.MonkeyPatch, puone: descriptor.Descriptor
) -> None:
    synchronize_raises(monkeypatch, RuntimeError("this chip has one queue"))
    kept: dict[int, int] = {}
    reads: list[int] = []

    def cpu(tensor: torch.Tensor) -> torch.Tensor:
        if kept.get(id(tensor)) != tensor._version:
            kept[id(tensor)] = tensor._version
            reads.append(tensor._version)
        return torch.zeros(tensor.shape)

    dev = Device(puone)
    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    for _ in range(3):
        dev.synchronize()
    assert len(reads) == 3
