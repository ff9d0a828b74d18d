# SPDX-License-Identifier: BSD-3-Clause
"""What a verb says: its progress, and what it was asked for, all of it or nothing."""

from __future__ import annotations

import os
import re
import secrets
import sys
from pathlib import Path

from torch_backend_ci.errors import CiError

# What a runner of GitHub Actions takes for a command, wherever a step prints it.
_COMMAND = re.compile(r"(?:\A|(?<=[\r\n]))(\s*):(?=:)|##(?=\[)")


def say(line: str) -> None:
    """Progress for people: on stderr."""
    print(inert(line), file=sys.stderr, flush=True)


def inert(text: str) -> str:
    """Neutralise workflow commands of GitHub Actions in a text."""
    return _COMMAND.sub(lambda found: found[0] + " ", text)


def printable(text: str) -> str:
    """The text if it fits on a line and can be encoded, else with its odd characters escaped."""
    return inert(text if text.isprintable() else ascii(text)[1:-1])


def show(text: str, path: Path | None) -> None:
    """Into the file that was asked for, else to the terminal."""
    if path is None:
        sys.stdout.write(text)
    else:
        write(path, text.encode())


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
