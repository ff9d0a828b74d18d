# SPDX-License-Identifier: BSD-3-Clause
"""Writing what a verb was asked for: all of it or nothing."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ci.errors import CiError


def write(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one, never a part; CiError if it cannot be written.

    A link stays one, the umask holds, and a device or pipe (/dev/null, /dev/stdout) is written to:
    replacing it would take it away from everybody.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise CiError(f"cannot write {path}: {error.strerror or error}") from error


def _replace(target: Path, data: bytes) -> None:
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        part.write_bytes(data)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
