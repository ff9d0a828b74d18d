# SPDX-License-Identifier: BSD-3-Clause
"""What a crash was, from a second run that prints its native stack.

The second run has PyTorch's own handler of fatal signals (c10::FatalSignalHandler) before that of
faulthandler. The first run does not: the handler allocates memory, which may hang in a process with
a damaged heap. Where this torch has no such handler, there is no diagnosis.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath

# Seconds for the second run, and how many causes of one run are diagnosed.
DEADLINE, LIMIT = 20.0, 24
# Innermost frames that are shown, and returns to one place that mean recursion without an end.
SHOWN, RECURSION = 16, 3
# Bytes of the stack on which handlers run: that of faulthandler is too small to unwind on.
SIGNAL_STACK = 1 << 20

#: What to do with a crash, beside what is known about it.
GUIDE = (
    "to debug: add --isolate=none to the command below and run it under gdb, for example\n"
    "  gdb -ex run -ex backtrace --args python -m COMMAND\n"
    "about gdb, core files and stack overflows: python -m torch_conformance help debugging-a-crash"
)

_THREAD = re.compile(r"^SIG\w+\(\d+\), PID: \d+, Thread \d+: *\n((?:.+\n?)*)", re.MULTILINE)
_HANDLER = "c10::FatalSignalHandler::fatalSignalHandler(int"
_FRAME = re.compile(r"frame #\d+: (.+) \+ (0x[0-9a-f]+) \(0x[0-9a-f]+ in (.+)\)$", re.MULTILINE)
_OPERATOR = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)\(")
_OUTERMOST = ("_start", "__libc_start_main", "clone")
# Some builds of Python return to one place for each call of a Python function. That has an end:
# RecursionError comes before the stack is full.
_INTERPRETER = re.compile(r"(?:lib)?python[\d.]*(?:\.so[\d.]*)?")
_kept_alive: list[object] = []


@dataclass(frozen=True)
class Diagnosis:
    """What the native stack of a crash says."""

    operator: str | None
    """The operator that was dispatched last."""
    overflow: bool
    """Whether the stack ran out in a recursion without an end."""
    frames: tuple[str, ...]
    """The native stack, innermost frame first."""

    def of(self, signal: str) -> str:
        """The cause of a crash that ended with a signal."""
        overflow = " (stack overflow: endless recursion)" if self.overflow else ""
        operator = f" in {self.operator}" if self.operator else ""
        return f"{signal}{overflow}{operator}"

    def section(self) -> str:
        """The native stack, as it is added to the detail of a crash."""
        more = ["  ..."] if len(self.frames) > SHOWN else []
        lines = [*(f"  {frame}" for frame in self.frames[:SHOWN]), *more]
        return "\n".join(["\nnative stack of a second run, innermost frame first:", *lines])


def install() -> None:
    """Let this process print native stacks when it crashes, where its torch can."""
    import torch

    print_stacks = getattr(torch._C, "_set_print_stack_traces_on_fatal_signal", None)
    if print_stacks is not None:
        _enlarge_signal_stack()
        print_stacks(True)


class _Stack(ctypes.Structure):
    """The C library's stack_t."""

    _fields_ = (("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def _enlarge_signal_stack() -> None:
    memory = mmap.mmap(-1, SIGNAL_STACK)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _kept_alive.append(memory)
    ctypes.CDLL(None).sigaltstack(ctypes.byref(_Stack(address, 0, SIGNAL_STACK)), None)


def read(output: str) -> Diagnosis | None:
    """The diagnosis in what a process has written, or None if it did not crash once more."""
    block = next((text for text in _THREAD.findall(output) if _HANDLER in text), None)
    if block is None:
        return None
    frames = _FRAME.findall(block)
    begin = next(i for i, (symbol, _, _) in enumerate(frames) if symbol.startswith(_HANDLER[:-4]))
    # Between the handler and the frame that crashed is the C library's return from a signal.
    stack = frames[begin + 2 :]
    found = (_OPERATOR.match(symbol) for symbol, _, _ in stack)
    name = next((match[1] for match in found if match), None)
    return Diagnosis(
        _full_name(name) if name else None,
        _is_endless(stack),
        tuple(f"{symbol} + {offset} in {PurePath(file).name}" for symbol, offset, file in stack),
    )


def _is_endless(stack: list[tuple[str, str, str]]) -> bool:
    """Whether the stack returns to one place again and again, and its beginning is out of sight."""
    if not stack or stack[-1][0].startswith(_OUTERMOST):
        return False
    own = [frame for frame in stack if not _INTERPRETER.fullmatch(PurePath(frame[2]).name)]
    return max(Counter(own).values(), default=0) >= RECURSION


def _full_name(name: str) -> str:
    """``aten::add_.Tensor`` for ``add__Tensor``, the C++ class of an operator."""
    return _names().get(name, f"aten::{name}")


@functools.cache
def _names() -> dict[str, str]:
    import torch

    return {
        full.partition("::")[2].replace(".", "_"): full
        for full in sorted(torch._C._dispatch_get_all_op_names(), reverse=True)
        if full.startswith("aten::")
    }
