# SPDX-License-Identifier: BSD-3-Clause
"""A site as a directory that is there whole, the old one or the new one.

The new tree is made in a hidden directory beside it and then takes its place in one step. The
hidden directory, `.NAME.dashboard`, also keeps the state between builds; it may be deleted at any
time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from torch_backend_ci.dashboard.page import File
from torch_backend_ci.errors import CiError
from torch_backend_ci.output import say

MARK = "dashboard.json"
SCHEMA = "urn:torch-conformance:dashboard:1"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Site:
    """Where a site is, or will be."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self.hidden = self.path.with_name(f".{self.path.name}.dashboard")
        self.next = self.hidden / "next"
        self.state = self.hidden / "state"
        self._old = self.hidden / "old"

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """Make the new tree with `put` in the block; it is published if that ends well.

        One build at a time: another one waits. CiError if something else is in the place.
        """
        try:
            self.hidden.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._recover()
                self._require_ours()
                self.next.mkdir()
                try:
                    yield
                    self._publish()
                finally:
                    _remove(self.next)
        except OSError as error:
            raise CiError(
                f"cannot make the site at {self.path}: {error.strerror or error}"
                f"{f': {error.filename}' if error.filename else ''}; it is as it was"
            ) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The system gives the lock back when the process ends, however it ends."""
        with open(self.hidden / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another build of {self.path}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _recover(self) -> None:
        """Clean up after a build that was killed."""
        if self._old.exists() and not self.path.exists():
            os.rename(self._old, self.path)  # it was killed between two renames
        _remove(self._old)
        _remove(self.next)

    def _require_ours(self) -> None:
        """CiError unless the place is free, or has a site and nothing else."""
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise CiError(f"{self.path} is not a directory: choose another path for the site")
        there = set(os.listdir(self.path))
        if not there:
            return
        known = _marked(self.path / MARK)
        if known is None:
            raise CiError(
                f"{self.path} has files and is not a site of the dashboard: choose a new directory"
            )
        if others := sorted(there - known):
            raise CiError(
                f"{self.path / others[0]} was not made by the dashboard and would be lost: "
                "move it out of the site first"
            )

    def put(self, file: File) -> None:
        """Into the new tree; what is as in the site is linked. May be used by several processes.

        FileExistsError if there is such a file already.
        """
        target, earlier = self.next / file.path, self.path / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if _has(earlier, file.content):
            with contextlib.suppress(OSError):  # too many links, or a disk that has none
                os.link(earlier, target)
                return
        with open(target, "xb") as stream:
            stream.write(file.content)

    def _publish(self) -> None:
        names = sorted({MARK, *os.listdir(self.next)})
        mark = json.dumps({"schema": SCHEMA, "files": names}) + "\n"
        self.put(File(MARK, mark.encode()))
        if not self.path.exists() or not os.listdir(self.path):
            os.rename(self.next, self.path)
        elif not _exchanged(self.next, self.path):
            os.rename(self.path, self._old)
            os.rename(self.next, self.path)
            _remove(self._old)


def _marked(mark: Path) -> set[str] | None:
    """What is at the root of a site; None if it is none."""
    try:
        said = json.loads(mark.read_text(encoding="utf-8"))
        return set(said["files"]) if said["schema"] == SCHEMA else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _has(file: Path, content: bytes) -> bool:
    try:
        return file.stat().st_size == len(content) and file.read_bytes() == content
    except OSError:
        return False


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two directories took each other's place, in one step; not every system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if not rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number), str(other))
