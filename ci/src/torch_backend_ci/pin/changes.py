# SPDX-License-Identifier: BSD-3-Clause
"""The files of the repository that a pin is written into."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.pin import file, mirrored
from torch_backend_ci.pin.model import Pin

Read = Callable[[str], bytes]  # a file of the repository; CiError if it is not there


def changes(pin: Pin, read: Read) -> dict[str, bytes]:
    """The files that do not yet say what the pin says, by their place, as they should be."""
    place = file.place(pin.name)
    wanted = {place: file.render(pin)}
    before = {place: read(place)}
    if repeats := mirrored.FILES.get(pin.name):
        before[repeats] = read(repeats)
        wanted[repeats] = mirrored.with_version(before[repeats], pin, repeats)
    return {place: data for place, data in wanted.items() if data != before[place]}


def reader(root: Path) -> Read:
    """Reads files of a checkout."""

    def read(place: str) -> bytes:
        try:
            return (root / place).read_bytes()
        except OSError as error:
            raise CiError(f"cannot read {root / place}: {error.strerror}") from error

    return read


def diff(changed: Mapping[str, bytes], read: Read) -> str:
    """What changes, for people and for `git apply`."""
    return "".join(_diff(place, read(place), data) for place, data in sorted(changed.items()))


def _diff(place: str, before: bytes, after: bytes) -> str:
    old, new = (data.decode(errors="replace").splitlines(keepends=True) for data in (before, after))
    return "".join(difflib.unified_diff(old, new, f"a/{place}", f"b/{place}"))
