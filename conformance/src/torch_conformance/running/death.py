# SPDX-License-Identifier: BSD-3-Clause
"""Where a process was when it died or hung, from the stack that faulthandler wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

_CURRENT = re.compile(r"^Current thread .*\n((?:  .*\n?)*)", re.MULTILINE)
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (\S+)')
# The frames from here on call the check: they are the same for all checks.
_HARNESS = re.compile(
    r'  File ".*torch_conformance/(?:authoring/check|running/execute)\.py", line .*\n(?:  .*\n?)*'
)


@dataclass(frozen=True)
class Death:
    """How and where a worker ended."""

    how: str
    """The signal, the exit status or the limit, in words."""
    by_signal: bool
    """Whether a signal ended it that was not the runner's, which may tell where."""
    sample: int | None
    """Of the check, if that is one of many samples."""
    frame: str | None
    """The innermost one of Python."""

    @property
    def cause(self) -> tuple[str, str | None]:
        """What deaths of one cause have in common: it is the same in all samples of a check."""
        return self.how, self.frame

    @property
    def where(self) -> str:
        """``sample N in FRAME``, as far as that is known."""
        sample = f"sample {self.sample}" if self.sample is not None else None
        return " in ".join(filter(None, (sample, self.frame)))

    def __str__(self) -> str:
        return f"{self.how} in {self.where}" if self.where else self.how

    def diagnosed(self, cause: str) -> str:
        """The text with another cause than the plain signal."""
        return f"{cause}\nin {self.where}" if self.where else cause


def innermost_frame(output: str) -> str | None:
    """``function (directory/file.py:line)`` of the thread that received the signal.

    A thread of the backend has no Python stack; then nothing is known.
    """
    stacks = _CURRENT.findall(output)
    frame = _FRAME.match(stacks[-1]) if stacks else None
    if frame is None:
        return None
    file, line, function = frame.groups()
    return f"{function} ({'/'.join(PurePath(file).parts[-2:])}:{line})"


def without_harness(output: str) -> str:
    """The output of a process without the frames of the suite that called the check."""
    return _HARNESS.sub("", output)
