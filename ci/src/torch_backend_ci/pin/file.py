# SPDX-License-Identifier: BSD-3-Clause
"""ci/pins/NAME.yaml <-> Pin.

A pull request can put anything there, so the reader trusts nothing. What the writer writes has one
form only: a pin that did not change is the same file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import yaml
from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci import document
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.document import Flag, Part, Sha, Sha256, one_of
from torch_backend_ci.errors import CiError
from torch_backend_ci.pin.model import (
    INDEXES,
    REASON_LIMIT,
    Pin,
    Source,
    Torch,
    Wheel,
    check_name,
    check_wheel,
    version,
)

IN_REPOSITORY = "ci/pins"
SIZE_LIMIT = 64 << 10

_HEAD = """\
# SPDX-License-Identifier: BSD-3-Clause
# Kept by `torch-backend-ci pin update` (docs/ci/pins.md), which writes this file anew: say in
# `reason` what is to be said.
"""

_Words = Annotated[str, Meta(min_length=1, max_length=REASON_LIMIT)]


class WheelFile(Part, frozen=True):
    """A file of the index."""

    file: Annotated[str, Meta(max_length=200)]
    sha256: Sha256 | UnsetType = UNSET
    unhashed: Annotated[Flag, Meta(description="The index publishes no hash of it.")] = UNSET

    def __post_init__(self) -> None:
        document.only_true(self)
        if (self.sha256 is UNSET) == (self.unhashed is UNSET):
            raise ValueError("either `sha256` or `unhashed: true`")


class PinFile(Part, kw_only=True, frozen=True):
    """A pin: one exact torch, or why there is none yet."""

    name: Annotated[str, Meta(max_length=40, description="That of the file.")]
    version: Annotated[str, Meta(max_length=60)] | UnsetType = UNSET
    git_version: (
        Annotated[Sha, Meta(description="The commit it was built from, as torch/version.py says.")]
        | UnsetType
    ) = UNSET
    wheels: Annotated[tuple[WheelFile, ...], Meta(min_length=1, max_length=50)] | UnsetType = UNSET
    unresolved: Annotated[_Words, Meta(description="Why there is no version yet.")] | UnsetType = (
        UNSET
    )
    index: Annotated[
        str,
        one_of(*INDEXES),
        Meta(description="The kind of index that its wheels come from."),
    ]
    source: Annotated[Source, Meta(description="How the successor of its version is found.")]
    reason: _Words

    def __post_init__(self) -> None:
        torch = (self.version, self.git_version, self.wheels)
        if UNSET in torch if self.unresolved is UNSET else any(one is not UNSET for one in torch):
            raise ValueError("either `version`, `git_version` and `wheels`, or `unresolved`")


def place(name: str) -> str:
    """Where a pin is kept, in the repository."""
    return f"{IN_REPOSITORY}/{check_name(name)}.yaml"


def read(name: str, root: Path = ROOT) -> Pin:
    """The pin of this name; CiError says what is wrong with it."""
    path = root / place(name)
    if not path.exists():
        there = ", ".join(names(root)) or "none"
        raise CiError(f"there is no pin {name!r}; there are: {there}")
    return _checked(name, document.read(path, PinFile, SIZE_LIMIT), str(path))


def read_all(wanted: Sequence[str] = (), root: Path = ROOT) -> list[Pin]:
    """The pins of these names, else all of them."""
    found = [read(name, root) for name in dict.fromkeys(wanted or names(root))]
    if not found:
        raise CiError(f"there is no pin in {root / IN_REPOSITORY}")
    return found


def names(root: Path = ROOT) -> list[str]:
    """The names of all pins, sorted."""
    return sorted(check_name(path.stem) for path in (root / IN_REPOSITORY).glob("*.yaml"))


def parse(name: str, data: bytes, where: str) -> Pin:
    """The pin that these bytes are; `where` is for messages."""
    return _checked(name, document.decode_yaml(data, PinFile, where, SIZE_LIMIT), where)


def as_file(pin: Pin) -> PinFile:
    """The pin as it is written down."""
    torch = pin.torch
    return PinFile(
        name=pin.name,
        version=torch.version if torch else UNSET,
        git_version=torch.git_version if torch else UNSET,
        wheels=tuple(map(_wheel_file, torch.wheels)) if torch else UNSET,
        unresolved=UNSET if pin.unresolved is None else pin.unresolved,
        index=pin.index,
        source=pin.source,
        reason=pin.reason,
    )


def render(pin: Pin) -> bytes:
    """The file of a pin."""
    fields = document.plain(as_file(pin))
    text = yaml.safe_dump(fields, sort_keys=False, width=98, allow_unicode=True)
    return (_HEAD + text).encode()


def _wheel_file(wheel: Wheel) -> WheelFile:
    if wheel.sha256 is None:
        return WheelFile(wheel.file, unhashed=True)
    return WheelFile(wheel.file, wheel.sha256)


def _checked(name: str, read: PinFile, where: str) -> Pin:
    """What the class cannot say: that the parts belong together."""
    try:
        return _pin(name, read)
    except CiError as error:
        raise CiError(f"{where}: {error}") from error


def _pin(name: str, read: PinFile) -> Pin:
    if read.name != name:
        raise CiError(f"the file of pin {name!r} calls itself {read.name!r}")
    check_reason(read.reason)
    unresolved = None if read.unresolved is UNSET else read.unresolved
    if unresolved is not None and not unresolved.isprintable():
        raise CiError("unresolved: one line of printable text")
    return Pin(name, _torch(read), unresolved, read.index, read.source, read.reason)


def check_reason(text: str) -> None:
    """CiError for words that cannot be a pin's reason."""
    if not text.isprintable() or not 0 < len(text) <= REASON_LIMIT:
        raise CiError(f"reason: one line of printable text of up to {REASON_LIMIT} characters")


def _torch(read: PinFile) -> Torch | None:
    if read.version is UNSET or read.git_version is UNSET or read.wheels is UNSET:
        return None
    exact = version(read.version)
    files = [check_wheel(wheel.file, exact) for wheel in read.wheels]
    if files != sorted(set(files)):
        raise CiError("wheels: each file once, sorted")
    wheels = tuple(Wheel(w.file, None if w.sha256 is UNSET else w.sha256) for w in read.wheels)
    return Torch(str(exact), read.git_version, wheels)
