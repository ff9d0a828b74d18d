# SPDX-License-Identifier: BSD-3-Clause
"""The input reports: the configuration of each file, and its bytes.

The files come from runs of code that nobody has reviewed. Links are not followed, only regular
files are opened, and nothing is read or unpacked beyond a limit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torch_backend_ci import untrusted
from torch_backend_ci.gate.policy import Limits
from torch_backend_ci.untrusted import spoken

LANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SUFFIXES = (".json", ".json.gz", ".xml")
MAX_DEPTH = 4
MAX_ENTRIES = 10_000


@dataclass(frozen=True)
class File:
    """A report: where it is, and what it is called in front of people."""

    path: Path
    name: str


@dataclass
class LaneFiles:
    """The input for one configuration."""

    files: list[File] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Inputs:
    """What was handed in."""

    lanes: dict[str, LaneFiles] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def find(paths: Iterable[Path], limits: Limits) -> Inputs:
    """Look through files and directories; the result has what is wrong with them."""
    found = Inputs()
    for path in paths:
        _find_in(Path(os.path.realpath(path)), spoken(path.name), found)
    for lane, files in found.lanes.items():
        _drop_doubles(files)
        if len(files.files) > limits.reports_per_lane:
            said = f"{len(files.files)} reports, where {limits.reports_per_lane} are taken"
            files.problems.append(f"{lane}: {said}")
            files.files.clear()
    if len(found.lanes) > limits.lanes:
        found.problems.append(f"{len(found.lanes)} lanes, where {limits.lanes} are taken")
        found.lanes.clear()
    return found


def content(file: File, limits: Limits) -> bytes:
    """The bytes of a report, unpacked; Malformed says why not."""
    return untrusted.read(file.path, limits.report_mib << 20)


def _find_in(path: Path, name: str, found: Inputs) -> None:
    try:
        mode = path.lstat().st_mode
        entries = sorted(os.scandir(path), key=lambda e: e.name) if stat.S_ISDIR(mode) else None
    except (OSError, ValueError) as error:
        found.problems.append(f"{name}: {getattr(error, 'strerror', None) or error}")
        return
    if entries is None:
        _add(_stem(path.name), File(path, name), found)
        return
    for entry in entries:
        if entry.is_symlink():
            found.problems.append(f"{spoken(entry.name)}: a link, which is not followed")
        elif entry.is_dir(follow_symlinks=False):
            _of_folder(Path(entry.path), entry.name, found)
        elif entry.name.endswith(SUFFIXES):
            _add(_stem(entry.name), File(Path(entry.path), spoken(entry.name)), found)


def _of_folder(folder: Path, lane: str, found: Inputs) -> None:
    """All reports below the directory of a configuration, which may have none."""
    files = _lane(lane, found)
    if files is None:
        return
    for count, file in enumerate(_below(folder, lane, files, MAX_DEPTH)):
        if count == MAX_ENTRIES:
            files.problems.append(f"{lane}: more than {MAX_ENTRIES} files")
            return
        files.files.append(file)


def _below(folder: Path, name: str, files: LaneFiles, depth: int) -> Iterator[File]:
    if depth == 0:
        files.problems.append(f"{name}: directories deeper than {MAX_DEPTH}")
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        files.problems.append(f"{name}: {error.strerror}")
        return
    for entry in entries:
        called = f"{name}/{spoken(entry.name)}"
        if entry.is_symlink():
            files.problems.append(f"{called}: a link, which is not followed")
        elif entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), called, files, depth - 1)
        elif entry.name.endswith(SUFFIXES):
            yield File(Path(entry.path), called)


def _add(lane: str, file: File, found: Inputs) -> None:
    files = _lane(lane, found)
    if files is not None:
        files.files.append(file)


def _lane(name: str, found: Inputs) -> LaneFiles | None:
    if not LANE.fullmatch(name):
        found.problems.append(f"{spoken(name)!r} is not a valid name of a configuration")
        return None
    return found.lanes.setdefault(name, LaneFiles())


def _drop_doubles(files: LaneFiles) -> None:
    """A run writes JUnit beside its report: the same once more, and less."""
    reports = {_base(f.path) for f in files.files if not f.path.name.endswith(".xml")}
    files.files = [
        f for f in files.files if not f.path.name.endswith(".xml") or _base(f.path) not in reports
    ]


def _base(path: Path) -> Path:
    return path.with_name(_stem(path.name))


def _stem(name: str) -> str:
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), "")
    return name.removesuffix(suffix)
