# SPDX-License-Identifier: BSD-3-Clause
"""Unpack what is read of a wheel, trusting nothing that the archive says."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree.folders import is_read

# torch 2.15 has 12,000 such members of 120 MB together.
MEMBERS_LIMIT = 100_000
BYTES_LIMIT = 1_000_000_000
LIBRARIES = tuple(f"torch/lib/lib{name}.so" for name in ("c10", "torch_cpu", "torch_python"))
SMALL_LIMIT = 1 << 20  # of a member that is read into memory


def open_wheel(file: IO[bytes], name: str) -> zipfile.ZipFile:
    """The archive's directory; `name` is for messages."""
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CiError(f"{name} is not a whole wheel (truncated?): {error}") from error


def wanted(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """The members to unpack; CiError if one of them is not a plain file at a plain place."""
    members = [m for m in archive.infolist() if not m.is_dir() and is_read(m.filename)]
    if len(members) > MEMBERS_LIMIT or sum(m.file_size for m in members) > BYTES_LIMIT:
        raise CiError(f"{name} unpacks to more than any torch: refused")
    for member in members:
        if reason := _hostile(member):
            raise CiError(f"{name}: member {member.filename!r} {reason}: refused")
    names = {m.filename for m in members}
    if len(names) != len(members):
        raise CiError(f"{name} has a member twice: refused")
    if missing := {"torch/version.py", "torch/include/c10/core/Device.h"} - names:
        raise CiError(f"{name} is not a wheel of torch: it has no {min(missing)}")
    return members


def libraries(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """The shared libraries that backends link with; CiError for a wheel without them."""
    members = [m for m in archive.infolist() if m.filename in LIBRARIES and not _hostile(m)]
    if len(members) != len(LIBRARIES) or sum(m.file_size for m in members) > 2 * BYTES_LIMIT:
        raise CiError(f"{name} does not have the libraries {', '.join(LIBRARIES)}, each once")
    return members


def unpack(
    archive: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    into: Path,
    name: str,
    done: Callable[[int], None] = lambda count: None,
) -> None:
    """Write the members below `into`; each one's checksum is compared."""
    for count, member in enumerate(members):
        target = into / member.filename
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, open(target, "xb") as out:
                shutil.copyfileobj(source, out)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, FileExistsError) as error:
            raise CiError(f"{name} is damaged at {member.filename}: {error}") from error
        except (NotADirectoryError, NotImplementedError) as error:
            raise CiError(f"{name}: cannot unpack {member.filename}: {error}") from error
        done(count + 1)


def read_small(archive: zipfile.ZipFile, path: str, name: str) -> bytes:
    """One small member, in memory."""
    try:
        if archive.getinfo(path).file_size > SMALL_LIMIT:
            raise CiError(f"{name}: {path} is larger than it can be: refused")
        return archive.read(path)
    except KeyError as error:
        raise CiError(f"{name} is not a wheel of torch: it has no {path}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise CiError(f"{name} is damaged at {path}: {error}") from error


def _hostile(member: zipfile.ZipInfo) -> str | None:
    parts = member.filename.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\\" in member.filename:
        return "leads out of the archive"
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        return "is not a plain file"
    return None
