# SPDX-License-Identifier: BSD-3-Clause
"""The native transport of pccl: the cuda driver's own host code, over stand-ins for CUDA and NCCL.

The stand-in for NCCL (test/standin/fake_nccl.cpp) moves the bytes between the processes and ends a
rank that calls it wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from ranks import COLLECTIVES_ON_A_SIDE_STREAM, run_ranks
from suites import OVER_FAKE_NCCL, STANDIN, needs_standin, run_pytest

pytestmark = needs_standin


def over_nccl(devices: int = 2, **more: str) -> dict[str, str]:
    """The environment in which pccl has both stand-ins."""
    return {
        "PUONE_DRIVER": str(STANDIN),
        "PUONE_STANDIN_DEVICES": str(devices),
        "PUONE_STANDIN_MEMORY": "512",
        **OVER_FAKE_NCCL,
        **more,
    }


def run_native(
    code: str,
    *,
    size: int = 2,
    env: Mapping[str, str] | None = None,
    statuses: Mapping[int, int] | None = None,
) -> None:
    """`run_ranks` over the stand-ins, with a device for each rank."""
    run_ranks(
        f"device = torch.device('puone', rank)\n{code}",
        size=size,
        env={**over_nccl(size), **(env or {})},
        statuses=statuses,
    )


COLLECTIVES = """
from torch_puone.distributed import transport
begin()
assert transport() == ("native", ""), transport()
every = range(size)
total = size * (size + 1) // 2
def full(value, *shape, dtype=torch.float32):
    return torch.full(shape or (5,), value, dtype=dtype, device=device)
def same(got, wanted):
    assert got.tolist() == torch.as_tensor(wanted).tolist(), (rank, got, wanted)

for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32,
              torch.int64, torch.int8, torch.uint8):
    t = full(rank + 1, dtype=dtype)
    dist.all_reduce(t)
    same(t, [total] * 5)
for op, wanted in ((dist.ReduceOp.MIN, 1.0), (dist.ReduceOp.MAX, float(size)),
                   (dist.ReduceOp.AVG, (size + 1) / 2)):
    t = full(rank + 1.0)
    dist.all_reduce(t, op)
    same(t, [wanted] * 5)
t = full(2.0)
dist.all_reduce(t, dist.ReduceOp.PRODUCT)
same(t, [2.0 ** size] * 5)
z = full(1 + 2j, dtype=torch.complex64) * (rank + 1)
dist.all_reduce(z)
same(z, [(1 + 2j) * total] * 5)
b = torch.tensor([rank == 0, False], device=device)
dist.all_reduce(b)
same(b, [True, False])
scaled = full(1.0)
dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.5))
same(scaled, [2.5 * size] * 5)

# What NCCL does not compute goes through the host, in the same group.
bits = full(1 << rank, dtype=torch.int32)
dist.all_reduce(bits, dist.ReduceOp.BOR)
same(bits, [(1 << size) - 1] * 5)
short = full(30000, dtype=torch.int16)
dist.all_reduce(short)
same(short, torch.full((5,), 30000 * size).to(torch.int16))

gaps = torch.arange(12.0, device=device).reshape(3, 4).t()
dist.all_reduce(gaps)
same(gaps, size * torch.arange(12.0).reshape(3, 4).t())
for root in every:
    t = full(float(rank))
    dist.broadcast(t, root)
    same(t, [float(root)] * 5)
    wide = torch.zeros(4, 6, device=device).t() + rank
    dist.broadcast(wide, root)
    same(wide, torch.full((6, 4), float(root)))
    t = full(rank + 1.0)
    dist.reduce(t, root)
    same(t, [float(total if rank == root else rank + 1)] * 5)
    out = [full(-1.0) for _ in every] if rank == root else None
    dist.gather(full(float(rank)), out, root)
    for i, t in enumerate(out or ()):
        same(t, [float(i)] * 5)
    t = full(-1.0)
    dist.scatter(t, [full(10.0 * i) for i in every] if rank == root else None, root)
    same(t, [10.0 * rank] * 5)
out = [full(-1.0) for _ in every]
dist.all_gather(out, full(float(rank)))
for i, t in enumerate(out):
    same(t, [float(i)] * 5)
uneven = [full(-1.0, i) for i in every]
dist.all_gather(uneven, full(float(rank), rank))
for i, t in enumerate(uneven):
    same(t, [float(i)] * i)
whole = full(-1.0, 5 * size)
dist.all_gather_into_tensor(whole, full(float(rank)))
same(whole, [float(i) for i in every for _ in range(5)])
part = full(-1.0, 3)
source = torch.arange(3.0 * size, device=device)
dist.reduce_scatter_tensor(part, source)
same(part, [size * (3.0 * rank + i) for i in range(3)])
part = full(-1.0, rank + 1)
dist.reduce_scatter(part, [full(float(i), i + 1) for i in every])
same(part, [float(size * rank)] * (rank + 1))
out = full(-1.0, size)
dist.all_to_all_single(out, torch.arange(float(size), device=device) + 10 * rank)
same(out, [10.0 * i + rank for i in every])
mine = [full(float(rank), i + 1) for i in every]
out = [full(-1.0, rank + 1) for _ in every]
dist.all_to_all(out, mine)
for i, t in enumerate(out):
    same(t, [float(i)] * (rank + 1))
splits = [i for i in every]
out = full(-1.0, rank * size)
dist.all_to_all_single(out, full(float(rank), sum(splits)), [rank] * size, splits)
same(out, [float(i) for i in every for _ in range(rank)])

two = [full(rank + 1.0), full(rank + 2.0, 3)]
with dist._coalescing_manager(device=device, async_ops=True) as manager:
    for t in two:
        dist.all_reduce(t)
manager.wait()
same(two[0], [float(total)] * 5)
same(two[1], [float(total + size)] * 3)

right, left = (rank + 1) % size, (rank - 1) % size
sent, got = full(float(rank), 1 << 18), full(-1.0, 1 << 18)
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, right),
                                dist.P2POp(dist.irecv, got, left)])
for work in works:
    work.wait()
same(got.unique(), [float(left)])
got = torch.zeros(4, 6, device=device).t()
works = [dist.isend((torch.ones(6, 4, device=device) * rank).t().t(), right), dist.irecv(got, left)]
for work in works:
    work.wait()
same(got, torch.full((6, 4), float(left)))
tagged = full(-1.0)
works = [dist.isend(full(float(rank)), right, tag=3), dist.irecv(tagged, left, tag=3)]
for work in works:
    work.wait()
same(tagged, [float(left)] * 5)
if rank:
    dist.send(full(float(rank)), 0)
else:
    t = full(-1.0)
    sources = [dist.recv(t) for _ in every[1:]]
    assert sorted(sources) == list(every[1:]), sources
empty = full(0.0, 0, 3)
dist.all_reduce(empty)
dist.broadcast(empty, 0)
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": i} for i in every]
dist.barrier()
halves = dist.new_group([0, size - 1])
if rank in (0, size - 1):
    t = full(rank + 1.0)
    dist.all_reduce(t, group=halves)
    same(t, [float(1 + size)] * 5)
    assert transport(halves) == ("native", "")
dist.destroy_process_group()
begin(name="again")
t = full(1.0)
dist.all_reduce(t)
same(t, [float(size)] * 5)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("size", [2, 4])
def test_every_collective_moves_the_right_values(size: int) -> None:
    run_native(COLLECTIVES, size=size)


def test_the_validation_layer_accepts_what_pccl_calls() -> None:
    run_native(COLLECTIVES, env={"PUONE_VALIDATE": "1"})


@pytest.mark.parametrize("seed", ["1", "2"])
def test_an_adversarial_schedule_changes_no_result(seed: str) -> None:
    run_native(COLLECTIVES_ON_A_SIDE_STREAM, env={"PUONE_STANDIN_SEED": seed})


def test_a_call_behind_queued_work_returns_at_once() -> None:
    run_native(
        """
begin()
t = torch.ones(1000, device=device)
dist.all_reduce(t); t.cpu()
torch.puone._sleep_ms(400)
begun = time.monotonic()
work = dist.all_reduce(t, async_op=True)
work.wait()
doubled = t * 2
assert time.monotonic() - begun < 0.3
assert not work.is_completed()
assert doubled.unique().tolist() == [8.0]
assert work.is_completed() and work.is_success()
from torch_puone.distributed import pending_work
end = time.monotonic() + 10
while pending_work() and time.monotonic() < end:
    time.sleep(0.01)
assert pending_work() == []
dist.destroy_process_group()
"""
    )


def test_data_parallel_training_equals_one_process() -> None:
    run_native(
        """
begin()
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
def train(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]
torch.manual_seed(1)
batch = torch.randn(8, 8)
mine = batch.chunk(size)[rank].to(device)
parallel = torch.nn.parallel.DistributedDataParallel(network().to(device), device_ids=[rank])
for got, wanted in zip(train(parallel, mine), train(network(), batch), strict=True):
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
dist.destroy_process_group()
"""
    )


#: raises() expects an error of the group, with one of these texts, and gives the seconds it took.
#: begin_unbound() makes a group that connects in its first call.
RAISES = """
def begin_unbound(timeout):
    torch.puone.set_device(device)
    dist.init_process_group(
        "pccl", rank=rank, world_size=size, init_method="file://" + os.environ["STORE"] + "group",
        timeout=datetime.timedelta(seconds=timeout),
    )
def raises(call, *texts):
    begun = time.monotonic()
    try:
        call()
        torch.puone.synchronize()
    except dist.DistBackendError as error:
        assert any(text in str(error) for text in texts), error
        return time.monotonic() - begun
    raise AssertionError("nothing was raised")
t = torch.ones(4, device=device)
"""


@pytest.mark.parametrize("silent", [False, True])
def test_a_rank_that_died_is_an_error_within_the_timeout(silent: bool) -> None:
    """Whether the library notices it or nobody does."""
    run_native(
        f"begin(timeout={4.0 if silent else 60.0})\n{RAISES}"
        """
dist.all_reduce(t); t.cpu()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
assert raises(lambda: dist.all_reduce(t), "all_reduce of 4 x Float failed") < 30
assert (t + 1).shape == (4,)  # the device goes on
assert raises(lambda: dist.all_reduce(t), "all_reduce of 4 x Float failed") < 1
dist.destroy_process_group()
""",
        env={"PUONE_FAKE_NCCL": "silent"} if silent else None,
        statuses={1: -9},
    )


def test_a_rank_that_does_not_come_is_an_error_at_the_timeout() -> None:
    run_native(
        f"begin(timeout=3.0)\n{RAISES}"
        """
dist.all_reduce(t); t.cpu()
dist.barrier()
if rank == 1:
    time.sleep(7)
    os._exit(0)
assert raises(lambda: dist.all_reduce(t), "not done within 3000 ms") < 30
os._exit(0)
"""
    )


def test_a_rank_that_does_not_connect_is_an_error_at_the_timeout() -> None:
    run_native(
        f"{RAISES}"
        """
begin_unbound(3.0)
if rank == 1:
    time.sleep(7)
    os._exit(0)
assert raises(lambda: dist.all_reduce(t), "not all of 2 ranks came", "not done within") < 30
os._exit(0)
"""
    )


def test_a_message_that_nobody_receives_is_an_error_at_the_timeout() -> None:
    run_native(
        f"begin(timeout=3.0)\n{RAISES}"
        """
if rank == 1:
    time.sleep(7)
    os._exit(0)
assert raises(lambda: dist.send(t, 1), "send of 4 x Float to rank 1 failed") < 30
os._exit(0)
"""
    )


def test_a_message_of_another_size_is_an_error_of_the_receiver() -> None:
    run_native(
        f"begin(timeout=5.0)\n{RAISES}"
        """
if rank == 0:
    raises(lambda: dist.send(t, 1), "send of 4 x Float to rank 1 failed")
else:
    raises(lambda: dist.recv(torch.ones(3, device=device), 0),
           "a message of 16 bytes came from rank 0, and the tensor has 12")
os._exit(0)
"""
    )


def test_abort_lets_the_device_go_on() -> None:
    run_native(
        f"begin(timeout=300.0)\n{RAISES}"
        """
dist.all_reduce(t); t.cpu()
dist.barrier()
if rank == 0:
    dist.all_reduce(t, async_op=True).wait()
    threading.Timer(0.5, dist.group.WORLD._get_backend(device).abort).start()
    raises(t.cpu, "aborted")
    assert (t + 1).numel() == 4
    dist.destroy_process_group()
else:
    time.sleep(2)
os._exit(0)
"""
    )


def test_a_program_may_end_while_a_call_is_pending() -> None:
    run_native(
        f"begin(timeout=300.0)\n{RAISES}"
        """
dist.all_reduce(t); t.cpu()
if rank == 0:
    dist.all_reduce(t)  # nobody else calls it
    time.sleep(0.2)
"""
    )


def test_a_call_of_another_group_behind_a_failed_one_fails_on_the_rank_of_both() -> None:
    """Whether the other rank gets its data depends on when the library's abort takes effect."""
    run_native(
        f"begin(timeout=60.0)\n{RAISES}"
        """
other = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2))
dist.all_reduce(t); dist.all_reduce(t, group=other); t.cpu()
got = torch.zeros(4, device=device)
if rank == 0:
    dist.all_reduce(t, group=other)  # rank 1 does not call it
    raises(lambda: dist.all_reduce(t), "all_reduce of 4 x Float failed")
else:
    try:
        dist.all_reduce(got)
    except dist.DistBackendError as error:
        assert "all_reduce of 4 x Float failed" in str(error), error
os._exit(0)
"""
    )


@pytest.mark.parametrize("function", ["ncclCommInitRankConfig", "ncclAllReduce", "ncclGroupEnd"])
def test_an_error_of_the_library_is_the_groups(function: str) -> None:
    run_native(
        f"{RAISES}"
        """
begin_unbound(4.0)
raises(lambda: dist.all_reduce(t), "NCCL status 3")
raises(lambda: dist.all_reduce(t), "NCCL status 3")
os._exit(0)
""",
        env={"PUONE_FAKE_NCCL": f"fail={function}:1"},
    )


def test_two_ranks_on_one_device_are_refused_with_the_librarys_reason() -> None:
    run_ranks(
        f"device = torch.device('puone', 0)\n{RAISES}"
        """
raises(lambda: begin(timeout=10.0), "Duplicate GPU")
os._exit(0)
""",
        env=over_nccl(),
    )


def test_a_group_stays_on_the_device_of_its_first_call() -> None:
    run_native(
        """
begin()
dist.all_reduce(torch.ones(4, device=device))
try:
    dist.all_reduce(torch.ones(4, device=torch.device("puone", 1 - rank)))
except ValueError as error:
    assert f"on puone:{rank} since its first call" in str(error), error
else:
    raise AssertionError("not refused")
t = torch.ones(4, device=device)
dist.all_reduce(t)
assert t.tolist() == [2.0] * 4
dist.destroy_process_group()
"""
    )


STAGED = """
from torch_puone.distributed import transport
begin()
t = torch.ones(4, device=device)
dist.all_reduce(t)
assert t.tolist() == [2.0] * 4
way, reason = transport()
assert way == "staged", way
assert REASON in reason, reason
dist.destroy_process_group()
"""

#: Why a rank has no native transport: environment, part of the reason.
WITHOUT = {
    "none": ({"PUONE_CUDA_NCCL": "none"}, 'PUONE_CUDA_NCCL is "none"'),
    "no_file": ({"PUONE_CUDA_NCCL": "/nowhere/libnccl.so.2"}, "/nowhere/libnccl.so.2"),
    "no_symbol": ({"PUONE_CUDA_NCCL": "libm.so.6"}, "libnccl has no function ncclGetVersion"),
    "old": ({"PUONE_FAKE_NCCL": "version=21001"}, "NCCL 2.10.1 is older than 2.14.0"),
    "asked": ({"PUONE_PCCL": "staged"}, "the staged transport was asked for"),
}


@pytest.mark.parametrize("why", WITHOUT)
def test_without_the_library_tensors_are_staged_and_the_reason_is_known(why: str) -> None:
    env, reason = WITHOUT[why]
    run_native(f"REASON = {reason!r}\n{STAGED}", env=env)


def test_all_ranks_are_staged_if_one_of_them_has_no_library() -> None:
    run_native(
        f"""
if rank == 1:
    os.environ["PUONE_CUDA_NCCL"] = "none"
REASON = 'is "none"' if rank == 1 else "rank 1 cannot"
{STAGED}
"""
    )


def test_ranks_that_must_share_devices_are_staged() -> None:
    run_ranks(
        """
from torch_puone.distributed import transport
begin()
t = torch.ones(4, device=device)
dist.all_reduce(t)
assert t.tolist() == [3.0] * 4
assert transport() == ("staged", "3 ranks share 2 devices"), transport()
dist.destroy_process_group()
""",
        size=3,
        env=over_nccl(),
    )


def test_the_native_transport_can_be_asked_for() -> None:
    run_native(
        """
from torch_puone.distributed import Options, transport
begin()
staged = dist.new_group([0, 1], pg_options=Options(datetime.timedelta(seconds=9), "staged"))
assert transport(staged)[0] == "staged" and transport() == ("native", "")
try:
    Options(datetime.timedelta(seconds=9), "pigeon")
except ValueError as error:
    assert "pigeon" in str(error)
else:
    raise AssertionError("not refused")
dist.destroy_process_group()
os.environ["PUONE_PCCL"] = "native"
os.environ["PUONE_CUDA_NCCL"] = "ignored: it was looked for before"
begin(name="native")
dist.destroy_process_group()
"""
    )
    run_native(
        """
try:
    begin()
except NotImplementedError as error:
    assert 'native transport was asked for' in str(error) and '"none"' in str(error), error
else:
    raise AssertionError("not refused")
""",
        env={"PUONE_PCCL": "native", "PUONE_CUDA_NCCL": "none"},
    )


@pytest.mark.nightly
def test_the_suites_chapter_passes() -> None:
    """But for what backends MAY do: a rank waits for the others in the first call of a group."""
    chapter = ["--check", "process_group/*", "-k", "not two_groups"]
    done = run_pytest(["conformance", "--backend=puone", *chapter], over_nccl(4), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
