# SPDX-License-Identifier: BSD-3-Clause
"""What the marker `puone` of a test says, and the environment that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import pytest

MARKER = "puone"
#: A test that uses one of them counts as marked.
FIXTURES = frozenset({"puone_device", "puone_faults", "puone_fallbacks"})
#: The fixture by which a test is parametrised with the seed of its schedule.
SCHEDULE = "_puone_schedule"

Fallback = Literal["allow", "forbid"]


@dataclass(frozen=True)
class Settings:
    """The keywords of `@pytest.mark.puone(...)`.

    Attributes:
        schedules: how many adversarial schedules the test runs under, besides the ordinary one.
        sanitize: whether what the stream sanitizer finds fails the test.
        fallback: "forbid" fails the test if an operator ran on the CPU instead of the device.
        devices: how many devices there are, 1 to 64.
        memory: of each device, in bytes or with the suffix K, M, G or T.
        poison: whether new memory is filled with ones (NaN, -1) instead of zeros.
        latency_us: how long each copy, fill and kernel lasts at least, in microseconds.
        timeout: after how many seconds the test's process is killed; 0 is never.
    """

    schedules: int = 0
    sanitize: bool = True
    fallback: Fallback = "allow"
    devices: int = 2
    memory: str | int = "4G"
    poison: bool = False
    latency_us: int = 0
    timeout: float = 300

    def __post_init__(self) -> None:
        """Raise ValueError for a value that has no meaning. The driver checks `memory`."""
        if self.fallback not in get_args(Fallback):
            choices = " or ".join(map(repr, get_args(Fallback)))
            raise ValueError(f"fallback must be {choices}, not {self.fallback!r}")
        if self.devices not in range(1, 65):
            raise ValueError(f"devices must be a whole number from 1 to 64, not {self.devices!r}")
        for name in ("schedules", "latency_us", "timeout"):
            value = getattr(self, name)
            whole = isinstance(value, int) or name == "timeout"
            if not whole or not isinstance(value, int | float) or value < 0:
                raise ValueError(f"{name} must be a number of 0 or more, not {value!r}")

    @classmethod
    def signature(cls) -> str:
        """The keywords with their defaults."""
        return ", ".join(f"{field.name}={field.default!r}" for field in fields(cls))

    def environment(self, seed: int | None) -> dict[str, str | None]:
        """The variables of the test's process; None removes one. A seed: of its schedule."""
        return {
            "PUONE_DRIVER": "sim",
            "PUONE_STACKS": "1",  # an error that arrives late says where it comes from
            "PUONE_SANITIZE": "collect" if self.sanitize else None,
            "PUONE_SIM_DEVICES": str(self.devices),
            "PUONE_SIM_MEMORY": str(self.memory),
            "PUONE_SIM_POISON": str(int(self.poison)),
            "PUONE_SIM_LATENCY_US": str(self.latency_us),
            "PUONE_SIM_SEED": None if seed is None else str(seed),
        }


def settings_of(item: pytest.Item) -> Settings | None:
    """The settings of a test, None if it is not one of this plugin.

    A marker of a module or class holds for its tests; their own keywords take precedence. Raises
    pytest.UsageError for a marker that has no meaning.
    """
    marks = list(item.iter_markers(MARKER))
    if not marks and FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return None
    keywords: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker {MARKER} takes keywords only")
        keywords |= mark.kwargs
    if (schedules := item.config.getoption("puone_schedules")) is not None:
        keywords["schedules"] = schedules
    return _settings(item.nodeid, keywords)


def _settings(nodeid: str, keywords: Mapping[str, Any]) -> Settings:
    known = [field.name for field in fields(Settings)]
    if unknown := sorted(set(keywords) - set(known)):
        raise pytest.UsageError(
            f"{nodeid}: the marker {MARKER} has no keyword {unknown[0]}; it has {', '.join(known)}"
        )
    try:
        return Settings(**keywords)
    except ValueError as error:
        raise pytest.UsageError(f"{nodeid}: the marker {MARKER}: {error}") from None
