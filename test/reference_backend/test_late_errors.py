# SPDX-License-Identifier: BSD-3-Clause
"""Errors of work that was queued long before: where they arise, and what their messages say."""

from __future__ import annotations

import pytest
from interpreter import Python

PRELUDE = """
import torch, torch_puone, traceback
x = torch.ones(1000, device="puone")
torch.puone.synchronize()

def culprit():
    torch.puone.faults.kernel_error_at(1)
    return x.sin()

def error_of(*calls):
    try:
        for call in calls: call()
    except torch.AcceleratorError as error:
        return error
    raise SystemExit("nothing was raised")

def raised_in(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]
"""


def printed(python: Python, code: str, *, fresh: bool = False, **env: str) -> str:
    done = python(PRELUDE + code, fresh=fresh, env={"PUONE_DRIVER": "sim", **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


LATE = """
error = error_of(culprit, x.cos, torch.puone.synchronize)
print(error)
assert "culprit" not in raised_in(error)
"""


def test_a_late_error_names_its_kernel_and_how_to_find_the_call(python: Python) -> None:
    said = printed(python, LATE)
    assert "kernel sin failed on puone:0: injected by the fault extension" in said
    assert "PUONE_LAUNCH_BLOCKING=1 raises it where it occurs" in said
    assert "PUONE_STACKS=1 adds the Python stack" in said


def test_with_stacks_a_late_error_ends_with_the_stack_of_the_call(python: Python) -> None:
    said = printed(python, LATE, fresh=True, PUONE_STACKS="1")
    assert "kernel sin failed on puone:0" in said
    stack = said.partition("The work was queued by (most recent call last):\n")[2]
    functions = [line.rpartition(", in ")[2] for line in stack.strip().splitlines()]
    assert functions == ["<module>", "error_of", "culprit"]
    assert 'File "<string>", line 8' in stack


def test_launches_that_block_raise_in_the_call(python: Python) -> None:
    said = printed(
        python,
        """
error = error_of(culprit)
assert raised_in(error)[-1] == "culprit", raised_in(error)
print(error)
""",
        PUONE_LAUNCH_BLOCKING="1",
    )
    assert "kernel sin failed on puone:0" in said
    assert "PUONE_STACKS" not in said


def test_launches_that_block_wait(python: Python) -> None:
    printed(
        python,
        """
stream = torch.Stream(device="puone")
with stream:
    torch.puone._sleep_ms(20)
    x.sin()
assert stream.query()
host = torch.ones(10).pin_memory().to("puone", non_blocking=True)
assert torch.puone.current_stream().query()
""",
        PUONE_LAUNCH_BLOCKING="1",
    )


def test_fills_with_zero_that_block_wait(python: Python) -> None:
    printed(
        python,
        """
large = torch.empty(1 << 27, dtype=torch.uint8, device="puone")
large.zero_()
assert torch.puone.current_stream().query()
""",
        PUONE_LAUNCH_BLOCKING="1",
    )


@pytest.mark.parametrize("variable", ["PUONE_LAUNCH_BLOCKING", "PUONE_STACKS"])
def test_a_call_that_fails_at_once_raises_itself(python: Python, variable: str) -> None:
    done = python(
        PRELUDE
        + """
def refused(): x.sin_()
with torch.puone.faults.inject(device_lost=0):
    error = error_of(refused)
    assert "refused" in raised_in(error), raised_in(error)
print(error)
""",
        env={"PUONE_DRIVER": "sim", variable: "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "puone:0 is lost" in done.stdout


def test_launches_of_graphs_that_block_raise_in_the_replay(python: Python) -> None:
    said = printed(
        python,
        """
graph = torch.puone.PUONEGraph()
with torch.puone.graph(graph):
    torch.puone._sleep_ms(20)
    x.sin()
graph.replay()
assert torch.puone.current_stream().query()
torch.puone.faults.kernel_error_at(1)
print(error_of(graph.replay))
""",
        PUONE_LAUNCH_BLOCKING="1",
    )
    assert "failed on puone:0" in said


def test_a_stack_that_is_not_kept_any_more_is_said(python: Python) -> None:
    said = printed(
        python,
        """
side = torch.Stream(device="puone")
def late():
    with side:
        torch.puone.faults.kernel_error_at(1)
        x.sin()
def others():
    copy, one = torch.ones(1, device="puone"), torch.ones(1, device="puone")
    for _ in range(1 << 15): copy.copy_(one)
print(error_of(late, others, side.synchronize))
""",
        PUONE_STACKS="1",
    )
    assert "more than 32768 calls came after it" in said


@pytest.mark.parametrize("value", ["", "0"])
def test_the_variables_can_be_switched_off(python: Python, value: str) -> None:
    printed(
        python,
        """
torch.puone._sleep_ms(100)
assert not torch.puone.current_stream().query()
""",
        PUONE_LAUNCH_BLOCKING=value,
        PUONE_STACKS=value,
    )


def test_the_stack_is_that_of_the_work_that_failed_whatever_came_later(python: Python) -> None:
    said = printed(
        python,
        """
def others():
    for _ in range(2000): x.cos()
side = torch.Stream(device="puone")
def elsewhere():
    with side: x.exp()
print(error_of(elsewhere, culprit, others, elsewhere, side.synchronize, torch.puone.synchronize))
""",
        PUONE_STACKS="1",
    )
    assert "in culprit" in said
    assert "in others" not in said
    assert "in elsewhere" not in said


def test_a_copy_back_reports_the_stack_of_the_kernel_before_it(python: Python) -> None:
    said = printed(python, "y = None\nprint(error_of(lambda: culprit().cpu()))", PUONE_STACKS="1")
    assert "in culprit" in said


def test_stacks_of_threads_are_their_own(python: Python) -> None:
    said = printed(
        python,
        """
import threading
def first(): torch.puone.faults.kernel_error_at(1); x.sin()
def second():
    for _ in range(100): x.cos()
for body in (first, second):
    thread = threading.Thread(target=body); thread.start(); thread.join()
print(error_of(torch.puone.synchronize))
""",
        PUONE_STACKS="1",
    )
    assert "in first" in said
    assert "in second" not in said


def test_an_error_that_is_read_while_memory_is_allocated_does_not_deadlock(python: Python) -> None:
    printed(
        python,
        """
import threading
side = torch.Stream(device="puone")
def work():
    for _ in range(300):
        y = torch.empty(100, device="puone")
        with side: y.sin()
        y.record_stream(side)
threads = [threading.Thread(target=work) for _ in range(2)]
torch.puone.faults.kernel_error_at(50)
for t in threads: t.start()
for t in threads: t.join()
try:
    torch.puone.synchronize()
except torch.AcceleratorError:
    pass
""",
        PUONE_STACKS="1",
    )


def test_work_of_a_backward_pass_says_that_it_has_no_stack(python: Python) -> None:
    said = printed(
        python,
        """
y = torch.ones(10, device="puone", requires_grad=True).sin().sum()
gradient = torch.ones((), device="puone")  # backward() would make it on this thread
torch.puone.synchronize()
torch.puone.faults.kernel_error_at(1)
print(error_of(lambda: y.backward(gradient), torch.puone.synchronize))
""",
        PUONE_STACKS="1",
    )
    assert "queued by a thread without Python, such as autograd's" in said
