# SPDX-License-Identifier: BSD-3-Clause
"""The entry of rank processes (authoring/ranks.py), which the worker starts as fresh interpreters.

Such a process is a rank, or a nursery: that forks a parent for each set of ranks, which forks a
rank each time that it is asked to. Neither loads the backend. A rank connects to the worker, says
whether it can use the device, and runs the programs that it receives.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from multiprocessing.connection import Client
from typing import Any, NoReturn

from torch_conformance.authoring import backend
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.ranks import receive, send, serve
from torch_conformance.spec import descriptor

_PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Be what the configuration says, and leave without the interpreter's shutdown."""
    config = json.loads(sys.argv[1])
    _die_with_parent()
    backend.prepare_parent()
    if config is None:
        _be_nursery()
    _be_rank(config)


def _be_nursery() -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how a parent ended.
    for line in sys.stdin.buffer:
        if os.fork() == 0:
            _die_with_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _be_parent(json.loads(line))
    os._exit(0)


def _be_parent(config: dict[str, Any]) -> NoReturn:
    connection = Client(config["address"])
    send(connection, "")
    while True:
        try:
            index = receive(connection)
        except (EOFError, OSError):
            os._exit(0)
        if os.fork() == 0:
            _die_with_parent()
            connection.close()
            _be_rank({**config, "index": index})


def _be_rank(config: dict[str, Any]) -> NoReturn:
    from torch_conformance.authoring.device import Device
    from torch_conformance.running import loading
    from torch_conformance.running.formatting import guard_assertions

    connection = Client(config["address"])
    try:
        guard_assertions()
        target = descriptor.decode(config["descriptor"])
        dev = Device(target, loading.bring_up(target), seed=config["seed"])
        backend.settle_after_fork()
    except BaseException as error:
        send(connection, f"{type(error).__name__}: {first_line(error)}")
        os._exit(1)
    send(connection, "")
    serve(dev, config["index"], connection)
    os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
