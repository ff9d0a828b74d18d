# SPDX-License-Identifier: BSD-3-Clause
"""What to do about a backend that does not load, from the reason it gave."""

from __future__ import annotations

import re

# (what the reason says, which side is wrong, what to do); groups of the pattern are filled in.
ADVICE = (
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
    (
        r"torch knows device type '(\w+)' but there is no such device",
        "installation",
        "device_count() is 0: the driver finds no {0}; ask the vendor's own tool whether it does",
    ),
    (
        r"did not load within",
        "descriptor or backend",
        "raise deadlines.startup if the device takes that long; else run the imports alone under "
        "py-spy or gdb",
    ),
    (
        r"(SIG\w+|exited with status \S+) while loading",
        "backend",
        "run the imports of the descriptor alone in Python; if they work there, write "
        "start_method: spawn",
    ),
    (
        r"is outside '(.*)' of the descriptor",
        "descriptor or installation",
        "install a torch of {0}, or change the key torch",
    ),
    (
        r"torch cannot be imported",
        "installation",
        "the suite tests the torch that is installed, and brings none",
    ),
)


def advice(reason: str) -> str | None:
    """Which side is wrong and what to do, or None where the reason has to speak for itself."""
    for pattern, side, action in ADVICE:
        found = re.search(pattern, reason)
        if found:
            return f"{side} wrong: {action.format(*found.groups())}"
    return None


def explained(reason: str) -> str:
    """The reason with the advice there is."""
    hint = advice(reason)
    return f"{reason}\n{hint}" if hint else reason
