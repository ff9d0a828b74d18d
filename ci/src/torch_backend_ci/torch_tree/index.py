# SPDX-License-Identifier: BSD-3-Clause
"""Find a wheel of torch where pip would find it.

Pip's own finder is asked, in process, so the user's indexes, find-links, proxies, certificates and
credentials hold, and the session that finds a wheel is the one that fetches it. No command of pip
gives the address of a wheel without, on some indexes, downloading all of it first; pip-tools
reaches into pip at the same place for the same reason.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torch_backend_ci.errors import CiError

# Headers and Python files do not depend on the Python a wheel is for: any will do.
PYTHONS = tuple(dict.fromkeys((f"3.{sys.version_info[1]}", "3.11", "3.12", "3.13", "3.10", "3.9")))
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
)


@dataclass(frozen=True)
class Candidate:
    """One wheel on offer. `url` may hold credentials and is never shown: `shown` is."""

    version: Version
    url: str
    sha256: str | None
    yanked: str | None = None  # why it was withdrawn (PEP 592), perhaps ""; None: it was not

    @property
    def shown(self) -> str:
        """Host and file name; no user, password, token."""
        return str(self.path or f"{urlsplit(self.url).hostname}/.../{self.name}")

    @property
    def name(self) -> str:
        """The file name of the wheel."""
        return unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])

    @property
    def path(self) -> Path | None:
        """Where it lies on this machine, if it does."""
        parts = urlsplit(self.url)
        return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


@dataclass(frozen=True)
class Index:
    """Pip's finder. `session` is a requests.Session of pip's own."""

    session: Any
    options: tuple[str, ...] = ()  # of pip
    unread: set[str] = field(default_factory=set)  # hosts of indexes that could not be read

    def wheel(self, version: str) -> Candidate:
        """The wheel of exactly this version; CiError names the nearest ones."""
        seen: dict[Version, Candidate] = {}
        for python in PYTHONS:
            found = self.candidates(python)
            match = [c for c in found if _is(c.version, version)]
            if match:
                return max(match, key=lambda c: c.version)
            seen.update({c.version: c for c in found})
        raise CiError(_unknown(version, list(seen)) + self._but())

    def _but(self) -> str:
        if not self.unread:
            return ""
        hosts = ", ".join(sorted(self.unread))
        return f"; {hosts} could not be read: check the network and pip's configuration"

    def versions(self) -> list[Version]:
        """All versions on offer for some Python, sorted."""
        return sorted({c.version for python in PYTHONS[:2] for c in self.candidates(python)})

    def candidates(self, python: str) -> list[Candidate]:
        """All wheels on offer for this Python, those that were withdrawn too."""
        complaints = _Complaints()
        command, options = _command([*self.options, "--python-version", python])
        from pip._internal.cli.cmdoptions import make_target_python

        with _heard_by(complaints):
            finder = command._build_package_finder(
                options=options,
                session=self.session,
                target_python=make_target_python(options),
                ignore_requires_python=True,
            )
            try:
                found = finder.find_all_candidates("torch")
            except ValueError as error:  # some versions of pip raise it for a page that is not text
                raise CiError("an index answers with something that pip cannot read") from error
        self.unread.update(complaints.hosts)
        return [candidate for one in found if (candidate := _candidate(one))]


@contextlib.contextmanager
def opened(url: str | None = None) -> Iterator[Index]:
    """Pip's finder, ready to be asked; `url` takes the place of pip's configured main index."""
    words = ("--index-url", url) if url else ()
    command, options = _command([*words])
    with command.main_context(), _heard_by(_Complaints()):
        yield Index(command.get_default_session(options), words)


def _command(more: list[str]) -> tuple[Any, Any]:
    try:
        from pip._internal.commands.download import DownloadCommand
    except ImportError as error:
        raise CiError(
            "to find a version of torch, pip must be installed beside this Python; or give a "
            "path to an unpacked torch or to a wheel"
        ) from error
    command = DownloadCommand("download", "")
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    fixed = ["--no-cache-dir", "--no-deps", "--pre", "--only-binary=:all:", *platforms]
    options, _ = command.parse_args([*fixed, *more, "torch"])
    return command, options


def _candidate(found: Any) -> Candidate | None:
    """None for a file whose version is none: some pips take any text for one."""
    try:
        version = Version(str(found.version))
    except ValueError:  # also for a number that is too long for an int
        return None
    link = found.link
    digest = link.hash if link.hash_name == "sha256" else None
    return Candidate(version, link.url_without_fragment, digest, link.yanked_reason)


def _is(version: Version, wanted: str) -> bool:
    """True if `pip install torch==wanted` would accept it: a local part only where asked for."""
    return version in SpecifierSet(f"=={wanted}", prereleases=True)


def nearest(wanted: str, versions: list[Version], count: int) -> list[str]:
    """The versions beside `wanted` in the order of versions."""
    try:
        key = Version(wanted)
    except InvalidVersion:
        return [str(v) for v in sorted(versions)[-count:]]
    after = [v for v in sorted(versions) if v > key][: count // 2]
    before = [v for v in sorted(versions) if v < key][len(after) - count :]
    return [str(v) for v in (*before, *after)]


def _unknown(wanted: str, versions: list[Version]) -> str:
    if not versions:
        return f"torch {wanted}: pip finds no torch for linux x86_64 at all (`pip config list`)"
    return f"there is no torch {wanted}; near are {', '.join(nearest(wanted, versions, 6))}"


class _Complaints(logging.Handler):
    """Messages of pip: not printed, but the hosts in them are remembered."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.hosts: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if "Could not fetch URL" in record.msg and isinstance(record.args, tuple):
            url = str(getattr(record.args[0], "url", record.args[0]))
            self.hosts.add(urlsplit(url).hostname or "?")


@contextlib.contextmanager
def _heard_by(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger("pip")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
