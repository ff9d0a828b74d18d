# SPDX-License-Identifier: BSD-3-Clause
"""On a machine without a device everything that can be asked is answered, and the rest says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from interpreter import Python
from suites import NO_GPU, needs_cuda_driver

NO_DEVICE = {
    "template": {"PUONE_DRIVER": "template"},
    "sim": {"PUONE_DRIVER": "sim", "PUONE_SIM_DEVICES": "0"},
    "nothing": {"PUONE_DRIVER": "/nosuch/driver.so"},
}
DRIVERS = [
    *(pytest.param(env, id=name) for name, env in NO_DEVICE.items()),
    pytest.param({"PUONE_DRIVER": "cuda", **NO_GPU}, id="cuda", marks=needs_cuda_driver),
]

QUIET = """
import torch, torch_puone
assert torch.puone.is_available() is False
assert torch.puone.device_count() == 0
assert not torch.puone.is_initialized() and not torch.puone._is_in_bad_fork()
assert len(torch.puone.default_generators) == 0 and list(torch.puone.default_generators) == []
assert torch.puone.get_rng_state_all() == []
assert torch.puone.memory_stats() == {} and torch.puone.memory_allocated() == 0
assert torch.puone.memory_snapshot() == [] and torch.puone.host_memory_stats() == {}
torch.puone.empty_cache()
torch.puone.manual_seed(1); torch.puone.manual_seed_all(2); torch.puone.seed_all()
torch.manual_seed(3)
torch.puone.set_device(-1)
with torch.puone.stream(None), torch.puone.device(-1): pass
assert torch.get_device_module("puone") is torch.puone
with torch.random.fork_rng(device_type="puone"): torch.rand(1)
model = torch.nn.Linear(3, 2)
model(torch.rand(4, 3)).sum().backward()
assert not torch.accelerator.is_available()
"""


@pytest.mark.parametrize("env", DRIVERS)
def test_nothing_raises_that_need_not(python: Python, env: dict[str, str]) -> None:
    done = python(QUIET, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


CALLS = [
    "torch.puone.init()",
    "torch.puone.current_device()",
    "torch.puone.set_device(0)",
    "torch.puone.synchronize()",
    "torch.puone.get_device_name()",
    "torch.puone.Stream()",
    "torch.puone.Event()",
    "torch.puone.current_stream()",
    "torch.puone.initial_seed()",
    "torch.puone.mem_get_info()",
    "torch.puone._sleep_ms(1)",
    "torch.ones(2).to('puone')",
    "torch.empty(2, device='puone')",
]
LOAD = "torch.load(checkpoint)"


@pytest.fixture(scope="module")
def messages(python: Python, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each call raises where there is no device."""
    checkpoint = tmp_path_factory.mktemp("no_device") / "checkpoint.pt"
    save = f"""
import torch, torch_puone
torch.save(torch.ones(2, device="puone"), {str(checkpoint)!r})
"""
    saved = python(save, env={"PUONE_DRIVER": "sim"})
    assert saved.returncode == 0, saved.stderr
    return raised(python, [*CALLS, LOAD], checkpoint)


def raised(python: Python, calls: list[str], checkpoint: Path) -> dict[str, str]:
    """ "Type: message" of what each expression raises, "" if nothing."""
    code = f"""
import json, torch, torch_puone
checkpoint = {str(checkpoint)!r}
raised = {{}}
for call in {calls!r}:
    raised[call] = ""
    try:
        eval(call)
    except Exception as error:
        raised[call] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(raised))
"""
    done = python(code, env={"PUONE_DRIVER": "template"})
    assert done.returncode == 0, done.stderr
    messages: dict[str, str] = json.loads(done.stdout)
    return messages


@pytest.mark.parametrize("call", CALLS)
def test_what_needs_a_device_says_that_there_is_none(messages: dict[str, str], call: str) -> None:
    assert messages[call].startswith("RuntimeError: puone is not available: ")


def test_loading_a_checkpoint_says_how_to_load_it_elsewhere(messages: dict[str, str]) -> None:
    assert "torch.puone.is_available() is False" in messages[LOAD]
    assert "map_location" in messages[LOAD]
