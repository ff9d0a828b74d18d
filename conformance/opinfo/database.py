# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's operator database, imported without the compiler.

Upstream's test helpers import torch._inductor for one list of names, and with it dynamo and sympy:
half of the time a run of the suite needs until its first check. The list is lent to them here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGE, _MODULE = "torch._inductor", "torch._inductor.utils"
_GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def load() -> list[Any]:
    """Every OpInfo."""
    import torch  # noqa: F401 - it has to be complete before a part of it is replaced

    if _PACKAGE not in sys.modules:
        try:
            with _lent():
                from torch.testing._internal.common_methods_invocations import op_db
            return op_db
        except ImportError:
            pass  # This torch wants more of it: let it have the real one.
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


@contextmanager
def _lent() -> Iterator[None]:
    """For the duration of the import, stand-ins that have nothing but the list."""
    package, module = ModuleType(_PACKAGE), ModuleType(_MODULE)
    module.GPU_TYPES = _GPU_TYPES  # type: ignore[attr-defined]
    sys.modules |= {_PACKAGE: package, _MODULE: module}
    try:
        yield
    finally:
        for name, stand_in in ((_PACKAGE, package), (_MODULE, module)):
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
