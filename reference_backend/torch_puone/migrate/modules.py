# SPDX-License-Identifier: BSD-3-Clause
"""`torch.cuda`, `torch.backends.cuda` and `torch.backends.cudnn` as a user sees them in a scope.

A proxy looks at who asks. PyTorch's own code gets the attributes of the real module, so that it
never takes another device for CUDA; so does everyone once the scope is closed, because a program
may keep the proxy.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from . import table
from .cuda_names import ADAPTERS, adapted
from .notices import NoEquivalent, Notices
from .stand_ins import stand_in
from .target import Target

#: The modules that have a proxy; others below them are out of reach of a user.
PROXIED = (
    "torch.cuda",
    "torch.cuda.amp",
    "torch.cuda.amp.autocast_mode",
    "torch.cuda.amp.grad_scaler",
    "torch.cuda.graphs",
    "torch.cuda.memory",
    "torch.cuda.nvtx",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.backends.cuda",
    "torch.backends.cudnn",
)


class Proxy(ModuleType):
    """One of these modules. Thread-safe."""

    def __init__(self, real: ModuleType, names: Names) -> None:
        special = {name: value for name, value in vars(real).items() if _is_special(name)}
        super().__init__(real.__name__, real.__doc__)
        vars(self).update(special, _real=real, _names=names)

    def __getattr__(self, name: str) -> Any:
        if _is_special(name) or not self._names.for_user():
            return getattr(self._real, name)
        return self._names.get(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not self._names.for_user():
            setattr(self._real, name, value)
        elif self._names.is_setting(f"{self.__name__}.{name}"):
            self._names.warn(f"{self.__name__}.{name}")
            setattr(self._real, name, value)
        else:
            vars(self)[name] = value  # what a program replaces there is its own, and ends with it

    def __delattr__(self, name: str) -> None:
        if name in vars(self):
            del vars(self)[name]
        else:
            delattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__getattr__", "__dir__")


class Names:
    """Finds what a name of these modules is on the target."""

    def __init__(self, target: Target, notices: Notices) -> None:
        self._target = target
        self._notices = notices
        self._proxies: dict[ModuleType, Proxy] = {}
        self._found: dict[str, tuple[str, Any]] = {}
        self.open = True

    def for_user(self) -> bool:
        """Whether the code that asks gets the target's names, not CUDA's."""
        return self.open and self._notices.from_user()

    def proxy(self, real: ModuleType) -> Proxy:
        """The one proxy of a module."""
        return self._proxies.setdefault(real, Proxy(real, self))

    def is_setting(self, name: str) -> bool:
        row = table.find(name)
        return (row is not None and row.setting) or name.startswith("torch.backends.")

    def warn(self, name: str) -> None:
        self._notices.use(name, table.advice(name))

    def get(self, real: ModuleType, name: str) -> Any:
        """What a user gets for `real.name`. AttributeError if the target has no such thing."""
        full = f"{real.__name__}.{name}"
        if full in PROXIED:
            return self.proxy(getattr(real, name))
        if self.is_setting(full):
            value = getattr(real, name)
            self.warn(full)
            return value
        advice, value = self._found.get(full) or self._find(real, name)
        if callable(value):
            self._found[full] = advice, value  # the same each time; values may change
        self._notices.use(full, advice)
        if value is _NOTHING:
            raise NoEquivalent(f"{full} {advice}", name=name, obj=real)
        return value

    def _find(self, real: ModuleType, name: str) -> tuple[str, Any]:
        full = f"{real.__name__}.{name}"
        short = table.canonical(full)
        row = table.find(full)
        adapter = ADAPTERS.get(short)
        if row is not None and adapter is not None and (value := adapter(self._target)) is not None:
            return row.advice, self._announced(full, row.advice, value)
        path = full.removeprefix("torch.cuda.")
        candidates = row.instead if row else (f"{table.MODULE}.{path}",)
        for expression in candidates:
            value = self._target.resolve(expression)
            if value is not None:
                advice = row.advice if row else f"write {expression}"
                return advice, self._announced(full, advice, value)
        getattr(real, name)  # AttributeError: CUDA has no such thing, either
        why = f": {row.note}" if row and row.note else ""
        return f"has no equivalent on {self._target.type}{why}", _NOTHING

    def _announced(self, name: str, advice: str, value: Any) -> Any:
        """A function that warns where it is called, too: it may have been imported by name."""
        ours = table.canonical(name) in ADAPTERS
        if isinstance(value, type):
            if not ours or issubclass(value, BaseException):
                return value  # `except` looks at the class itself
        elif not callable(value):
            return value
        function = value if ours else adapted(value, self._target)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.open:
                self._notices.use(name, advice)
            return function(*args, **kwargs)

        if isinstance(value, type):
            return stand_in(value, call, lambda instance: isinstance(instance, value))
        return functools.update_wrapper(call, value)


_NOTHING = object()
