# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's databases of operators, modules and optimizers, imported without the compiler.

Upstream's test helpers import torch._inductor for one list of names, and with it dynamo and sympy:
half of the time a run of the suite needs until its first check. The list is lent to them here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from torch_conformance.opinfo import policy

_PACKAGE, _MODULE = "torch._inductor", "torch._inductor.utils"
_OPERATORS = "common_methods_invocations"
_FOREACH = ("unary", "binary", "pointwise", "reduce", "other")
_GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def operators() -> list[Any]:
    """The OpInfo of every operator that the suite is about."""
    return [op for op in _database(_OPERATORS, "op_db") if policy.applies(op)]


def foreach() -> list[Any]:
    """The OpInfo of every function of lists of tensors."""
    return [op for kind in _FOREACH for op in _database(_OPERATORS, f"foreach_{kind}_op_db")]


def modules() -> list[Any]:
    """Every ModuleInfo."""
    return _database("common_modules", "module_db")


def optimizers() -> list[Any]:
    """Every OptimizerInfo."""
    return _database("common_optimizers", "optim_db")


def _database(module: str, name: str) -> list[Any]:
    import torch  # it has to be complete before a part of it is replaced

    with _no_gpu():
        return _imported(torch.__version__, module, name)


def _imported(version: str, module: str, name: str) -> list[Any]:
    def found() -> list[Any]:
        database: Any = import_module(f"torch.testing._internal.{module}")
        if module == _OPERATORS:
            database.wrapper_set_seed = _seeded
        entries: list[Any] = getattr(database, name)
        return entries

    # Before 2.13 the import wants more of it, and cannot be tried a second time.
    if _PACKAGE not in sys.modules and version >= "2.13":
        try:
            with _lent():
                return found()
        except ImportError:
            pass  # This torch wants more of it: let it have the real one.
    return found()


def _seeded(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As upstream's wrapper_set_seed, which calls the operator of random entries with a fixed seed.

    That one keeps the state of the device, too. Nothing here needs it, and for want of
    torch.<type>.get_rng_state all these operators would fail. Nor torch.manual_seed: for each type
    of device that torch knows, present or not, it writes down the stack, which took a fifth of the
    time of these checks.
    """
    import torch

    state = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(42)
        _seed_accelerator(42)
        return op(*args, **kwargs)
    finally:
        torch.set_rng_state(state)


def _seed_accelerator(seed: int) -> None:
    import torch

    accelerator = torch.accelerator.current_accelerator()
    module = getattr(torch, accelerator.type, None) if accelerator else None
    seed_all = getattr(module, "manual_seed_all", None)
    if seed_all is not None:
        seed_all(seed)


@contextmanager
def _no_gpu() -> Iterator[None]:
    """For the duration of the import, which would start CUDA: no fork of this process could use it.

    With PYTORCH_NVML_BASED_CUDA_CHECK (see prepare_parent), torch does not start CUDA to count.
    """
    name = "CUDA_VISIBLE_DEVICES"
    before = os.environ.get(name)
    os.environ[name] = ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _lent() -> Iterator[None]:
    """For the duration of the import, stand-ins that have nothing but the list."""
    package, module = ModuleType(_PACKAGE), ModuleType(_MODULE)
    module.GPU_TYPES = _GPU_TYPES  # type: ignore[attr-defined]  # added here
    sys.modules |= {_PACKAGE: package, _MODULE: module}
    try:
        yield
    finally:
        for name, stand_in in ((_PACKAGE, package), (_MODULE, module)):
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
