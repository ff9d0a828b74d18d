# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that real backends make above their driver, to be caught by the suite's chapters.

A lie wraps the operators of the device under test: it sees each call and may change its arguments,
its result or what it did. A planted lie changes something else, once, before the checks run. Run as
a program, the checks named by every lie are run under it and the results printed as JSON:
{lie: {check: message or null}}; the lie `none` is the honest backend.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conformance import backend, descriptor
from conformance.check import REGISTRY, Check, matches
from conformance.device import Device, run_forked
from conformance.opinfo import TOPICS
from conformance.runner.execute import execute

BACKEND = "puone"
CHAPTERS = (
    "autograd",
    "autocast",
    "copy",
    "custom_operator",
    "factory",
    "func",
    "generator",
    "grad_scaler",
    "model",
    "module",
    "operator",
    "optimizer",
    "random",
    "serialization",
    "view",
)
TRUTH = "none"

Call = Callable[..., Any]


@dataclass(frozen=True)
class Lie:
    """A mistake: what it does to a call, and which requirements must notice, by which checks."""

    tell: Callable[..., Any]
    requirements: tuple[str, ...]
    checks: tuple[str, ...]
    planted: bool = False
    """Called once, without arguments, instead of for every operator."""

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return str(self.tell.__doc__)


LIES: dict[str, Lie] = {}


def lie(
    requirements: str, checks: str, *, planted: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a lie with the requirements, and the check patterns, that must catch it."""

    def register(tell: Callable[..., Any]) -> Callable[..., Any]:
        LIES[tell.__name__] = Lie(tell, tuple(requirements.split()), tuple(checks.split()), planted)
        return tell

    return register


class Telling(TorchDispatchMode):
    """While active, every operator that touches the device goes through one lie."""

    def __init__(self, told: Lie) -> None:
        super().__init__()
        self.told = told

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not on_device([args, kwargs]):
            return func(*args, **kwargs)
        return self.told.tell(func.name().removeprefix("aten::"), func, args, kwargs)


def on_device(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, torch.device)):
        return (value if isinstance(value, torch.device) else value.device).type == BACKEND
    if isinstance(value, dict):
        return any(on_device(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(on_device(item) for item in value)


# ---- running them ------------------------------------------------------------------------------


def selected(patterns: tuple[str, ...]) -> list[Check]:
    """The checks that the patterns name, each once."""
    exact = {pattern for pattern in patterns if not pattern.endswith("*")}
    families = tuple(pattern for pattern in patterns if pattern not in exact)
    return [c for c in REGISTRY if c.id in exact or any(matches(f, c.id) for f in families)]


def verdict(told: Lie | None, patterns: tuple[str, ...]) -> dict[str, str | None]:
    """Run the checks that match under a lie; per check what it complained about, or None."""
    declared = descriptor.find(BACKEND)
    device = backend.bring_up(declared)
    has = frozenset(name for name, value in declared.capabilities.items() if value)
    dev = Device(declared, device, has)
    found: dict[str, str | None] = {}
    if told is not None and told.planted:
        told.tell()
    for check in selected(patterns):
        if told is None or told.planted:
            result = execute(check, dev)
        else:
            with Telling(told):
                result = execute(check, dev)
        found[check.id] = None if result.outcome == "pass" else f"{result.message}"
    return found


def main(shard: int, shards: int) -> None:
    """Run a share of the lies, and of the truth about them, each in a process of its own."""
    importlib.import_module("torch._dynamo")  # as optimizers do: here once for all
    for chapter in CHAPTERS:
        importlib.import_module(f"conformance.checks.{chapter}")
    for topic in TOPICS:
        importlib.import_module(f"conformance.opinfo.{topic}").checks()
    told_here = {name: LIES[name] for name in sorted(LIES)[shard::shards]}
    patterns_here = tuple(pattern for told in told_here.values() for pattern in told.checks)
    trials: dict[str, tuple[Lie | None, tuple[str, ...]]] = {TRUTH: (None, patterns_here)}
    trials |= {name: (told, told.checks) for name, told in told_here.items()}
    verdicts = {}
    for name, (told, patterns) in trials.items():
        status, value = run_forked(lambda t=told, p=patterns: verdict(t, p), timeout=120)  # type: ignore[misc]
        verdicts[name] = value if status == 0 else {"status": f"{status}: {value}"}
    requirements = {check.id: check.requirements for check in REGISTRY}
    json.dump({"verdicts": verdicts, "requirements": requirements}, sys.stdout)


# More lies, for which there is no room here; they register themselves as these do.
import lies_about_autograd  # noqa: E402, F401
import lies_about_copies  # noqa: E402, F401
import lies_about_factories  # noqa: E402, F401
import lies_about_models  # noqa: E402, F401
import lies_about_modules  # noqa: E402, F401
import lies_about_operators  # noqa: E402, F401
import lies_about_opinfo  # noqa: E402, F401
import lies_about_optimizers  # noqa: E402, F401
import lies_about_precision  # noqa: E402, F401
import lies_about_random  # noqa: E402, F401
import lies_about_views  # noqa: E402, F401

if __name__ == "__main__":
    import lies  # The module in which they did, which is not this one.

    lies.main(int(sys.argv[1]), int(sys.argv[2]))
