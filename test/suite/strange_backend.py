# SPDX-License-Identifier: BSD-3-Clause
"""Backends whose modules, devices or counters are strange: the CPU in disguise."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, NoReturn

import torch


class ReplacedStream:
    """In the place of torch.Stream."""


def replaces_streams() -> str:
    """A device whose start replaces torch.Stream and torch.Event for everybody."""
    torch.Stream = torch.Event = ReplacedStream  # type: ignore[assignment, misc]  # on purpose
    return "cpu"


def hangs_at_exit() -> str:
    """A device that lets no interpreter end: a thread that runs, and a function that waits."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    atexit.register(time.sleep, 600)
    return "cpu"


def closes_output() -> str:
    """A device whose start redirects the output to nowhere."""
    sys.stdout = sys.stderr = None
    return "cpu"


def not_a_device() -> object:
    """Something that names no device."""
    return object()


def ends_quietly() -> NoReturn:
    """A start that ends the process as if all were well."""
    os._exit(0)


def fallbacks() -> NoReturn:
    """A count of fallbacks that cannot be had."""
    raise SystemError("the counter is not mapped")


class Lazy:
    """A module all of whose attributes are there, whatever their name."""

    def __getattr__(self, name: str) -> Any:
        return Lazy()

    def __call__(self, *args: Any, **kwargs: Any) -> Lazy:
        return self
