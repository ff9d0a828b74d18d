# SPDX-License-Identifier: BSD-3-Clause
"""The two that are compared: our backend, and its peer where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

OURS, PEER = "puone", "cuda"


@dataclass(frozen=True)
class Side:
    """A device type with its module, never the current accelerator: both live in this process."""

    name: str
    module: Any

    @property
    def device(self) -> torch.device:
        """The first device."""
        return torch.device(self.name, 0)

    def event(self) -> Any:
        """A new event that can tell the time."""
        return self.module.Event(enable_timing=True)

    def synchronize(self) -> None:
        """Wait for all of the device's work."""
        self.module.synchronize()

    def release(self) -> None:
        """Give cached memory back to the card, which the other side shares."""
        self.synchronize()
        self.module.empty_cache()


def sides() -> Iterator[Side]:
    """Ours first; the peer only if this torch has it and sees a card."""
    import torch_puone

    yield Side(OURS, torch_puone)
    if torch.cuda.is_available():
        yield Side(PEER, torch.cuda)
