# SPDX-License-Identifier: BSD-3-Clause
"""Which C++ names of torch shared libraries leave to the dynamic linker."""

from __future__ import annotations

from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.extract.elf import wanted
from torch_backend_ci.surface.extract.symbols import qualified_name

_SCOPES = {"c10", "c10d", "at", "torch"}


def names(folder: Path) -> set[str]:
    """The names below a directory; a file that is not a shared library has none."""
    found: set[str] = set()
    for path in sorted(folder.rglob("*.so*")):
        try:
            symbols = wanted(path)
        except CiError:
            continue
        found.update(name for name in map(_name, symbols) if name.partition("::")[0] in _SCOPES)
    return found


def _name(mangled: str) -> str:
    for table in ("_ZTV", "_ZTI", "_ZTS"):  # virtual functions, type, its name
        if mangled.startswith(table):
            mangled = "_Z" + mangled.removeprefix(table)
    return qualified_name(mangled)
