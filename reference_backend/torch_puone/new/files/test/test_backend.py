# SPDX-License-Identifier: BSD-3-Clause
"""The device does what a program needs first. The conformance suite has the rest."""

from __future__ import annotations

import subprocess
import sys

import torch

DEVICE = "puone"


def test_the_device_is_there_after_import_torch() -> None:
    assert torch.accelerator.current_accelerator() == torch.device(DEVICE)
    assert torch.get_device_module(DEVICE).is_available()


def test_a_tensor_comes_back_as_it_went() -> None:
    values = torch.arange(12.0).reshape(3, 4).t()
    assert torch.equal(values.to(DEVICE).cpu(), values)


def test_it_computes_what_the_cpu_computes() -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    torch.testing.assert_close((a.to(DEVICE) @ b.to(DEVICE)).relu().cpu(), (a @ b).relu())


def test_a_model_learns() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(
        DEVICE
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs = torch.randn(64, 8, device=DEVICE)
    targets = inputs.sum(1, keepdim=True)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


def test_work_of_two_streams_is_ordered_by_an_event() -> None:
    module = torch.get_device_module(DEVICE)
    first, second = torch.Stream(DEVICE), torch.Stream(DEVICE)
    event = torch.Event(DEVICE)
    values = torch.zeros(1000, device=DEVICE)
    module.synchronize()
    with first:
        module._sleep_ms(50)
        values.fill_(3)
        event.record(first)
    with second:
        event.wait(second)
        total = values.sum()
    second.synchronize()
    assert total.item() == 3000


def test_what_the_cpu_computes_is_counted() -> None:
    module = torch.get_device_module(DEVICE)
    module._reset_fallback_counts()
    torch.linalg.det(torch.eye(3, device=DEVICE))
    assert sum(module._fallback_counts().values()) > 0


def test_a_program_ends_cleanly_with_work_queued() -> None:
    code = f"import torch; x = torch.ones(1 << 20, device='{DEVICE}'); x.add_(1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
