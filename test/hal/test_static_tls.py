# SPDX-License-Identifier: BSD-3-Clause
"""No library takes static TLS, of which a process has little for libraries that are loaded late."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from interpreter import Python
from suites import LIBRARIES

BARE = LIBRARIES / "libpuone_sim_bare.so"  # sim without kernels: small enough to copy often
PT_DYNAMIC, DT_FLAGS, DF_STATIC_TLS = 2, 30, 0x10
LOAD_ALL = """
import ctypes, pathlib
for copy in sorted(pathlib.Path({folder!r}).glob("*.so")):
    ctypes.CDLL(str(copy))
print("loaded")
"""


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
    assert BARE in libraries
    taking = [
        library.name
        for library in libraries
        if any(tag == DT_FLAGS and flags & DF_STATIC_TLS for tag, flags in dynamic(library))
    ]
    assert not taking


def test_many_copies_of_a_driver_load_into_one_process(python: Python, tmp_path: Path) -> None:
    for number in range(64):
        shutil.copy(BARE, tmp_path / f"libpuone_sim_{number}.so")
    done = python(LOAD_ALL.format(folder=str(tmp_path)))
    assert done.stdout == "loaded\n", done.stderr
