# SPDX-License-Identifier: BSD-3-Clause
"""Whose code raised an exception: that of the check, that of PyTorch, or that of the backend.

A failed comparison ends a check with `fail`, an exception of the backend with `error`. The type of
the exception does not tell them apart, because backends have assertions of their own. The traceback
does.
"""

from __future__ import annotations

import dis
import sysconfig
import unittest
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType

from torch_conformance import PACKAGE

# Operations with which Python code raises. Where an exception began at any other one, native code
# that was called there raised it.
_RAISING = frozenset(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE"))
# Libraries beside PyTorch with which the operator database computes references.
_REFERENCES = ("numpy", "scipy", "sympy", "mpmath")
_INSTALLED = ("site-packages", "dist-packages")


def is_verdict(error: AssertionError, chapter: str) -> bool:
    """Whether a failed comparison raised it: in the suite, beside the chapter, or in a library.

    `chapter` is the file of the check; modules that it shares code with are beside it.
    """
    steps = list(_in_files(error.__traceback__))
    if not steps:
        return True  # It was made by the suite, and left no code.
    file = _file(steps[-1])
    own = (PACKAGE, *_beside(chapter), *_comparing())
    return _raised_in_python(steps[-1]) and any(map(file.is_relative_to, own))


def left_backend(error: BaseException, chapter: str = "") -> bool:
    """Whether the exception passed through code of the backend.

    That is code which is neither the suite's nor PyTorch's nor Python's. A wrong call of the
    backend, and native code of it that raises, leave no such trace.
    """
    known = (PACKAGE, *_beside(chapter), _torch())
    files = map(_file, _in_files(error.__traceback__))
    return any(not any(map(file.is_relative_to, known)) and not _is_library(file) for file in files)


def _in_files(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The steps of a traceback, outermost first, without generated code."""
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).is_absolute():
            yield trace
        trace = trace.tb_next


def _file(step: TracebackType) -> Path:
    return Path(step.tb_frame.f_code.co_filename).resolve()


def _raised_in_python(step: TracebackType) -> bool:
    """Whether the innermost code raised, and not a native function that it had called."""
    # Generated code has no file, and raised if it is inside.
    return step.tb_next is not None or step.tb_frame.f_code.co_code[step.tb_lasti] in _RAISING


def _beside(chapter: str) -> tuple[Path, ...]:
    return (Path(chapter).resolve().parent,) if chapter else ()


@cache
def _torch() -> Path:
    import torch  # Here: the runner decides when torch is imported.

    return Path(torch.__file__).resolve().parent


@cache
def _comparing() -> tuple[Path, ...]:
    """Libraries whose assertions compare."""
    import numpy

    of_numpy = Path(numpy.__file__).resolve().parent / "testing"
    return (_torch() / "testing", of_numpy, Path(unittest.__file__).resolve().parent)


def _is_library(file: Path) -> bool:
    """Whether a file is Python's own, or of a library that computes references."""
    installed = next((i for i, part in enumerate(file.parts) if part in _INSTALLED), None)
    if installed is not None:
        return file.parts[installed + 1].partition(".")[0] in _REFERENCES
    return file.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())
