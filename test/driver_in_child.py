# SPDX-License-Identifier: BSD-3-Clause
"""A driver in a forked process, whatever this one has used."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hal_conformance.driver import Driver
from hal_conformance.process import Ending, run_in_child


def with_driver(
    library: Path,
    environment: Mapping[str, str],
    work: Callable[[Driver], object],
    seconds: float = 120,
) -> Ending:
    """How `work`, which is given the driver, ended in a process of its own. The payload is what it
    returns, as text.
    """

    def run() -> bytes:
        os.environ.update(environment)
        with tempfile.TemporaryDirectory() as folder:
            if wrapped := environment.get("PUONE_LIAR_TARGET"):
                os.environ["PUONE_LIAR_TARGET"] = shutil.copy(wrapped, folder)
            hal = unused_driver(library)
        return str(work(hal)).encode()

    return run_in_child(run, seconds)


def unused_driver(library: Path) -> Driver:
    """The driver of a copy of the library: this process may be a fork of one that has used the
    library, and a driver in use does not survive a fork."""
    with tempfile.TemporaryDirectory() as folder:
        return Driver(shutil.copy(library, folder))
