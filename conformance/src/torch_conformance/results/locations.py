# SPDX-License-Identifier: BSD-3-Clause
"""Where files lie is left out of what leaves the machine."""

from __future__ import annotations

import re
from typing import Any

# The directories of an absolute path, not those of an address or of a relative path.
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^/\\\s'\":;,]+[/\\])+")


def without_folders(value: Any) -> Any:
    """Plain values with file names in the place of absolute paths, wherever these are in a text.

    Reports are published: where a file lies is of interest on that machine only, and the driver of
    another checkout is the same driver.
    """
    if isinstance(value, str):
        return _FOLDERS.sub("", value)
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    return value
