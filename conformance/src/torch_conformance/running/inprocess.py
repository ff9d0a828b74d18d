# SPDX-License-Identifier: BSD-3-Clause
"""``--isolate=none``: checks run in the pytest process itself, for debuggers.

The backend is loaded here, a crash ends the run, and a hang is not ended by anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.running.execute import execute
from torch_conformance.running.identity import identity
from torch_conformance.running.loading import bring_up
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import Capabilities
from torch_conformance.spec.descriptor import Descriptor


class InProcess:
    """Has the interface of `Pool`, without its processes."""

    def __init__(self, descriptor: Descriptor, seed: int) -> None:
        self._dev = Device(descriptor, bring_up(descriptor), seed=seed)
        self.identity = identity(self._dev)

    def set_capabilities(self, capabilities: Capabilities) -> None:
        """The capabilities that all subsequent checks see."""
        self._dev.capabilities = capabilities.present
        self._dev.broken = capabilities.broken

    def run(self, checks: Iterable[Check], emit: Callable[[Result], None]) -> None:
        """Run the checks in their order."""
        for check in checks:
            emit(self.run_one(check)[0])

    def run_one(self, check: Check) -> tuple[Result, BaseException | None]:
        """The result of a check, and the exception that it ended with, if there is one."""
        errors: list[BaseException] = []
        result = execute(check, self._dev, errors.append)
        return result, next(iter(errors), None)

    def close(self) -> None:
        """Nothing is left behind."""
