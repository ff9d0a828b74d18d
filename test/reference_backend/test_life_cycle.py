# SPDX-License-Identifier: BSD-3-Clause
"""From import to exit: laziness, forks, threads, and leaving with work still queued."""

from __future__ import annotations

import pytest
from interpreter import Python

BAD_FORK = (
    "Cannot re-initialize puone in forked subprocess. To use puone with multiprocessing, "
    "you must use the 'spawn' start method"
)


def succeeds(python: Python, code: str) -> str:
    """Standard output of code that must run to its end."""
    done = python(code, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_and_asking_starts_nothing(python: Python) -> None:
    code = """
import os, torch
torch.set_num_threads(1)
before = len(os.listdir("/proc/self/task"))
import torch_puone
assert torch.puone.is_available() and torch.puone.device_count() == 2
torch.manual_seed(1); torch.puone.manual_seed(1)
repr(torch.puone.default_generators); len(torch.puone.default_generators)
assert not torch.puone.is_initialized() and torch.puone._initialized is False
assert len(os.listdir("/proc/self/task")) == before
torch.empty(1, device="puone")
assert torch.puone.is_initialized() and torch.puone._initialized is True
"""
    succeeds(python, code)


def test_a_seed_given_before_the_first_use_is_kept(python: Python) -> None:
    code = """
import torch, torch_puone
torch.manual_seed(11)
assert not torch.puone.is_initialized()
assert torch.puone.initial_seed() == 11
assert [g.initial_seed() for g in torch.puone.default_generators] == [11, 11]
torch.puone.manual_seed(12)
assert [g.initial_seed() for g in torch.puone.default_generators] == [12, 11]
torch.puone.manual_seed_all(13)
assert [g.initial_seed() for g in torch.puone.default_generators] == [13, 13]
"""
    succeeds(python, code)


def test_seeds_that_nobody_uses_are_not_collected(python: Python) -> None:
    code = """
import torch, torch_puone
from torch_puone import _lazy
for seed in range(1000):
    torch.manual_seed(seed); torch.puone.manual_seed(seed)
assert len(_lazy._queued) == 2
torch.puone.seed_all()
assert len(_lazy._queued) == 1
"""
    succeeds(python, code)


def test_faults_can_be_the_first_call_of_a_program(python: Python) -> None:
    code = """
import torch, torch_puone
with torch.puone.faults.inject(kernel_error_at=1):
    assert torch.puone.is_initialized()
    try:
        torch.ones(4, device="puone").sin().cpu()
    except torch.AcceleratorError as error:
        assert "injected" in str(error)
    else:
        raise SystemExit("nothing was raised")
torch.ones(4, device="puone").sin().cpu()
"""
    succeeds(python, code)


def test_a_queued_call_that_fails_does_not_block_the_device(python: Python) -> None:
    code = """
import torch, torch_puone
def fail(): raise ValueError("queued and wrong")
torch.puone._lazy_call(fail)
torch.puone.manual_seed_all(5)
try:
    torch.puone.init()
except ValueError as error:
    assert str(error) == "queued and wrong"
else:
    raise SystemExit("the error was swallowed")
torch.puone.init()
assert torch.puone.initial_seed() == 5
"""
    succeeds(python, code)


def test_threads_initialise_once_and_see_the_seed(python: Python) -> None:
    code = """
import threading, torch, torch_puone
runs = []
torch.puone._lazy_call(lambda: runs.append(1))
torch.manual_seed(7)
start, seen = threading.Barrier(8), []
def work(i):
    start.wait()
    with torch.puone.device(i % 2):
        x = torch.full((1000,), i, device="puone")
        assert x.device.index == i % 2
        seen.append((int(x.cpu().sum()) == 1000 * i, torch.puone.initial_seed()))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert runs == [1] and seen == [(True, 7)] * 8, (runs, seen)
assert torch.puone.current_device() == 0
"""
    succeeds(python, code)


FORK = """
import os, sys, torch, torch_puone
{before}
child = os.fork()
if child == 0:
    {in_child}
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status
assert torch.ones(3, device="puone").cpu().sum() == 3
"""


def test_a_child_may_use_the_device_if_its_parent_did_not(python: Python) -> None:
    in_child = "assert torch.ones(3, device='puone').cpu().sum() == 3"
    succeeds(python, FORK.format(before="torch.manual_seed(1)", in_child=in_child))


USES = [
    "torch.ones(3, device='puone')",
    "torch.ones(3).to('puone')",
    "torch.puone.init()",
    "torch.puone.synchronize()",
    "torch.puone.Stream()",
    "torch.puone.get_rng_state()",
    "parent_tensor.cpu()",
]


def test_a_bad_fork_is_a_clear_error_at_every_use(python: Python) -> None:
    in_child = f"""
    assert torch.puone._is_in_bad_fork() and not torch.puone.is_initialized()
    torch.manual_seed(1)
    for use in {USES!r}:
        try:
            eval(use)
            print("nothing was raised by", use, flush=True)
        except RuntimeError as error:
            print(str(error).splitlines()[0], flush=True)
"""
    before = "parent_tensor = torch.ones(3, device='puone')"
    output = succeeds(python, FORK.format(before=before, in_child=in_child.strip()))
    assert output.splitlines() == [BAD_FORK] * len(USES)


def test_a_child_of_a_bad_fork_leaves_quietly(python: Python) -> None:
    code = """
import os, sys, torch, torch_puone
x = torch.ones(3, device="puone")
child = os.fork()
if child == 0:
    sys.exit(0)  # with exit handlers and destructors
assert os.waitpid(child, 0)[1] == 0
assert x.cpu().sum() == 3
"""
    assert succeeds(python, code) == ""


LEAVE = {
    "queued work": "torch.puone._sleep_ms(300)",
    "many streams": """
for _ in range(40):
    with torch.puone.stream(torch.puone.Stream()):
        torch.puone._sleep_ms(20)
""",
    "a copy in flight": """
pinned = torch.ones(1 << 20).pin_memory()
torch.puone._sleep_ms(100)
y = pinned.to("puone", non_blocking=True)
""",
    # Not a daemon: a daemon thread inside an operator at exit aborts on the CPU as well.
    "a thread that outlives the main one": """
import threading, time
def work():
    for _ in range(50):
        torch.ones(10, device="puone").add_(1)
        time.sleep(0.002)
    torch.puone._sleep_ms(50)
threading.Thread(target=work).start()
""",
    "after a backward": """
model = torch.nn.Linear(4, 2).to("puone")
model(torch.ones(3, 4, device="puone")).sum().backward()
""",
    "an error nobody asked for": """
torch.puone.faults.kernel_error_at(1)
x.fill_(2)
""",
}


@pytest.mark.parametrize("how", LEAVE, ids=lambda how: how.replace(" ", "-"))
def test_leaving_is_clean_with(python: Python, how: str) -> None:
    code = f"""
import torch, torch_puone
x = torch.ones(1000, device="puone")
event = torch.puone.Event(); event.record()
{LEAVE[how]}
"""
    done = python(code, timeout=30, env={"PUONE_DRIVER": "sim"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_driver_outlives_the_programs_own_exit_handlers(python: Python) -> None:
    code = """
import atexit, torch, torch_puone
x = torch.ones(3, device="puone")
atexit.register(lambda: print(x.add(1).cpu().tolist()))
"""
    assert succeeds(python, code) == "[2.0, 2.0, 2.0]\n"
