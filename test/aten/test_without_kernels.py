# SPDX-License-Identifier: BSD-3-Clause
"""A driver without kernels, or with the first few, serves every operator; the CPU computes.

The suite's core tier on the same drivers is `make subjects`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from suites import ROOT, odd

# What a program does first, and what it needs of copies: each line is compared with the CPU.
PROGRAM = """
import torch
import torch_puone as puone

def agree(program):
    torch.manual_seed(0)
    expected = program(torch.device("cpu"))
    torch.manual_seed(0)
    actual = program(torch.device("puone"))
    torch.testing.assert_close(actual.cpu(), expected)

def ramp(d, *shape, dtype=torch.float32):
    return torch.arange(torch.Size(shape).numel()).view(shape).to(dtype).to(d)

# copies between any layouts and types, without any of which nothing else can be tested
agree(lambda d: ramp(d, 4, 6).t())
agree(lambda d: ramp(d, 4, 6)[1:, ::2])
agree(lambda d: ramp(d, 4, 6)[:, ::2].contiguous())
agree(lambda d: ramp(d, 3).expand(5, 3).clone())
agree(lambda d: ramp(d, 4, 6).to(torch.int16))
agree(lambda d: ramp(d, 4, 6, dtype=torch.int64).t().to(torch.bfloat16))
agree(lambda d: ramp(d, 4, 6, dtype=torch.complex64).conj().clone())
agree(lambda d: torch.zeros(5, 8, device=d)[1::2, ::3].copy_(ramp(d, 2, 3)))
def around_gaps(d):
    base = torch.full((5, 8), -1.0, device=d)
    base[1::2, ::3] = ramp(d, 2, 3)
    base.t()[4, 1:3].copy_(torch.tensor([7, 8]))
    return base
agree(around_gaps)
big = torch.zeros(1000, 1000, device="puone")[::500, ::500]
assert big.cpu().tolist() == [[0, 0], [0, 0]]
peer = ramp("puone:0", 4, 6).t()[1:].to("puone:1")
assert peer.device.index == 1 and torch.equal(peer.cpu(), ramp("cpu", 4, 6).t()[1:])

# fills
agree(lambda d: torch.ones(2, 3, device=d))
agree(lambda d: torch.full((2, 3), 7, dtype=torch.uint8, device=d))
agree(lambda d: torch.zeros(4, 6, device=d).t()[1:3].fill_(2))
agree(lambda d: ramp(d, 4, 6)[:, ::2].zero_())
agree(lambda d: torch.empty(3, 1, device=d).expand(3, 4).fill_(1.5))
assert torch.tensor(3.5, device="puone").item() == 3.5
assert torch.ones(4, 6, device="puone").t()[2, 3].item() == 1
assert "device='puone:0'" in repr(torch.arange(3.0, device="puone"))

# operators: functional, in place, out=, several outputs, lists, networks, gradients, random
agree(lambda d: ramp(d, 4) + 1)
agree(lambda d: ramp(d, 4).mul_(3).sub_(1))
agree(lambda d: torch.exp(ramp(d, 4), out=torch.empty(0, device=d)))
agree(lambda d: torch.relu(ramp(d, 4) - 2))
agree(lambda d: ramp(d, 4, 6) @ ramp(d, 6, 2))
agree(lambda d: ramp(d, 4, 6).sum(0))
agree(lambda d: ramp(d, 4, 6).max(1).indices)
agree(lambda d: torch.where(ramp(d, 4) > 1, ramp(d, 4), 0.0))
agree(lambda d: ramp(d, 4, 6)[torch.tensor([3, 0], device=d)])
agree(lambda d: torch._foreach_add([ramp(d, 3), ramp(d, 2)], 2)[0])
agree(lambda d: torch.cat([ramp(d, 2, 3), ramp(d, 1, 3)]))
agree(lambda d: ramp(d, 9).sort(descending=True).values)
agree(lambda d: torch.nn.functional.conv2d(ramp(d, 1, 2, 5, 5), ramp(d, 3, 2, 2, 2), ramp(d, 3)))
def trains(d):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2))
    model.to(d)
    optimizer = torch.optim.AdamW(model.parameters())
    loss = model(ramp(d, 3, 1, 4, 4)).square().mean()
    loss.backward()
    optimizer.step()
    return model[0].weight.detach()
agree(trains)
x = torch.randn(1000, device="puone")
assert abs(x.mean().item()) < 0.2
torch.manual_seed(1)
y = torch.rand(5, device="puone")
torch.manual_seed(1)
assert torch.equal(torch.rand(5, device="puone"), y)

counts = puone._fallback_counts()
assert counts["aten::add.Tensor"] > 0, counts
assert counts["aten::mm"] > 0
assert counts["aten::convolution"] > 0
assert not any(name.startswith("aten::_copy_from") for name in counts)
assert not any(name.startswith(("aten::fill_", "aten::zero_")) for name in counts)

# what needs a kernel and cannot do without names it
try:
    puone._sleep_ms(1)
except NotImplementedError as error:
    assert '"delay"' in str(error), error
else:
    raise AssertionError("there is no kernel for a delay")
"""


@pytest.mark.parametrize("driver", ["no_kernels", "copies_and_fills"])
def test_a_driver_with_few_kernels_runs_everything(driver: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **odd(driver), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
