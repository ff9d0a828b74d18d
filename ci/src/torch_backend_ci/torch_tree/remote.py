# SPDX-License-Identifier: BSD-3-Clause
"""Read a few members of a wheel on a server without fetching the rest.

Of torch's 0.5 GB, 20 MB are wanted, and they lie in three runs. So: the archive's directory with
one request for the end of the file, then one request for each run. A server that does not know
ranges sends the whole file, which then goes to a temporary file.
"""

from __future__ import annotations

import hashlib
import io
import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import wheel
from torch_backend_ci.torch_tree.index import Candidate

Progress = Callable[[str], None]

TAIL = 4 << 20  # the archive's directory is 1.5 MB
GAP = 1 << 20  # wanted bytes nearer than this are fetched together
CHUNK = 1 << 18
ATTEMPTS = 5
PAUSE = 0.2  # seconds before the second attempt, twice that before the third ...
WHOLE_LIMIT = 8 << 30

_WORDS = {
    "RetryError": "answers only with server errors",
    "ConnectTimeout": "does not answer in time",
    "ReadTimeout": "does not answer in time",
}
_PLAIN = {"Accept-Encoding": "identity"}


def fetch(
    candidate: Candidate,
    session: Any,
    into: Path,
    progress: Progress,
    wanted: Callable[[zipfile.ZipFile, str], list[zipfile.ZipInfo]] = wheel.wanted,
) -> None:
    """Unpack what is `wanted` of the wheel below `into`."""
    with _Server(candidate, session, progress).file() as file:
        archive = wheel.open_wheel(file, candidate.shown)
        members = wanted(archive, candidate.shown)
        if isinstance(file, _Ranges):
            file.prefetch(_runs(archive, members))
        wheel.unpack(archive, members, into, candidate.shown)


def read_small(candidate: Candidate, session: Any, path: str, progress: Progress) -> bytes:
    """One small member of the wheel."""
    with _Server(candidate, session, progress).file() as file:
        archive = wheel.open_wheel(file, candidate.shown)
        return wheel.read_small(archive, path, candidate.shown)


def _runs(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> list[tuple[int, int]]:
    """Where the members lie, from the first byte to the one behind, near ones as one."""
    starts = sorted(m.header_offset for m in archive.infolist())
    ends = dict(zip(starts, [*starts[1:], archive.start_dir], strict=True))
    runs: list[tuple[int, int]] = []
    for start in sorted(m.header_offset for m in members):
        if runs and start - runs[-1][1] < GAP:
            runs[-1] = runs[-1][0], ends[start]
        else:
            runs.append((start, ends[start]))
    return runs


@dataclass
class _Server:
    """Who has the wheel."""

    candidate: Candidate
    session: Any
    progress: Progress

    def file(self) -> IO[bytes]:
        """The wheel as a file: by ranges, else the whole of it."""
        for attempt in _attempts():
            with attempt, self._get({"Range": f"bytes=-{TAIL}"}) as response:
                said = response.headers.get("Content-Range", "")
                span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", said)
                if response.status_code == 206 and span:
                    start, end, size = map(int, span.groups())
                    tail = b"".join(self._pieces(response, end + 1 - start))
                    return cast(IO[bytes], _Ranges(self, size, [(start, tail)]))
                return self._whole(response)
        raise self._failed("keeps breaking off")

    def span(self, start: int, end: int, got: Callable[[int], None]) -> bytes:
        """Bytes of the wheel; goes on where a broken transfer stopped."""
        data = bytearray()
        for attempt in _attempts():
            with attempt:
                wanted = {"Range": f"bytes={start + len(data)}-{end - 1}"}
                with self._get(wanted) as response:
                    if response.status_code != 206:
                        raise self._failed("stopped answering ranges")
                    for piece in self._pieces(response, end - start - len(data)):
                        data += piece
                        got(len(piece))
                return bytes(data)
        raise self._failed(f"keeps breaking off ({len(data)} of {end - start} bytes came)")

    def _whole(self, response: Any) -> IO[bytes]:
        size = int(response.headers.get("Content-Length") or 0)
        if size > WHOLE_LIMIT:
            raise self._failed("is larger than any wheel of torch")
        self.progress(f"{self.candidate.name}: the server gives no parts; fetching all of it")
        meter = _Meter(self.candidate.name, size, self.progress)
        digest = hashlib.sha256()
        file = tempfile.TemporaryFile()
        try:
            for piece in self._pieces(response, size or None):
                digest.update(piece)
                file.write(piece)
                meter.got(len(piece))
            if self.candidate.sha256 not in {None, digest.hexdigest()}:
                raise self._failed("does not have the SHA-256 that the index gives")
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def _get(self, headers: dict[str, str]) -> Any:
        try:  # pip's session has tried several times before it raises
            response = self.session.get(self.candidate.url, headers=_PLAIN | headers, stream=True)
        except OSError as error:  # all errors of requests; their text may show the whole address
            raise self._failed(_WORDS.get(type(error).__name__, "cannot be reached")) from None
        if response.status_code not in {200, 206}:
            response.close()
            raise self._failed(f"answers {response.status_code}")
        return response

    def _pieces(self, response: Any, expected: int | None) -> Iterator[bytes]:
        """The body; _Broken if it is not as long as announced."""
        seen = 0
        for piece in response.iter_content(CHUNK):
            seen += len(piece)
            if seen > (expected or WHOLE_LIMIT):
                raise self._failed("sends more than was asked for")
            yield piece
        if expected is not None and seen != expected:
            raise _Broken

    def _failed(self, how: str) -> CiError:
        return CiError(f"{self.candidate.shown} {how}")


class _Broken(Exception):
    """A transfer stopped before its end."""


class _Attempt:
    """Swallows a broken transfer, which another attempt may mend."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> bool:
        transport = kind is not None and kind.__module__.startswith("pip._vendor.")
        return transport or isinstance(error, _Broken)


def _attempts() -> Iterator[_Attempt]:
    for number in range(ATTEMPTS):
        time.sleep(PAUSE * number)
        yield _Attempt()


@dataclass
class _Meter:
    """Says how far a transfer is, every few seconds."""

    name: str
    size: int  # 0: unknown
    progress: Progress
    seen: int = 0
    said: float = field(default_factory=time.monotonic)

    def got(self, count: int) -> None:
        self.seen += count
        if time.monotonic() - self.said > 3:
            self.said = time.monotonic()
            total = f" of {self.size / 1e6:.0f}" if self.size else ""
            self.progress(f"{self.name}: {self.seen / 1e6:.0f}{total} MB")


@dataclass
class _Ranges(io.RawIOBase):
    """A file on a server; what was not prefetched is fetched in blocks."""

    server: _Server
    size: int
    spans: list[tuple[int, bytes]]
    position: int = field(default=0)

    def prefetch(self, runs: list[tuple[int, int]]) -> None:
        """Get these parts, with progress."""
        missing = [run for run in runs if self._at(run[0], run[1]) is None]
        total = sum(end - start for start, end in missing)
        if total > wheel.BYTES_LIMIT:
            raise CiError(f"{self.server.candidate.shown} is larger than any torch: refused")
        meter = _Meter(self.server.candidate.name, total, self.server.progress)
        for start, end in missing:
            self.spans.append((start, self.server.span(start, end, meter.got)))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError("before the start of the file")
        self.position = base + offset
        return self.position

    def readinto(self, buffer: Any) -> int:
        end = min(self.position + len(buffer), self.size)
        if end <= self.position:
            return 0
        data = self._at(self.position, end)
        if data is None:
            data = self.server.span(self.position, end, lambda count: None)
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)

    def _at(self, start: int, end: int) -> bytes | None:
        for first, data in self.spans:
            if first <= start and end <= first + len(data):
                return data[start - first : end - first]
        return None
