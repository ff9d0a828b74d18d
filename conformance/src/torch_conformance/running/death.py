# SPDX-License-Identifier: BSD-3-Clause
"""Where a process was when it died or hung, from the stack that faulthandler wrote."""

from __future__ import annotations

import re
from pathlib import PurePath

_CURRENT = re.compile(r"^Current thread .*\n((?:  .*\n?)*)", re.MULTILINE)
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (\S+)')


def innermost_frame(output: str) -> str:
    """`` in function (directory/file.py:line)`` of the thread that received the signal, or nothing.

    A thread of the backend has no Python stack; then there is nothing to tell.
    """
    stacks = _CURRENT.findall(output)
    frame = _FRAME.match(stacks[-1]) if stacks else None
    if frame is None:
        return ""
    file, line, function = frame.groups()
    return f" in {function} ({'/'.join(PurePath(file).parts[-2:])}:{line})"
