# SPDX-License-Identifier: BSD-3-Clause
"""The symbols that a shared library (ELF, 64 bit, little endian) exports."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from torch_backend_ci.errors import CiError

_DYNSYM = 11  # section type
_GLOBAL, _HIDDEN = 1, (1, 2)  # binding, visibilities
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def exported(path: Path) -> list[str]:
    """The mangled names of what the library defines for others.

    Weak symbols are left out: they come from inline functions, of which a user has copies.
    """
    return sorted({name for name, place in _read(path) if place})


def wanted(path: Path) -> list[str]:
    """The mangled names that the library uses and another one has to define."""
    return sorted({name for name, place in _read(path) if not place})


def _read(path: Path) -> list[tuple[str, int]]:
    """The global symbols, each with the number of its section, 0 for one that is not there."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _symbols(data)
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise CiError(f"{path} is not a readable shared library: {error}") from error


def _symbols(data: mmap.mmap) -> list[tuple[str, int]]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, offset + size * index) for index in range(count)]
    table = next((section for section in sections if section[1] == _DYNSYM), None)
    if table is None:
        raise ValueError("it has no dynamic symbols")
    strings = sections[table[6]]
    texts = data[strings[4] : strings[4] + strings[5]]
    return [
        (texts[name : texts.index(b"\0", name)].decode(), section)
        for name, info, other, section, _, _ in _SYMBOL.iter_unpack(
            data[table[4] : table[4] + table[5]]
        )
        if info >> 4 == _GLOBAL and other & 3 not in _HIDDEN
    ]
