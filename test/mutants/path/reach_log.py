# SPDX-License-Identifier: BSD-3-Clause
"""What checks and tests reached, as lines of JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any

#: Environment variables: where a process writes what its checks reached, and the marks themselves.
LOG = "PUONE_MUTANTS_LOG"
MARKS = "PUONE_MUTANTS_REACHED"


def write(check: str, marks: Any, seconds: float = 0.0, fallbacks: Iterable[str] = ()) -> None:
    """Add a line: the check, its time, the mutants that it reached, and the operators that ran on
    the CPU. Clears the marks."""
    data = marks[:]
    reached = [mark.start() for mark in re.finditer(b"\1", data)]
    if reached:
        marks[:] = bytes(len(data))
    with open(os.environ[LOG], "a") as log:
        log.write(json.dumps([check, round(seconds, 4), reached, [*fallbacks]]) + "\n")
