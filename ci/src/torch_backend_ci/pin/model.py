# SPDX-License-Identifier: BSD-3-Clause
"""A pin, and what of it may reach a command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from torch_backend_ci.errors import CiError

PYTHONS = ("3.11", "3.12", "3.13")  # a version is pinned once there is a wheel for each of them

NAME = re.compile(r"[a-z][a-z0-9-]{0,38}[a-z0-9]")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")
REASON_LIMIT = 1000


class Source(Enum):
    """How the successor of a pin's version is found."""

    PEOPLE = "people"  # somebody decides: `pin update NAME --to VERSION`
    RELEASE = "release"  # the newest release on the index
    NIGHTLY = "nightly"  # the newest development version on the index


class IndexKind(NamedTuple):
    """An index of packages. `url`: None is whatever pip is configured to use."""

    url: str | None
    local: str | None  # the local part of its versions: "cpu" of 2.15.0+cpu


INDEXES = {
    "pypi": IndexKind(None, None),
    "pytorch-cpu": IndexKind("https://download.pytorch.org/whl/cpu", "cpu"),
    "nightly-cpu": IndexKind("https://download.pytorch.org/whl/nightly/cpu", "cpu"),
}


@dataclass(frozen=True)
class Wheel:
    """A file of the index. `sha256` is None only if the index publishes none."""

    file: str
    sha256: str | None


@dataclass(frozen=True)
class Torch:
    """One exact torch: nothing else has this version, this commit and these files."""

    version: str  # canonical, with its local part if it has one
    git_version: str
    wheels: tuple[Wheel, ...]

    @property
    def public(self) -> Version:
        """The version without its local part: by this versions are compared."""
        return Version(Version(self.version).public)


@dataclass(frozen=True)
class Pin:
    """`torch` is None as long as nobody could look: `unresolved` then says why."""

    name: str
    torch: Torch | None
    unresolved: str | None
    index: str  # a key of INDEXES
    source: Source
    reason: str  # why this version, why such a pin: people's words


def version(text: object) -> Version:
    """A version in the one way to write it, which therefore needs no quotes anywhere."""
    if not isinstance(text, str) or len(text) > 60:
        raise CiError(f"a version is a short text (quote it), not {str(text)[:80]!r}")
    try:
        parsed = Version(text)
    except InvalidVersion as error:
        raise CiError(f"{text!r} is not a version") from error
    if str(parsed) != text or parsed.epoch:
        raise CiError(f"{text!r} is not how a version of torch is written ({parsed})")
    return parsed


def check_name(text: str) -> str:
    """The name of a pin: part of the names of a file, a branch and a configuration."""
    if not NAME.fullmatch(text):
        raise CiError(f"{text!r} cannot name a pin: small letters, digits and - only, up to 40")
    return text


def check_wheel(file: str, of: Version) -> str:
    """A wheel's file name, which must be of this version of torch."""
    try:
        project, found, _, _ = parse_wheel_filename(file)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise CiError(f"{file!r} does not name a wheel") from error
    if (project, found) != ("torch", of) or not re.fullmatch(r"[A-Za-z0-9_.+-]+", file):
        raise CiError(f"{file!r} is not a wheel of torch {of}")
    return file
