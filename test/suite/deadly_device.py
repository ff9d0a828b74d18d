# SPDX-License-Identifier: BSD-3-Clause
"""A backend that comes up, and whose smallest computation ends the process: the CPU in disguise."""

from __future__ import annotations

import os
from typing import NoReturn

import torch


def set_up() -> str:
    """The device, with a `torch.ones` that nobody survives."""
    torch.ones = _die
    return "cpu"


def _die(*sizes: object, **options: object) -> NoReturn:
    os.abort()
