# SPDX-License-Identifier: BSD-3-Clause
"""Where a process was when it died or hung, from the stack that faulthandler wrote."""

from __future__ import annotations

import re
from pathlib import PurePath

_CURRENT = re.compile(r"^Current thread .*\n((?:  .*\n?)*)", re.MULTILINE)
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (\S+)')
# The frames from here on call the check: they are the same for all checks.
_HARNESS = re.compile(
    r'  File ".*torch_conformance/(?:authoring/check|running/execute)\.py", line .*\n(?:  .*\n?)*'
)


def innermost_frame(output: str) -> str:
    """`` in function (directory/file.py:line)`` of the thread that received the signal, or nothing.

    A thread of the backend has no Python stack; then nothing is known.
    """
    stacks = _CURRENT.findall(output)
    frame = _FRAME.match(stacks[-1]) if stacks else None
    if frame is None:
        return ""
    file, line, function = frame.groups()
    return f" in {function} ({'/'.join(PurePath(file).parts[-2:])}:{line})"


def without_harness(output: str) -> str:
    """The output of a process without the frames of the suite that called the check."""
    return _HARNESS.sub("", output)
