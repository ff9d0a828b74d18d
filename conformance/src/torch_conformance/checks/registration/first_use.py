# SPDX-License-Identifier: BSD-3-Clause
"""The first call that needs the device initialises it."""

from __future__ import annotations

from torch_conformance.authoring.api import AT_ONCE, Device, Ended, check, ends

#: Calls of the device module that need the device. What a backend lacks is left out.
_FIRST_USES = (
    "m.current_device()",
    "m.set_device(0)",
    "m.device(0).__enter__()",
    "m.synchronize()",
    "m.get_device_name()",
    "m.get_device_properties(0)",
    "m.get_device_capability()",
    "m.mem_get_info()",
    "m.Stream()",
    "m.current_stream()",
    "m.default_stream()",
    "m.get_rng_state()",
    "m.initial_seed()",
)
_FIRST_USE = (
    "m = torch.get_device_module(torch.device(D).type)\n"
    "torch.manual_seed(77)\n"
    "{call}\n"
    "print('FIRST', m.is_initialized(), torch.rand(4, device=D).tolist(), flush=True)\n" + AT_ONCE
)


def _printed_first(end: Ended) -> str:
    """What a program of _FIRST_USE printed."""
    end.verify()
    return end.output.rpartition("FIRST ")[2].strip()


@check("registration/first_use", "REG-047", needs=("accelerator", "fork", "generator"))
def the_first_call_initialises_the_device(dev: Device) -> None:
    """After a call that needs the device, it is initialised, and has the seed given before."""
    if not hasattr(dev.bare_module, "is_initialized"):
        dev.unsupported(f"torch.{dev.type} has no is_initialized")
    calls = [
        call
        for call in _FIRST_USES
        if hasattr(dev.bare_module, call.removeprefix("m.").partition("(")[0])
    ]
    found = ends(dev, {call: _FIRST_USE.format(call=call) for call in ["", *calls]})
    expected = _printed_first(found[""]).partition(" ")[2]
    wrong = {
        call: told for call in calls if (told := _printed_first(found[call])) != f"True {expected}"
    }
    assert not wrong, f"initialised, and drawn instead of {expected}: {wrong}"
