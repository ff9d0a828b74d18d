# SPDX-License-Identifier: BSD-3-Clause
"""On demand, calls wait for their work and raise its error, or late errors have their stack."""

from __future__ import annotations

from collections.abc import Mapping

from torch_conformance.authoring.api import Device, check, why_ended
from torch_conformance.checks.error._failures import DEFERRED

#: Each queues work that takes longer than it takes to ask whether it is done. `x` and `y` are large
#: and on the device, `host` is pinned if that is possible.
_QUEUED = {
    "fill": "x.fill_(2)",
    "zero": "x.zero_()",
    "copy": "y.copy_(x)",
    "operator": "torch.add(x, x, out=y)",
    "reduction": "x.view(64, -1).sum(1)",
    "from_host": "x.copy_(host, non_blocking=True)",
    "to_host": "host.copy_(x, non_blocking=True)",
}
_ASKED_AT_ONCE = """
import torch
device = torch.device({type!r}, torch.accelerator.device_count() - 1)
x, y = (torch.ones(1 << 22, device=device) for _ in range(2))
host = torch.ones(1 << 22)
if {pinned}:
    host = host.pin_memory()
stream = torch.Stream(device)
with stream:
    for name, call in {calls!r}.items():
        ended = []
        for _ in range(3):
            exec(call)
            ended.append(stream.query())
            stream.synchronize()
        print(name, "ended" if all(ended) else "pending")
"""
_ASKED_AFTER_A_REPLAY = """
graph = torch.accelerator.Graph()
torch.accelerator.synchronize()
with stream, graph:
    x.fill_(7)
captured = x[0].item()
with stream:
    graph.replay()
    ended = stream.query()
print("replay", "ended" if ended and captured != 7 == x[0].item() else "pending")
"""


def _debugging(dev: Device, code: str, env: Mapping[str, str]) -> list[str]:
    """The lines of what a fresh interpreter says with the environment of the descriptor."""
    done = dev.python(code, env=env)
    assert done.returncode == 0, why_ended(done)
    return done.stdout.splitlines()


@check("error/blocking:ended", "ERR-031", needs=("streams",))
def calls_end_with_their_work_where_that_is_asked_for(dev: Device) -> None:
    """With the descriptor's blocking_env, no work is left after a call, but for captures."""
    env = dev.environment("blocking_env")
    pinned = dev.has("pinned_memory")
    code = _ASKED_AT_ONCE.format(type=dev.type, calls=_QUEUED, pinned=pinned)
    names = [*_QUEUED]
    if dev.has("graphs"):
        code += _ASKED_AFTER_A_REPLAY
        names.append("replay")
    found = dict(line.split() for line in _debugging(dev, code, env))
    pending = [name for name in names if found.get(name) != "ended"]
    assert not pending, f"work of {pending} goes on after the call, with {env}"


_FAILING_CALL = """
import torch
from torch_conformance.authoring.backend import resolve
fault = resolve({fault!r})
x = torch.ones(64, device={type!r})
torch.accelerator.synchronize()

def guilty():
    x.fill_(3)

def innocent():
    x.add_(1)
    torch.accelerator.synchronize()

{program}
"""
_CAUGHT = """
def said(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__ + " " + str(error).replace(chr(10), " ")
    return "nothing"
"""


@check("error/blocking:raised", "ERR-031", needs=DEFERRED)
def calls_raise_their_own_error_where_that_is_asked_for(dev: Device) -> None:
    """With the descriptor's blocking_env, the call that queued the failed work raises its error."""
    env = dev.environment("blocking_env")
    program = f"{_CAUGHT}\nfault.kernel_error_at(1)\nprint(said(guilty))\nprint(said(innocent))"
    code = _FAILING_CALL.format(type=dev.type, fault=dev.descriptor.fault, program=program)
    first, second = _debugging(dev, code, env)
    assert "Error" in first, f"the call that fails raises {first}"
    assert second == "nothing", f"the next call raises {second}"


#: Where the failed work is queued.
_QUEUEING = """
import threading

def here():
    guilty()

def on_a_stream():
    with torch.Stream(x.device):
        guilty()

def in_a_thread():
    queueing = threading.Thread(target=guilty)
    queueing.start()
    queueing.join()

for queue in (here, on_a_stream, in_a_thread):
    fault.kernel_error_at(1)
    queue()
    print(queue.__name__, said(innocent))
"""


@check("error/stacks", "ERR-033", needs=DEFERRED)
def late_errors_have_the_stack_of_the_call(dev: Device) -> None:
    """With the descriptor's stacks_env, a late error names the function that queued the work."""
    env = dev.environment("stacks_env")
    program = _CAUGHT + _QUEUEING
    code = _FAILING_CALL.format(type=dev.type, fault=dev.descriptor.fault, program=program)
    found = dict(line.split(maxsplit=1) for line in _debugging(dev, code, env))
    for where in ("here", "on_a_stream", "in_a_thread"):
        message = found.get(where, "nothing")
        assert "Error" in message, f"queued {where}, the next call that waits raises {message}"
        assert "guilty" in message, f"queued {where}, the function is not named: {message}"
