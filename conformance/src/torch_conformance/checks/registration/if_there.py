# SPDX-License-Identifier: BSD-3-Clause
"""What the module `torch.<type>` need not have is, where it is there, what torch.cuda's is."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks.registration._members import Member, is_index, none, verify_member

#: What programs look for first in the list of a module's names.
_LISTED = ("Stream", "Event", "synchronize", "current_device")


def _unlisted(module: Any) -> list[str]:
    """What the module has, and dir() does not list."""
    names = dir(module)
    return [name for name in _LISTED if hasattr(module, name) and name not in names]


#: What a module need not have; where it is there, it is what torch.cuda's is.
_IF_THERE: dict[str, Member] = {
    "device_of": (lambda m: m.device_of(torch.ones(1)), lambda v: hasattr(v, "__enter__")),
    "device_memory_used": (lambda m: m.device_memory_used(), is_index),
    "host_empty_cache": (lambda m: m.host_empty_cache(), none),
    "ipc_collect": (lambda m: m.ipc_collect(), none),
    "is_bf16_supported": (lambda m: m.is_bf16_supported(), lambda v: isinstance(v, bool)),
    "is_tf32_supported": (lambda m: m.is_tf32_supported(), lambda v: isinstance(v, bool)),
    "can_device_access_peer": (
        lambda m: m.can_device_access_peer(0, m.device_count() - 1),
        lambda v: isinstance(v, (bool, int)),
    ),
    "get_per_process_memory_fraction": (
        lambda m: m.get_per_process_memory_fraction(0),
        lambda v: 0 < v <= 1,
    ),
    "memory_snapshot": (lambda m: m.memory_snapshot(), lambda v: isinstance(v, list)),
    "memory_stats_as_nested_dict": (
        lambda m: m.memory_stats_as_nested_dict(),
        lambda v: "current" in v["allocated_bytes"]["all"],
    ),
    "host_memory_stats_as_nested_dict": (
        lambda m: m.host_memory_stats_as_nested_dict(),
        lambda v: isinstance(v, dict),
    ),
    "is_current_stream_capturing": (
        lambda m: m.is_current_stream_capturing(),
        lambda v: v is False,
    ),
    "__dir__": (_unlisted, lambda v: v == []),
}


@check("registration/if_there", "REG-050", cases=_IF_THERE, needs=("accelerator",))
def further_functions_are_those_of_cuda(dev: Device, case: str) -> None:
    """A function that the module has by the name of one of torch.cuda's returns what that does."""
    if not hasattr(dev.bare_module, case):
        dev.unsupported(f"torch.{dev.type} has no {case}")
    verify_member(dev, _IF_THERE, case)


@check("registration/if_there:memory_used", "REG-050", needs=("memory_stats",))
def used_memory_grows_with_use(dev: Device) -> None:
    """device_memory_used of a device grows with what is allocated there."""
    if not hasattr(dev.bare_module, "device_memory_used"):
        dev.unsupported(f"torch.{dev.type} has no device_memory_used")
    index, size = dev.count - 1, 64 << 20
    torch.accelerator.empty_cache()
    before = dev.bare_module.device_memory_used(index)
    x = torch.empty(size, dtype=torch.uint8, device=dev.device(index))
    grown = dev.bare_module.device_memory_used(index) - before
    assert size <= grown < 2 * size, f"by {grown} bytes for {x.nbytes}"


#: Older names of reset_peak_memory_stats, and the peak that programs read after each.
_PEAKS = {
    "reset_max_memory_allocated": "max_memory_allocated",
    "reset_max_memory_reserved": "max_memory_reserved",
}


@check("registration/if_there_peak", "REG-050", cases=_PEAKS, needs=("memory_stats", "empty_cache"))
def older_names_reset_peaks(dev: Device, case: str) -> None:
    """A peak that was reset by its older name does not count what was freed before."""
    if not hasattr(dev.bare_module, case):
        dev.unsupported(f"torch.{dev.type} has no {case}")
    peak, size = getattr(dev.bare_module, _PEAKS[case]), 64 << 20
    x = torch.empty(size, dtype=torch.uint8, device=dev.device(0))
    before = peak(0)
    del x
    torch.accelerator.empty_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that there is a newer name
        getattr(dev.bare_module, case)(0)
    after = peak(0)
    assert after <= before - size, f"the peak is {after} bytes; it was {before} with {size} in use"


@check("registration/if_there:repr", "REG-050", needs=("streams",))
def streams_are_shown_with_their_device(dev: Device) -> None:
    """The text of a stream of the device module names its device."""
    if not hasattr(dev.bare_module, "Stream"):
        dev.unsupported(f"torch.{dev.type} has no Stream")
    for index in {0, dev.count - 1}:
        stream = dev.bare_module.Stream(device=index)
        assert str(stream.device) in repr(stream), repr(stream)
