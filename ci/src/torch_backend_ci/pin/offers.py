# SPDX-License-Identifier: BSD-3-Clause
"""What an index offers: versions of torch, their wheels with hashes, the commit of each."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from packaging.version import Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import printable, say
from torch_backend_ci.pin.model import (
    COMMIT,
    INDEXES,
    PYTHONS,
    SHA256,
    Torch,
    Wheel,
    check_wheel,
    version,
)
from torch_backend_ci.torch_tree import index, read, remote, wheel
from torch_backend_ci.torch_tree.index import Candidate, Index

VERSION_PY = "torch/version.py"
_REASON_LIMIT = 300  # characters of somebody else's text


@dataclass
class Offer:
    """One version on the index."""

    version: str
    hashes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by file
    pythons: set[str] = field(default_factory=set)
    yanked: str | None = None  # why, if one of its wheels was withdrawn
    candidate: Candidate | None = None  # one of them

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """The files with their hashes; CiError if two mirrors differ about one."""
        return tuple(Wheel(file, self._hash(file)) for file in sorted(self.hashes))

    def _hash(self, file: str) -> str | None:
        published = self.hashes[file]
        if len(published) > 1:
            raise CiError(f"{file} has several hashes, {' and '.join(sorted(published))}: refused")
        return next(iter(published), None)


Offers = Mapping[Version, Offer]  # complete or not, withdrawn or not
CommitOf = Callable[[Offer], str]  # reads torch/version.py of one of the wheels


@dataclass(frozen=True)
class Shop:
    """An index that answered."""

    offers: Offers
    unread: str  # of several indexes those that did not answer; empty for none
    pip: Index

    def torch(self, offer: Offer) -> Torch:
        """All that a pin says of a version."""
        wheels = offer.wheels
        return Torch(offer.version, self.commit(offer), wheels)

    def commit(self, offer: Offer) -> str:
        """The upstream commit that the wheels were built from, as one of them says."""
        assert offer.candidate is not None
        module = _version_py(offer.candidate, self.pip)
        return _commit(read.constants(module, f"{VERSION_PY} of {offer.candidate.shown}"), offer)


def _version_py(candidate: Candidate, pip: Index) -> bytes:
    if candidate.path is None:
        return remote.read_small(candidate, pip.session, VERSION_PY, say)
    try:
        with open(candidate.path, "rb") as file:
            archive = wheel.open_wheel(file, candidate.shown)
            return wheel.read_small(archive, VERSION_PY, candidate.shown)
    except OSError as error:
        raise CiError(f"cannot read {candidate.shown}: {error.strerror}") from error


@contextlib.contextmanager
def opened(kind: str) -> Iterator[Shop]:
    """The index of this kind (a key of INDEXES); CiError if it offers no torch at all, which only
    an index that is down, or none, does."""
    with index.opened(url_of(kind)) as pip:
        offers = _offers(pip, INDEXES[kind].local)
        unread = ", ".join(sorted(pip.unread))
        if not offers:
            why = f"{unread} could not be read" if unread else "is that an index?"
            raise CiError(f"the index {kind} offers no torch at all: {why}")
        yield Shop(offers, unread, pip)


def url_of(kind: str) -> str | None:
    """Its address; PIN_INDEX_NIGHTLY_CPU and the like name a mirror of it."""
    return os.environ.get(f"PIN_INDEX_{kind.upper().replace('-', '_')}") or INDEXES[kind].url


def _offers(pip: Index, local: str | None) -> dict[Version, Offer]:
    found: dict[Version, Offer] = {}
    for python in PYTHONS:
        for candidate in pip.candidates(python):
            if candidate.version.local == local and _can_be_pinned(candidate):
                offer = found.setdefault(candidate.version, Offer(str(candidate.version)))
                _add(offer, candidate, python)
    return found


def _add(offer: Offer, candidate: Candidate, python: str) -> None:
    digest = candidate.sha256
    if digest is not None and not SHA256.fullmatch(digest):
        raise CiError(
            f"{candidate.shown}: the index gives {printable(digest)[:80]!r} as its SHA-256"
        )
    offer.hashes[candidate.name].update([digest] if digest else [])
    offer.pythons.add(python)
    offer.candidate = offer.candidate or candidate
    if candidate.yanked is not None:
        reason = printable(candidate.yanked)[:_REASON_LIMIT] or "no reason given"
        offer.yanked = offer.yanked or reason


def _can_be_pinned(candidate: Candidate) -> bool:
    try:
        check_wheel(candidate.name, version(str(candidate.version)))
    except CiError:
        return False
    return True


def _commit(constants: Mapping[str, str], offer: Offer) -> str:
    """git_version; CiError if it is none, or the wheel is of another version than its name says."""
    said, commit = constants.get("__version__", ""), constants.get("git_version", "")
    wanted = Version(offer.version).public
    if said.partition("+")[0] != wanted:
        raise CiError(f"the wheel of torch {wanted} calls itself {printable(said)[:60]!r}: refused")
    if not COMMIT.fullmatch(commit):
        raise CiError(f"torch {wanted} does not say the commit it was built from")
    return commit
