# SPDX-License-Identifier: BSD-3-Clause
"""No library takes static TLS, of which a process has little for libraries that are loaded late."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from suites import LIBRARIES

PT_DYNAMIC, DT_FLAGS, DF_STATIC_TLS = 2, 30, 0x10


def dynamic(library: Path) -> Iterator[tuple[int, int]]:
    """(tag, value) of each entry of the dynamic section of a 64-bit ELF library."""
    image = library.read_bytes()
    (headers,) = struct.unpack_from("=Q", image, 0x20)
    size, count = struct.unpack_from("=HH", image, 0x36)
    for header in range(headers, headers + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("=IIQQQQ", image, header)
        if kind == PT_DYNAMIC:
            yield from struct.iter_unpack("=QQ", image[offset : offset + length])


def test_no_library_takes_static_tls() -> None:
    libraries = sorted(LIBRARIES.glob("*.so"))
    assert libraries, LIBRARIES
    taking = [
        library.name
        for library in libraries
        if any(tag == DT_FLAGS and flags & DF_STATIC_TLS for tag, flags in dynamic(library))
    ]
    assert not taking
