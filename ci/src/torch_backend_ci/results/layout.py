# SPDX-License-Identifier: BSD-3-Clause
"""Where everything is in a store, and how a file gets there: whole or not at all.

A store is a directory of segments that are never changed, so the union of two stores is a store.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.errors import CiError

SCHEMA = "urn:torch-conformance:results:1"
MARK = "store.json"
FINDINGS = "findings"
RUNS, RESULTS = ".runs.parquet", ".results.parquet"
# Temporary files end with it and begin with a dot.
PART = ".part"

_FAMILY = SCHEMA.rpartition(":")[0]
_PERIOD = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_NAME = re.compile(r"[0-9a-f]{64}")


class Segment(NamedTuple):
    """Some runs with their results, committed at once."""

    folder: Path
    """Its name is the day or the month of the runs."""
    name: str

    @property
    def runs(self) -> Path:
        """One row for each run. It is there: the segment is. It comes last and goes first."""
        return self.folder / f"{self.name}{RUNS}"

    @property
    def results(self) -> Path:
        """One row for each check of each run; no file if there are none."""
        return self.folder / f"{self.name}{RESULTS}"

    @property
    def month(self) -> str:
        """`2026-11`."""
        return self.folder.name[:7]


def segment_name(stored: Mapping[str, int]) -> str:
    """The name of the segment with these runs and so many results of each."""
    lines = (f"{id} {stored[id]}\n" for id in sorted(stored))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def require(store: Path) -> None:
    """CiError unless it is a store that this code can read."""
    try:
        mark = json.loads((store / MARK).read_text(encoding="utf-8"))
        schema = mark["schema"]
    except FileNotFoundError:
        raise CiError(_no_store(store)) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CiError(
            f"{store / MARK} is damaged ({error}): it has to read {_mark().strip()}"
        ) from error
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.rpartition(":")[0] == _FAMILY:
        raise CiError(
            f"{store} is a store of schema {schema}, and this code knows {SCHEMA}: "
            "use a version of the code that knows it"
        )
    raise CiError(f"{store / MARK} is of no store of results: its schema is {str(schema)[:80]!r}")


def notice(store: Path) -> str | None:
    """What the site of a store says on every page, if its mark says so: that it is synthetic."""
    require(store)
    told = json.loads((store / MARK).read_text(encoding="utf-8")).get("notice")
    return told if isinstance(told, str) else None


def create(store: Path, notice: str | None = None) -> None:
    """Make it a store; one that is there is left as it is. CiError if it is something else.

    `notice` is what its site says on every page.
    """
    if (store / MARK).exists():
        require(store)
        return
    try:
        store.mkdir(parents=True, exist_ok=True)
        if any(not name.startswith(".") for name in os.listdir(store)):
            if not (store / MARK).exists():
                raise CiError(
                    f"{_no_store(store)}. Results are added to a store or to a new directory"
                )
            require(store)  # another writer was quicker: its mark comes before all else
            return
        put(store / MARK, lambda part: part.write_text(_mark(notice), encoding="utf-8"))
    except OSError as error:
        raise CiError(f"cannot make the store {store}: {error.strerror or error}") from error


def segments(store: Path) -> tuple[Segment, ...]:
    """What is committed, oldest directory first."""
    return tuple(
        Segment(folder, name.removesuffix(RUNS))
        for folder in periods(store)
        for name in listed(folder)
        if name.endswith(RUNS) and _NAME.fullmatch(name.removesuffix(RUNS))
    )


def periods(store: Path) -> Iterator[Path]:
    """The directories of segments."""
    for name in listed(store):
        if _PERIOD.fullmatch(name) and (store / name).is_dir():
            yield store / name


def findings(store: Path) -> Iterator[Path]:
    """The findings documents."""
    folder = store / FINDINGS
    for name in listed(folder) if folder.is_dir() else ():
        if name.endswith(".json.gz") and _NAME.fullmatch(name.removesuffix(".json.gz")):
            yield folder / name


def listed(folder: Path) -> list[str]:
    """The names in a directory, sorted; none if it has gone. CiError if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CiError(f"cannot read {folder}: {error.strerror}") from error


def put(file: Path, write: Callable[[Path], object]) -> None:
    """Have `write` write a file under another name, then give it its own, durably.

    Whatever stops it, the file is as it was or as it should be. OSError if it cannot be written.
    """
    _make_folder(file.parent)
    part = file.with_name(f".{file.name[:16]}.{secrets.token_hex(8)}{PART}")
    try:
        write(part)
        _sync(part)
        os.replace(part, file)
        _sync(file.parent)
    finally:
        part.unlink(missing_ok=True)


def is_part(name: str) -> bool:
    """Whether a file is on its way, or what was left of one."""
    return name.startswith(".") and name.endswith(PART)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mark(notice: str | None = None) -> str:
    return json.dumps({"schema": SCHEMA} | ({"notice": notice} if notice else {})) + "\n"


def _no_store(store: Path) -> str:
    if not store.exists():
        return f"there is no store at {store}: `torch-backend-ci results add` makes one"
    return f"{store} is not a store of results: it has no {MARK}"
