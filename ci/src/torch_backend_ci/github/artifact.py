# SPDX-License-Identifier: BSD-3-Clause
"""The files of a workflow run's artifact, which are not trusted.

A pull request can put anything into its artifacts. So nothing of one is ever written to disk, names
are only compared, and sizes are bounded while they are read, not when they are believed.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from github import GithubException
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from torch_backend_ci.errors import CiError

_MOST_ARTIFACTS = 1000  # of a run that are looked through
_CHUNK = 1 << 16
_TIMEOUT = (10, 60)  # seconds to connect, and between two parts
_GONE = (404, 410)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that GitHub's uploader uses
_END, _END_SIZE = b"PK\x05\x06", 22  # of a zip file without a comment
_DIRECTORY = (10, 12), (12, 16), (16, 20)  # in it: number of entries, bytes, where it starts
_LOCATOR_64, _LOCATOR_64_SIZE = b"PK\x06\x07", 20
_LONGEST_HEADER = 1 << 10  # of an entry, in the directory at the end of the file
_ENCRYPTED = 0x1 | 0x40  # flags of an entry
_PATCH = 0x20


class Unusable(CiError):
    """The artifact is not there, or is nothing to be read: asking again would not help."""


@dataclass(frozen=True)
class Limits:
    """What is accepted of an artifact."""

    packed: int = 32 << 20  # bytes that are downloaded
    unpacked: int = 128 << 20  # bytes of all its entries together
    entries: int = 200


def fetch(
    repo: Repository,
    run: WorkflowRun,
    name: str,
    wanted: Callable[[str], bool],
    limits: Limits = Limits(),
) -> dict[str, bytes]:
    """The wanted files of the artifact of this name that the run has left; Unusable if it cannot.

    A run that was repeated in part may have left several: the newest counts.
    """
    found = _find(run, name)
    if found["size_in_bytes"] > limits.packed:
        raise Unusable(f"artifact {name} has {_size(found['size_in_bytes'])}: {_bound(limits)}")
    data = _download(repo, found["id"], name, limits.packed)
    said = found.get("digest")
    if said and said != f"sha256:{hashlib.sha256(data).hexdigest()}":
        raise Unusable(f"artifact {name} is not what was uploaded: its digest differs")
    try:
        return unpack(data, wanted, limits)
    except Unusable as error:
        raise Unusable(f"artifact {name}: {error}") from None


def _find(run: WorkflowRun, name: str) -> dict[str, Any]:
    """The newest of the run's artifacts that have this name, as GitHub describes it."""
    listed = (artifact.raw_data for artifact in run.get_artifacts())
    named = [a for a in itertools.islice(listed, _MOST_ARTIFACTS) if a["name"] == name]
    own = [a for a in named if _is_of(run, a)]
    if not own:
        which = ", only of another one" if named else ""
        raise Unusable(f"there is no artifact {name} of run {run.id}{which}")
    newest = max(own, key=lambda artifact: artifact["id"])
    if newest["expired"]:
        raise Unusable(f"artifact {name} of run {run.id} has expired")
    return newest


def _is_of(run: WorkflowRun, artifact: dict[str, Any]) -> bool:
    made_by = artifact.get("workflow_run") or {}
    return made_by.get("id") == run.id and made_by.get("head_sha") == run.head_sha


def _download(repo: Repository, number: int, name: str, limit: int) -> bytes:
    """The zip file; GitHub says where, which is a storage that must not see the token."""
    try:
        headers, _ = repo.requester.requestJsonAndCheck(
            "GET", f"{repo.url}/actions/artifacts/{number}/zip"
        )
    except GithubException as error:
        if error.status in _GONE:
            raise Unusable(f"artifact {name} has expired or was deleted") from None
        raise
    place = urlsplit(headers.get("location", ""))
    if not place.hostname or place.scheme not in ("https", urlsplit(repo.url).scheme):
        raise CiError(f"GitHub says no address to download artifact {name} from")
    try:
        return _received(place.geturl(), name, limit)
    except requests.RequestException as error:
        # Its text would show the address, which is signed: who has it has the artifact.
        why = getattr(error.response, "status_code", None) or type(error).__name__
        raise CiError(f"cannot download artifact {name} from {place.hostname}: {why}") from None


def _received(url: str, name: str, limit: int) -> bytes:
    parts, size = [], 0
    retry = Retry(total=3, backoff_factor=0.2, status_forcelist=range(500, 600), redirect=False)
    with requests.Session() as session:
        session.mount("https://", HTTPAdapter(max_retries=retry))
        session.mount("http://", HTTPAdapter(max_retries=retry))
        with session.get(
            url,
            auth=_nobody,
            headers={"Accept-Encoding": "identity"},
            timeout=_TIMEOUT,
            stream=True,
            allow_redirects=False,
        ) as response:
            response.raise_for_status()
            if response.status_code != requests.codes.ok:
                raise requests.HTTPError("a redirection", response=response)
            for part in response.iter_content(_CHUNK):
                size += len(part)
                if size > limit:
                    raise Unusable(f"artifact {name} is larger than {_size(limit)}")
                parts.append(part)
    return b"".join(parts)


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No credentials, also none that a .netrc has for the host."""
    return request


def unpack(
    data: bytes, wanted: Callable[[str], bool], limits: Limits = Limits()
) -> dict[str, bytes]:
    """The wanted entries of a zip file by their names; Unusable if one of all is not harmless."""
    _check_end(data, limits)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries, limits)
            return {e.filename: _content(archive, e) for e in entries if wanted(e.filename)}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OverflowError,
        UnicodeError,
        ValueError,
    ) as error:
        raise Unusable(f"is not a valid zip file: {error}") from None


def _check_end(data: bytes, limits: Limits) -> None:
    """The record at the end of the file, before anything is done with what it claims."""
    end = data[-_END_SIZE:]
    locator = data[-_END_SIZE - _LOCATOR_64_SIZE : -_END_SIZE]
    if len(end) < _END_SIZE or not end.startswith(_END) or end[-2:] != b"\0\0":
        raise Unusable("is not a complete zip file")
    entries, size, start = (int.from_bytes(end[a:b], "little") for a, b in _DIRECTORY)
    if locator.startswith(_LOCATOR_64) or b"\xff\xff" in (end[8:10], end[10:12]):
        raise Unusable("is a zip64 file, which nothing of its size needs to be")
    if entries > limits.entries or size > limits.entries * _LONGEST_HEADER:
        raise Unusable(f"has more than {limits.entries} entries")
    if start + size + _END_SIZE != len(data):  # two readers may take two different ends for it
        raise Unusable("is not all of a zip file, or more than one")


def _check_entries(entries: Iterable[zipfile.ZipInfo], limits: Limits) -> None:
    seen: set[str] = set()
    size = 0
    for number, entry in enumerate(entries, 1):
        if problem := _problem(entry):
            raise Unusable(f"entry {entry.orig_filename[:80]!r} {problem}")
        alike = unicodedata.normalize("NFC", entry.filename).casefold()
        if alike in seen:
            raise Unusable(f"entry {entry.filename[:80]!r} is there twice")
        seen.add(alike)
        size += entry.file_size
        if size > limits.unpacked or number > limits.entries:
            raise Unusable(f"holds more than {limits.entries} entries or {_size(limits.unpacked)}")


def _problem(entry: zipfile.ZipInfo) -> str | None:
    """What is wrong with an entry; who would unpack it to disk shall not be fooled either."""
    name, mode = entry.orig_filename, entry.external_attr >> 16
    parts = name.removesuffix("/").split("/")
    if (
        not name.isprintable()
        or "\\" in name
        or ":" in name
        or not {"", ".", ".."}.isdisjoint(parts)
    ):
        return "has a name that leads elsewhere"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if entry.flag_bits & _PATCH or entry.compress_type not in _METHODS:
        return "is compressed in an unusual way"
    return None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """All of an entry, and no more of it than the limits were compared with."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise Unusable(f"entry {entry.filename!r} has another size than it says")
    return content


def _bound(limits: Limits) -> str:
    return f"more than {_size(limits.packed)} are not read"


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"
