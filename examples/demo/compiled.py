# SPDX-License-Identifier: BSD-3-Clause
"""A model that torch.compile traced, on the device and on the CPU."""

from __future__ import annotations

import torch

device = torch.accelerator.current_accelerator()
assert device is not None
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
batch = torch.randn(256, 64)
expected = model(batch)

# Inductor, the default, asks a driver for a compiler of kernels, which this one does not have yet.
compiled = torch.compile(model.to(device), backend="aot_eager", fullgraph=True)
result = compiled(batch.to(device))
torch.testing.assert_close(result.cpu(), expected)
print(f"one graph; the result on {result.device} equals the CPU's")
