# SPDX-License-Identifier: BSD-3-Clause
"""What to do about a backend that does not load, from the reason it gave."""

from __future__ import annotations

import re

from torch_conformance.spec.outcome import LoadProblem

# (what Python or torch says, which side is wrong, what to do); groups of the pattern are filled in.
SAID = (
    (
        r"No module named 'torch\.(\w+)'",
        "descriptor or backend",
        "nothing that is imported makes torch.{0}: add the module that names the device to "
        "import.after_torch, or let it call torch._register_device_module('{0}', ...)",
    ),
    (
        r"No module named '([\w.]+)'",
        "descriptor or installation",
        "install the package that has {0} into this Python, or put its directory on PYTHONPATH; "
        "the names are those of import.before_torch and import.after_torch",
    ),
    (
        r"device type at start of device string: (\w+)",
        "descriptor",
        "nothing that is imported names a device {0!r}: add the module that calls "
        "torch.utils.rename_privateuse1_backend to import.after_torch, or correct device_type",
    ),
)
# What the suite itself found out: which side is wrong, what to do.
FOUND = {
    LoadProblem.NO_DEVICE: (
        "installation",
        "device_count() is 0: the driver finds no device; ask the vendor's own tool whether it "
        "does. If a call has to make the device, name it: init --setup pkg.mod:function, or "
        "device: {setup: 'pkg.mod:function'} in the descriptor",
    ),
    LoadProblem.TOO_SLOW: (
        "descriptor or backend",
        "raise deadlines.startup if the device takes that long; else run the imports alone under "
        "py-spy or gdb",
    ),
    LoadProblem.DIED: (
        "backend",
        "run the imports of the descriptor alone in Python; if they work there, write "
        "start_method: spawn",
    ),
    LoadProblem.WRONG_TORCH: (
        "descriptor or installation",
        "install a torch of these versions, or change the key torch",
    ),
    LoadProblem.NO_TORCH: (
        "installation",
        "the suite tests the torch that is installed, and brings none",
    ),
}


def advice(reason: str, problem: LoadProblem | None = None) -> str | None:
    """Which side is wrong and what to do, or None where the reason has to speak for itself."""
    for pattern, side, action in SAID:
        found = re.search(pattern, reason)
        if found:
            return f"{side} wrong: {action.format(*found.groups())}"
    if problem is None:
        return None
    side, action = FOUND[problem]
    return f"{side} wrong: {action}"


def explained(reason: str, problem: LoadProblem | None = None) -> str:
    """The reason with the advice there is."""
    hint = advice(reason, problem)
    return f"{reason}\n{hint}" if hint else reason
