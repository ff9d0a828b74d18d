# SPDX-License-Identifier: BSD-3-Clause
"""A submission: one ZIP file with a report and all that it takes to judge it elsewhere.

The same inputs give the same bytes. Nothing of a bundle is ever unpacked to disk, and it is read
within fixed limits: a bundle comes from somebody else.
"""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from torch_conformance.results import levels
from torch_conformance.results.junit import junit
from torch_conformance.results.reader import Document
from torch_conformance.results.report import Torch, totals
from torch_conformance.spec import strict
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.result import Digest

SCHEMA: Final = "urn:torch-conformance:bundle:1"
MANIFEST, REPORT, JUNIT = "manifest.json", "report.json", "report.xml"
DESCRIPTOR, EXPECTATIONS, LOG = "descriptor.yaml", "expectations.yaml", "run.log"
#: Everything a bundle may contain, with the bytes it may have unpacked.
LIMITS = {
    MANIFEST: 4 << 20,
    REPORT: strict.MAX_BYTES,
    JUNIT: strict.MAX_BYTES,
    DESCRIPTOR: 1 << 20,
    EXPECTATIONS: 4 << 20,
    LOG: 64 << 20,
}
REQUIRED = (MANIFEST, REPORT, JUNIT, LOG)
MAX_BYTES = 64 << 20
# The first day that ZIP knows: the time when a bundle was made is not part of it.
EPOCH = (1980, 1, 1, 0, 0, 0)
REGULAR = stat.S_IFREG | 0o644
ENCRYPTED = 0x1
# What an entry of a ZIP file's directory begins with; compressed data may contain it by chance.
ENTRY, MAX_ENTRIES = b"PK\x01\x02", 64


class BundleError(Exception):
    """A file is not a bundle; the text gives every reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n  ".join(["not a bundle:", *problems]))
        self.problems = problems


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which suite made the report."""

    version: str
    commit: str | None
    digest: Digest


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a bundle says about itself; all of it can be recomputed from its members."""

    schema: Literal["urn:torch-conformance:bundle:1"]
    backend: str
    suite: Suite
    torch: Torch
    python: str
    seed: int
    state: str
    level: str | None
    without: tuple[str, ...]
    totals: dict[Outcome, int]
    files: dict[str, Digest]
    """SHA-256 of every member but the manifest."""


def manifest(document: Document, members: dict[str, bytes]) -> Manifest:
    """The manifest of a report and its members."""
    run, verdict = document.run, levels.assess(document.report)
    source = run.source
    return Manifest(
        schema=SCHEMA,
        backend=run.backend,
        suite=Suite(version=run.suite, commit=source.commit, digest=source.digest),
        torch=run.torch,
        python=run.python,
        seed=run.seed,
        state=document.state,
        level=verdict.name,
        without=verdict.without,
        totals=totals(document.checks),
        files={
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(members.items())
            if name != MANIFEST
        },
    )


def pack(document: Document, data: bytes, others: dict[str, bytes]) -> bytes:
    """The bundle of a report; `others` are descriptor, expectations and log."""
    written = junit(document.run.backend, document.run.started, document.checks)
    members = {REPORT: data, JUNIT: written.encode(), **others}
    encoded = msgspec.json.encode(manifest(document, members))
    return archive({MANIFEST: msgspec.json.format(encoded, indent=1) + b"\n", **members})


def archive(members: dict[str, bytes]) -> bytes:
    """A ZIP file of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr = 3, REGULAR << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, content, compresslevel=9)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The members of a bundle by name; raises BundleError."""
    if len(data) > MAX_BYTES:
        raise BundleError([f"larger than {MAX_BYTES >> 20} MiB"])
    # Looked for before a directory of a million entries is read into memory.
    if data.count(ENTRY) > MAX_ENTRIES:
        raise BundleError([f"has more than {MAX_ENTRIES} entries"])
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as source:
            problems = list(_objections(source.infolist()))
            if problems:
                raise BundleError(problems)
            return {entry.filename: _read(source, entry) for entry in source.infolist()}
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        raise BundleError([str(error)]) from None
    except (NotImplementedError, RuntimeError, OSError, IndexError) as error:
        # What zipfile raises for features it lacks and for offsets that lead nowhere.
        raise BundleError([f"damaged: {error}"]) from None


def _objections(entries: list[zipfile.ZipInfo]) -> Iterator[str]:
    names = [entry.filename for entry in entries]
    yield from (f"{name} is missing" for name in REQUIRED if name not in names)
    yield from (f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1)
    for entry in entries:
        if entry.filename not in LIMITS:
            yield f"{entry.filename!r} does not belong into a bundle"
        elif entry.file_size > LIMITS[entry.filename]:
            yield f"{entry.filename} is larger than {LIMITS[entry.filename] >> 20} MiB"
        if not stat.S_ISREG(entry.external_attr >> 16):
            yield f"{entry.filename!r} is not a regular file"
        if entry.flag_bits & ENCRYPTED:
            yield f"{entry.filename!r} is encrypted"
        if entry.compress_type != zipfile.ZIP_DEFLATED:
            yield f"{entry.filename!r} is compressed in another way than submit does"


def _read(source: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A member, never more of it than it may have: what the archive says of sizes may be a lie."""
    limit = LIMITS[entry.filename]
    with source.open(entry) as member:
        content = member.read(limit + 1)
    if len(content) > limit:
        raise BundleError([f"{entry.filename} is larger than {limit >> 20} MiB"])
    return content
