# SPDX-License-Identifier: BSD-3-Clause
"""The entry of rank processes (authoring/ranks.py), which the worker starts as fresh interpreters.

A nursery loads the backend and forks a rank each time that it is asked to; a rank connects to the
worker, says whether it can use the device, and runs the programs that it receives.
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
from torch_conformance.spec.descriptor import Descriptor

_PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Be what the configuration says, and leave without the interpreter's shutdown."""
    config = json.loads(sys.argv[1])
    _die_with_parent()
    target = descriptor.decode(config["descriptor"])
    backend.prepare_parent()
    if config["role"] == "nursery":
        _be_nursery(target, config)
    _be_rank(target, config, config["index"])


def _be_nursery(target: Descriptor, config: dict[str, Any]) -> NoReturn:
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
            _be_rank(target, config, index)


def _be_rank(target: Descriptor, config: dict[str, Any], index: int) -> NoReturn:
    from torch_conformance.authoring.device import Device
    from torch_conformance.running import loading
    from torch_conformance.running.formatting import guard_assertions

    connection = Client(config["address"])
    try:
        guard_assertions()
        dev = Device(
            target, loading.bring_up(target), frozenset(config["capabilities"]), config["seed"]
        )
        backend.settle_after_fork()
    except BaseException as error:
        send(connection, f"{type(error).__name__}: {first_line(error)}")
        os._exit(1)
    send(connection, "")
    serve(dev, index, connection)
    os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
