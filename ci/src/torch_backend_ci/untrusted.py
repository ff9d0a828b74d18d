# SPDX-License-Identifier: BSD-3-Clause
"""Files from runs of code that nobody has reviewed: only regular files are opened, links are not
followed, and nothing is read or unpacked beyond a limit.
"""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path

from torch_conformance.spec import strict


def read(path: Path, limit: int) -> bytes:
    """The content, unpacked if the name ends with .gz; `limit` is in bytes, before and after.

    Malformed says why not.
    """
    data = _packed(path, limit)
    return unpacked(data, limit) if path.name.endswith(".gz") else data


def spoken(text: str) -> str:
    """Escape a file name for a message of one line."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in whole)[:200]


def _packed(path: Path, limit: int) -> bytes:
    """Opened without waiting for the other end of a pipe, and looked at before it is read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise strict.Malformed("not a file")
            data = stream.read(limit + 1) if status.st_size <= limit else b""
            if status.st_size > limit or len(data) > limit:
                raise strict.Malformed(f"larger than {limit >> 20} MiB")
            return data
    except OSError as error:
        raise strict.Malformed(error.strerror or str(error)) from None


def unpacked(data: bytes, limit: int) -> bytes:
    """What gzip packed, whole and nothing else; Malformed says why not."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        content = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise strict.Malformed(f"not gzip: {error}") from None
    if len(content) > limit:
        raise strict.Malformed(f"larger than {limit >> 20} MiB when unpacked")
    if not unpacker.eof:
        raise strict.Malformed("cut off: the end of the gzip stream is missing")
    if unpacker.unused_data:
        raise strict.Malformed("something follows the end of the gzip stream")
    return content
