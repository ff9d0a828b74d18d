# SPDX-License-Identifier: BSD-3-Clause
"""The process group pccl: what is beyond the suite's chapter of process groups."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from interpreter import Python
from ranks import COLLECTIVES_ON_A_SIDE_STREAM, run_ranks

from torch_puone.distributed import create

SEEDS = [str(seed) for seed in range(1, 3)]


def test_import_torch_does_not_load_the_process_group(python: Python) -> None:
    done = python(
        """
import sys, torch
assert "torch_puone" in sys.modules
assert "torch_puone.distributed" not in sys.modules
import torch.distributed as dist
assert dist.Backend.default_device_backend_map["puone"] == "pccl"
assert dist.Backend.backend_capability["pccl"] == ["puone"]
assert "torch_puone.distributed" not in sys.modules
""",
        autoload=True,
        fresh=True,
    )
    assert done.returncode == 0, done.stderr


def test_pccl_is_announced_by_an_entry_point() -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="torch.distributed.backends", name="pccl")
    assert entry.value == "torch_puone._registration:register_process_group"


def test_a_call_behind_queued_work_returns_at_once() -> None:
    run_ranks(
        """
begin()
t = torch.ones(1000, device=device)
dist.all_reduce(t); t.cpu()
torch.puone._sleep_ms(400)
begun = time.monotonic()
work = dist.all_reduce(t, async_op=True)
work.wait()
doubled = t * 2
assert time.monotonic() - begun < 0.2
assert not work.is_completed()
assert doubled.unique().tolist() == [8.0]
assert work.is_completed() and work.is_success()
dist.destroy_process_group()
"""
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_an_adversarial_schedule_changes_no_result(seed: str) -> None:
    run_ranks(COLLECTIVES_ON_A_SIDE_STREAM, env={"PUONE_SIM_SEED": seed})


def test_a_failed_call_is_raised_by_the_next_synchronisation_and_lists_what_was_pending() -> None:
    run_ranks(
        """
begin(timeout=3.0)
t = torch.ones(4, device=device)
dist.all_reduce(t); t.cpu()
dist.barrier()
if rank == 1:
    time.sleep(8)
    os._exit(0)
from torch_puone.distributed import pending_work
first = dist.all_reduce(t, async_op=True)
second = dist.all_reduce(t.clone(), async_op=True)
first.wait(); second.wait()
names = [line.split(",")[0] for line in pending_work()]
assert names == ["#3 all_reduce of 4 x Float", "#4 all_reduce of 4 x Float"], names
try:
    t.cpu()
except dist.DistBackendError as error:
    text = str(error)
else:
    raise AssertionError("nothing was raised")
assert "rank 0: all_reduce of 4 x Float failed" in text, text
assert "#3 all_reduce of 4 x Float, waits for other ranks" in text and "#4 " in text, text
torch.puone.synchronize()  # raised once
assert not first.is_success()
for call in (first.wait, lambda: dist.all_reduce(t)):
    try:
        call()
    except dist.DistBackendError:
        pass
    else:
        raise AssertionError("the group goes on")
torch.puone.synchronize()
assert (t + 1).shape == (4,)  # the device goes on
os._exit(0)
"""
    )


def test_a_rank_that_dies_is_noticed_before_the_timeout() -> None:
    run_ranks(
        """
begin(timeout=60.0)
t = torch.ones(4, device=device)
dist.all_reduce(t); t.cpu()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
begun = time.monotonic()
try:
    dist.all_reduce(t)
    t.cpu()
    raise AssertionError("nothing was raised")
except dist.DistBackendError as error:
    assert "all_reduce" in str(error)
assert time.monotonic() - begun < 30
dist.destroy_process_group()
""",
        statuses={1: -9},
    )


def test_a_receive_from_a_rank_that_died_raises_the_error_of_the_group() -> None:
    run_ranks(
        """
begin(timeout=60.0)
t = torch.ones(4, device=device)
dist.all_reduce(t); t.cpu()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1.0)
for _ in range(2):  # Gloo says so at once now
    try:
        dist.recv(t, 1)
        t.cpu()
        raise AssertionError("nothing was raised")
    except dist.DistBackendError as error:
        assert "pccl, rank 0: recv of 4 x Float from rank 1 failed" in str(error), error
torch.puone.synchronize()
dist.destroy_process_group()
""",
        statuses={1: -9},
    )


def test_what_a_failed_call_should_have_written_is_not_sent_by_another_group() -> None:
    run_ranks(
        """
begin(timeout=60.0)
other = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2))
t = torch.ones(4, device=device)
dist.all_reduce(t); dist.all_reduce(t, group=other); t.cpu()
try:
    if rank == 0:
        dist.all_reduce(t, group=other)  # rank 1 does not call it
        dist.send(t, 1)
    else:
        dist.recv(t.zero_(), 0)
    t.cpu()
    raise AssertionError(f"nothing was raised: {t.tolist()}")
except dist.DistBackendError as error:
    text = str(error)
assert "send of 4 x Float to rank 1" in text or "all_reduce" in text or "recv" in text, text
if rank == 0:
    try:
        dist.all_reduce(t)
        raise AssertionError("the group that depends on the failed call goes on")
    except dist.DistBackendError as error:
        assert "a call of another group, before calls of this one, failed" in str(error), error
os._exit(0)
"""
    )


def test_a_call_after_an_error_that_nobody_has_seen_raises_it() -> None:
    run_ranks(
        """
begin(timeout=60.0)
other = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2))
t = torch.ones(4, device=device)
dist.all_reduce(t); dist.all_reduce(t, group=other); t.cpu()
dist.barrier()
if rank == 0:
    dist.all_reduce(t, group=other)  # rank 1 does not call it
    time.sleep(4)
    try:
        dist.all_reduce(t)
        raise AssertionError("nothing was raised")
    except dist.DistBackendError as error:
        assert "rank 0: all_reduce of 4 x Float failed" in str(error), error
one = torch.ones(4, device=device)
dist.all_reduce(one)  # the group of all ranks was not touched
assert one.tolist() == [2.0] * 4
os._exit(0)
"""
    )


def test_the_memory_of_a_call_stays_while_other_ranks_may_still_write_to_it() -> None:
    run_ranks(
        """
import torch_puone._exit
begin(timeout=60.0)
t = torch.ones(200_000, device=device)
dist.all_reduce(t); t.cpu()
dist.barrier()
if rank == 0:
    dist.all_reduce(t, async_op=True)
    time.sleep(0.5)
    dist.group.WORLD._get_backend(device).abort()
    torch_puone._exit.shutdown()
    time.sleep(3)
else:
    time.sleep(2)
    dist.all_reduce(t)
    assert t.unique().tolist() == [4.0]
os._exit(0)
"""
    )


def test_abort_lets_the_device_go_on() -> None:
    run_ranks(
        """
begin(timeout=300.0)
t = torch.ones(4, device=device)
dist.all_reduce(t); t.cpu()
dist.barrier()
if rank == 0:
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    threading.Timer(0.5, dist.group.WORLD._get_backend(device).abort).start()
    try:
        t.cpu()
    except dist.DistBackendError as error:
        assert "aborted" in str(error), error
    else:
        raise AssertionError("nothing was raised")
    assert (t + 1).numel() == 4
else:
    time.sleep(2)
os._exit(0)
"""
    )


def test_a_program_may_end_without_destroying_its_groups() -> None:
    run_ranks(
        """
begin(timeout=300.0)
t = torch.ones(4, device=device)
dist.all_reduce(t)
t.cpu()
if rank == 0:
    dist.all_reduce(t)  # nobody else calls it
    time.sleep(0.2)
""",
        timeout=60,
    )


def test_a_forked_child_says_that_it_cannot_use_the_group() -> None:
    run_ranks(
        """
begin()
t = torch.ones(4, device=device)
dist.all_reduce(t); t.cpu()
pid = os.fork()
if pid == 0:
    try:
        dist.all_reduce(t)
    except RuntimeError as error:
        os._exit(0 if "forked subprocess" in str(error) else 3)
    os._exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
dist.all_reduce(t)
assert t.tolist() == [4.0] * 4
dist.destroy_process_group()
"""
    )


def test_types_that_no_transport_computes_in_are_cast_or_refused() -> None:
    run_ranks(
        """
begin()
def reduced(values, op=dist.ReduceOp.SUM, dtype=None):
    t = torch.tensor(values, dtype=dtype, device=device) + (rank if dtype != torch.bool else 0)
    t = t.to(dtype) if dtype else t
    dist.all_reduce(t, op)
    return t.tolist()
assert reduced([30000, -5], dtype=torch.int16) == [-5535, -9]
assert reduced([65000], dtype=torch.uint16) == [(65000 * 2 + 1) % 65536]
x = torch.tensor([rank == 0, False, True], device=device)
dist.all_reduce(x)
assert x.tolist() == [True, False, True]
z = torch.tensor([1 + 2j], device=device) * (rank + 1)
dist.all_reduce(z, dist.ReduceOp.AVG)
assert z.tolist() == [1.5 + 3j]
assert reduced([3, 5], dist.ReduceOp.BXOR, torch.int32) == [3 ^ 4, 5 ^ 6]
for values, op, dtype in (([1], dist.ReduceOp.AVG, torch.int64), ([1.0], dist.ReduceOp.BAND, None)):
    try:
        reduced(values, op, dtype)
    except ValueError as error:
        assert "not defined for" in str(error)
    else:
        raise AssertionError("not refused")
try:
    dist.all_reduce(torch.ones(3, device=device).to(torch.float8_e4m3fn))
except NotImplementedError as error:
    assert "SUM of Float8_e4m3fn" in str(error), error
else:
    raise AssertionError("not refused")
scaled = torch.ones(2, device=device)
dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.5))
assert scaled.tolist() == [5.0, 5.0]
part = torch.arange(12.0, device=device).reshape(3, 4).t()
dist.all_reduce(part)
assert part.tolist() == (2 * torch.arange(12.0).reshape(3, 4).t()).tolist()
dist.destroy_process_group()
"""
    )


def test_messages_with_tags_may_come_in_another_order() -> None:
    run_ranks(
        """
begin()
if rank == 0:
    sent = {tag: torch.full((1 << 18,), float(tag), device=device) for tag in (2, 1)}
    works = [dist.isend(t, 1, tag=tag) for tag, t in sent.items()]
else:
    got = {tag: torch.zeros(1 << 18, device=device) for tag in (1, 2)}
    works = [dist.irecv(t, 0, tag=tag) for tag, t in got.items()]
for work in works:
    work.wait()
if rank == 1:
    assert {tag: t.unique().tolist() for tag, t in got.items()} == {1: [1.0], 2: [2.0]}
dist.destroy_process_group()
"""
    )


def test_groups_are_split_and_take_options() -> None:
    run_ranks(
        """
from torch_puone.distributed import Options
begin()
half = dist.split_group(split_ranks=[[0, 2], [1, 3]])
t = torch.full((3,), float(rank), device=device)
dist.all_reduce(t, group=half)
assert t.tolist() == [2.0 + 2 * (rank % 2)] * 3, t
other = dist.new_group([0, 1, 2, 3], pg_options=Options(datetime.timedelta(seconds=20)))
dist.all_reduce(t, group=other)
assert t.tolist() == [12.0] * 3, t
try:
    dist.new_group([0, 1, 2, 3], pg_options=object())
except TypeError:
    pass
else:
    raise AssertionError("wrong options were taken")
dist.destroy_process_group()
""",
        size=4,
    )


def test_wrong_options_are_refused_before_ranks_connect() -> None:
    nowhere: Any = SimpleNamespace(store=None, timeout=datetime.timedelta(seconds=1))
    wrong: Any = object()
    with pytest.raises(TypeError, match="pccl takes Options, not object"):
        create(nowhere, wrong)


def test_a_group_may_have_gloo_for_the_cpu_beside_it() -> None:
    run_ranks(
        """
begin()
mixed = dist.new_group(backend="cpu:gloo,puone:pccl")
for where in ("cpu", device):
    t = torch.full((3,), rank + 1.0, device=where)
    dist.all_reduce(t, group=mixed)
    assert t.tolist() == [3.0] * 3
dist.destroy_process_group()
"""
    )


def test_buckets_of_gradients_are_reduced_while_backward_goes_on(tmp_path: Path) -> None:
    run_ranks(
        """
from torch.profiler import ProfilerActivity, profile
begin()
torch.manual_seed(0)
layers = [torch.nn.Linear(256, 256) for _ in range(6)]
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(*layers).to(device), device_ids=[device.index], bucket_cap_mb=0.3
)
x = torch.randn(256, 256, device=device)
model(x).sum().backward()
model(x).sum().backward()
torch.puone.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as p:
    model(x).sum().backward()
    torch.puone.synchronize()
if rank == 0:
    p.export_chrome_trace(os.environ["TRACE"])
    calls = [e for e in p.events() if e.name.startswith("pccl:all_reduce")]
    assert len(calls) >= 3, [e.name for e in p.events() if "pccl" in e.name]
dist.destroy_process_group()
""",
        env={"TRACE": str(tmp_path / "trace.json")},
        timeout=240,
    )
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    # The first bucket has left the device before the last kernel of the backward pass began.
    assert min(c["ts"] for c in copies) < max(k["ts"] for k in kernels)
    rows = {(e["pid"], e["tid"]) for e in copies}
    assert len(rows - {(k["pid"], k["tid"]) for k in kernels}) >= 1, (
        "copies have a row of their own"
    )
