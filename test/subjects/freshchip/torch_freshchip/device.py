# SPDX-License-Identifier: BSD-3-Clause
"""The device: its name, what ``torch.freshchip`` has, and what PyTorch asks the backend."""

from __future__ import annotations

from torch.utils import backend_registration

TYPE = "freshchip"


class Module:
    """``torch.freshchip``."""

    @staticmethod
    def is_available() -> bool:
        """Whether there is a device."""
        return True

    @staticmethod
    def device_count() -> int:
        """One: PyTorch's guard for backends in Python knows of no other."""
        return 1

    @staticmethod
    def current_device() -> int:
        """The index of the current device."""
        return 0

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """Nothing on this device is random."""


def register() -> None:
    """Rename PrivateUse1 and give it module, hooks and guard."""
    backend_registration._setup_privateuseone_for_python_backend(TYPE, Module)
