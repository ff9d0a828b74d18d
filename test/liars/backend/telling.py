# SPDX-License-Identifier: BSD-3-Clause
"""Set-up callables of lying descriptors: they tell PUONE_LIE of PUONE_LIE_MODULE, if any.

They run in every process of the suite that loads the backend, also in the fresh interpreters that
checks start.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from lies import BACKEND, LIES, Lie, Telling

__all__ = ["LIES", "import_all", "set_up", "set_up_operators"]


def import_all() -> None:
    """Import every lie."""
    for file in sorted(Path(__file__).parent.glob("lies_about_*.py")):
        importlib.import_module(file.stem)


def _told() -> Lie | None:
    id = os.environ.get("PUONE_LIE")
    if not id:
        return None
    importlib.import_module(os.environ["PUONE_LIE_MODULE"])
    return LIES[id]


def set_up() -> str:
    """Plant the lie."""
    told = _told()
    if told is not None:
        told.tell()
    return BACKEND


def set_up_operators() -> tuple[Telling, str]:
    """Let every operator of the main thread go through the lie, from now on."""
    told = _told()
    mode = Telling(told.tell if told is not None else _honestly)
    mode.__enter__()
    return mode, BACKEND


def _honestly(name: str, call: Any, args: Any, kwargs: Any) -> Any:
    return call(*args, **kwargs)
