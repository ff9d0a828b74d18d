# SPDX-License-Identifier: BSD-3-Clause
"""Process groups under the sanitizer: their threads order work in ways that it cannot see."""

from __future__ import annotations

from ranks import run_ranks


def test_nothing_is_found_in_training_with_a_process_group() -> None:
    run_ranks(
        """
begin()
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
model = torch.nn.parallel.DistributedDataParallel(net.to(device), device_ids=[device.index])
optimizer = torch.optim.Adam(model.parameters(), fused=True)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 64).to(device)).square().mean().backward()
    optimizer.step()
half = torch.ones(7, dtype=torch.bfloat16, device=device)
dist.all_reduce(half, op=dist.ReduceOp.AVG)
parts = [torch.empty(5, device=device) for _ in range(2)]
dist.all_gather(parts, torch.arange(5.0, device=device))
objects = [None, None]
dist.all_gather_object(objects, {"rank": rank})
received = torch.empty_like(half)
sends = [dist.P2POp(dist.isend, half, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
for work in dist.batch_isend_irecv(sends):
    work.wait()
dist.barrier()
assert received.tolist() == [1.0] * 7
dist.destroy_process_group()
""",
        env={"PUONE_SANITIZE": "raise"},
    )
