# SPDX-License-Identifier: BSD-3-Clause
"""A long training loop must leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# In a process of its own: its threads and descriptors are then the loop's alone.
LOOP = """
import gc, os
import torch
import torch_puone

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
).to("puone")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = torch.randn(32, 8).pin_memory()
target = data.sum(1, keepdim=True).pin_memory()
side = torch.Stream("puone")

def step():
    x = data.to("puone", non_blocking=True)
    y = target.to("puone", non_blocking=True)
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.detach().clone().record_stream(side)  # freed only when an event has passed
    done = torch.Event("puone")
    done.record()
    return loss

def usage():
    gc.collect()
    torch.puone.synchronize()
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "allocated": torch.puone.memory_allocated(),
        "reserved": torch.puone.memory_reserved(),
        "pinned": torch.puone.host_memory_stats()["allocated_bytes.current"],
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "resident": resident,
    }

first = step().item()
for _ in range(500):
    step()
before = usage()
for _ in range(ITERATIONS):
    loss = step()
last = loss.item()
del loss
after = usage()
print(before)
print(after)
assert last < first, (first, last)
resident = after.pop("resident") - before.pop("resident")
assert resident < 16 << 20, f"resident memory grew by {resident} bytes"
# Worker threads come and go with the load, so fewer is fine.
assert after.pop("threads") <= before.pop("threads") + 1
assert before == after, (before, after)
"""


@pytest.mark.nightly
def test_ten_thousand_train_steps_hold_memory_threads_and_descriptors_flat() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"ITERATIONS = 10_000\n{LOOP}"],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
