# SPDX-License-Identifier: BSD-3-Clause
"""What operators of strange backends do: odd exceptions, floods of text, processes left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device


class Silent(RuntimeError):
    """Cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Deadly(RuntimeError):
    """Ends whoever prints it."""

    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Base(BaseException):
    """Passes every `except Exception`."""


ERRORS = {
    "silent": Silent(),
    "deadly": Deadly(),
    "base": Base("lost its way"),
    "exit": SystemExit(0),
    "generator_exit": GeneratorExit("closing"),
    "unicode": RuntimeError("Gerät 3: 温度 too high \N{FIRE}"),
    "surrogate": RuntimeError("path \udcff\udc80 not found"),
    "controls": RuntimeError("\x1b[31mred\x1b[0m \x00 \x0b ]]> <failure>"),
    "empty": RuntimeError(),
    "long": RuntimeError("x" * 1_000_000),
    "bytes": RuntimeError(b"\xff\xfe"),
}


@check("foreign/raises", "FOREIGN-001", cases=tuple(ERRORS))
def an_operator_raises(dev: Device, case: str) -> NoReturn:
    """Raises something odd."""
    raise ERRORS[case]


LINE = '{"result": {"id": "foreign/floods:stdout", "outcome": "fail"}} \udcff\n'


@check("foreign/floods", "FOREIGN-001", cases=("stdout", "stderr"))
def an_operator_prints(dev: Device, case: str) -> None:
    """Prints 7 MB, a part of which looks like what workers send."""
    getattr(sys, case).write(LINE.encode(errors="replace").decode() * 100_000)


@check("foreign/floods:descriptor", "FOREIGN-001")
def an_operator_writes_to_a_descriptor(dev: Device) -> None:
    """Writes 7 MB to the descriptor of stdout."""
    os.write(1, LINE.encode(errors="surrogateescape") * 100_000)


@check("foreign/leaves:zombie", "FOREIGN-001")
def an_operator_leaves_a_zombie(dev: Device) -> None:
    """Leaves a process that has ended and that nobody waited for."""
    if os.fork() == 0:
        os._exit(0)


#: Whether a process that is left behind closes the files of its parent.
CLOSES = {"helper": True, "daemon": False}


@check("foreign/leaves", "FOREIGN-001", cases=CLOSES)
def an_operator_starts_a_process(dev: Device, case: str) -> None:
    """Leaves a helper, or a daemon that holds on to every open file."""
    code = "import time; time.sleep(30)"
    helper = subprocess.Popen([sys.executable, "-c", code], close_fds=CLOSES[case])
    with Path(os.environ["PLANTED_PID_FILE"]).open("a") as file:
        file.write(f"{helper.pid}\n")


@check("foreign/output_closed", "FOREIGN-001", isolate=True)
def an_operator_closes_the_output(dev: Device) -> NoReturn:
    """Closes stdout and fails."""
    sys.stdout.close()
    os.close(1)
    raise RuntimeError("after closing")


@check("foreign/last", "FOREIGN-001", cases=tuple(f"n{i}" for i in range(5)))
def what_comes_after_passes(dev: Device, case: str) -> None:
    """Is not affected."""
