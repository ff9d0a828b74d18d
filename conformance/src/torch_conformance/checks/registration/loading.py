# SPDX-License-Identifier: BSD-3-Clause
"""Loading the backend starts nothing, changes no state of the program and prints nothing."""

from __future__ import annotations

import json
from typing import Any, Literal

from torch_conformance.authoring.api import Device, check, why_ended
from torch_conformance.checks.registration._programs import WORK

_REPORT = """
import json, os, random, signal, threading, warnings
import torch
module = getattr(torch, {type!r}, None)
children = []
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{{task}}/children") as listing:
        children += listing.read().split()
state = {{
    "dtype": torch.get_default_dtype(),
    "device": torch.get_default_device(),
    "grad_mode": torch.is_grad_enabled(),
    "inference_mode": torch.is_inference_mode_enabled(),
    "autocast": torch.is_autocast_enabled("cpu"),
    "anomaly_mode": torch.is_anomaly_enabled(),
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "float32_precision": torch.get_float32_matmul_precision(),
    "flush_denormal": (torch.tensor(1e-40, dtype=torch.float32) * 1).item() == 0,
    "threads": torch.get_num_threads(),
    "interop_threads": torch.get_num_interop_threads(),
    "print_options": vars(torch._tensor_str.PRINT_OPTS),
    "sharing_strategy": torch.multiprocessing.get_sharing_strategy(),
    "start_method": torch.multiprocessing.get_start_method(allow_none=True),
    "warning_filters": [entry[:2] + entry[4:] for entry in warnings.filters],
    "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
    "folder": os.getcwd(),
    "modes": torch._C._len_torch_dispatch_stack() + torch._C._len_torch_function_stack(),
}}
report = {{
    "state": {{name: str(value) for name, value in state.items()}},
    "known": module is not None,
    "initialized": bool(module.is_initialized()) if hasattr(module, "is_initialized") else None,
    "threads": len(os.listdir("/proc/self/task")),
    "python_threads": threading.active_count(),
    "children": len(children),
}}
print("REPORT" + json.dumps(report), end="")
"""

#: One interpreter per way of loading serves all the checks of a worker: a start costs a second.
_REPORTS: dict[tuple[str, str], tuple[dict[str, Any], str, str]] = {}


def _after_import(dev: Device, backend: Literal["load", "none"]) -> tuple[dict[str, Any], str, str]:
    """What a fresh interpreter shows after its imports alone: (facts, stdout, stderr)."""
    key = (dev.type, backend)
    if key not in _REPORTS:
        # "none" is torch alone, the measure for the rest: not even autoload may load the backend.
        env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"} if backend == "none" else {}
        done = dev.python(_REPORT.format(type=dev.type), backend=backend, env=env)
        assert done.returncode == 0, why_ended(done)
        stdout, _, facts = done.stdout.rpartition("REPORT")
        _REPORTS[key] = json.loads(facts), stdout, done.stderr
    return _REPORTS[key]


@check("registration/import_alone:exits", "REG-030", needs=("accelerator",))
def a_process_that_only_imports_ends(dev: Device) -> None:
    """A process that loads the backend and does nothing else exits with status 0."""
    _after_import(dev, "load")


@check("registration/import_alone:known", "REG-030", needs=("accelerator",))
def import_registers_the_module(dev: Device) -> None:
    """Loading the backend is enough for torch.<type> to exist."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["known"]


# Needs fork because a fork loses threads: that is what is wrong with them.
@check("registration/import_alone:no_thread", "REG-030", needs=("accelerator", "fork"))
def import_starts_no_thread(dev: Device) -> None:
    """Loading the backend starts no thread."""
    facts, _, _ = _after_import(dev, "load")
    without, _, _ = _after_import(dev, "none")
    assert facts["threads"] <= without["threads"], "the import started threads"
    assert facts["python_threads"] == 1


@check("registration/import_alone:no_child", "REG-030", needs=("accelerator",))
def import_starts_no_process(dev: Device) -> None:
    """Loading the backend leaves no child process."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["children"] == 0, "the import left helper processes behind"


@check("registration/import_alone:not_initialized", "REG-030", needs=("accelerator",))
def import_initialises_no_device(dev: Device) -> None:
    """Loading the backend does not initialise the device."""
    facts, _, _ = _after_import(dev, "load")
    assert facts["initialized"] is not True, "the import initialised the device"


@check("registration/import_state", "REG-038", needs=("accelerator",))
def import_changes_no_global_state(dev: Device) -> None:
    """After loading the backend the program's defaults, modes and handlers are what torch made."""
    without, _, _ = _after_import(dev, "none")
    facts, _, _ = _after_import(dev, "load")
    changed = {
        name: (value, facts["state"][name])
        for name, value in without["state"].items()
        if facts["state"][name] != value
    }
    assert not changed, f"loading the backend changed {changed}"


@check("registration/import_silent", "REG-031", cases=("stdout",), needs=("accelerator",))
def import_writes_nothing_to_stdout(dev: Device, case: str) -> None:
    """Loading the backend prints nothing on stdout, which belongs to the program."""
    _, stdout, _ = _after_import(dev, "load")
    assert stdout == "", f"{case}: {stdout[:300]!r}"


@check("registration/import_silent", "REG-032", cases=("stderr",), needs=("accelerator",))
def import_writes_nothing_to_stderr(dev: Device, case: str) -> None:
    """Loading the backend prints nothing on stderr that torch alone does not print."""
    _, _, without = _after_import(dev, "none")
    _, _, stderr = _after_import(dev, "load")
    new = [line for line in stderr.splitlines() if line not in without.splitlines()]
    assert not new, f"{case}: {new[:3]!r}"


@check("registration/silent_use", "REG-043", needs=("accelerator",))
def work_writes_nothing_to_stdout(dev: Device) -> None:
    """A program that computes, copies and runs backward prints what it prints itself."""
    done = dev.python(f"D = {dev.type!r}\n{WORK}")
    assert done.returncode == 0, why_ended(done)
    _, silent, _ = _after_import(dev, "load")
    printed = done.stdout.removeprefix(silent)
    assert printed == "worked\n", f"the backend wrote {printed.replace('worked', '')[:300]!r}"
