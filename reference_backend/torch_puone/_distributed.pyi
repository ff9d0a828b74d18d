# SPDX-License-Identifier: BSD-3-Clause
"""Types of the extension module that the first process group loads."""

from datetime import timedelta

import torch
import torch._C._distributed_c10d as c10d

class Options(c10d.Backend.Options):
    # `transport`: "native", "staged", or "" for native where all ranks can and PUONE_PCCL does not
    # say. Anything else raises ValueError.
    def __init__(self, timeout: timedelta, transport: str = "") -> None: ...
    @property
    def transport(self) -> str: ...

class ProcessGroup(c10d.Backend):
    # `host` exchanges host memory between the same ranks. Waits for all of them, and raises
    # NotImplementedError if a transport was asked for that some rank does not have.
    def __init__(self, host: c10d.Backend, rank: int, size: int, options: Options) -> None: ...
    @property
    def options(self) -> Options: ...
    def pending(self) -> list[str]:
        """The calls that have not ended, oldest first."""
    @property
    def transport(self) -> str:
        """How tensors travel: "native" or "staged"."""
    @property
    def why_staged(self) -> str:
        """Why the transport is not native; "" if it is."""
    def perform_nocolor_split(self, device: torch.device) -> None:
        """What new_group() of 2.13 calls in ranks that do not join; they have nothing to do."""

def abort_all(grace: timedelta) -> bool:
    """Wait this long for what was called in any group, then let streams go on.

    Returns whether no transport uses the driver's memory any more.
    """
