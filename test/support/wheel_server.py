# SPDX-License-Identifier: BSD-3-Clause
"""A package index on this machine that can be made to misbehave."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Behaviour:
    """How the server answers for wheels; the list of what was asked."""

    folder: Path
    ranges: bool = True
    status: int = 200  # other: this and no more
    break_after: int | None = None  # bytes of a body
    breaks: int = 0  # how many answers break off
    break_tail: bool = True  # also the one with the end of the file
    pause: float = 0.0  # seconds before the body
    chunk_pause: float = 0.0  # seconds between pieces of the body
    hashes: dict[str, str] = field(default_factory=dict)
    yanked: dict[str, str] = field(default_factory=dict)  # why, by file
    listing: tuple[int, bytes] | None = None  # status and body, instead of the true list
    password: str | None = None
    asked: list[str] = field(default_factory=list)
    sent: int = 0


@dataclass
class Server:
    """Where it listens."""

    behaviour: Behaviour
    port: int

    def index(self, user: str = "") -> str:
        """For --index-url."""
        return f"http://{user}127.0.0.1:{self.port}/simple/"


@contextlib.contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    """A server for as long as the context lasts."""
    handler = type("Handler", (_Handler,), {"behaviour": behaviour})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Server(behaviour, server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body follows its headers at once

    def do_GET(self) -> None:
        if self.behaviour.password and not self.headers.get("Authorization"):
            self._answer(401, b"", {"WWW-Authenticate": "Basic"})
        elif self.path.startswith("/simple/torch"):
            status, body = self.behaviour.listing or (200, self._listing().encode())
            self._answer(status, body, {"Content-Type": "text/html"})
        else:
            self._wheel(
                self.behaviour.folder / unquote(urlsplit(self.path).path.rsplit("/", 1)[-1])
            )

    def log_message(self, format: str, *args: object) -> None: ...

    def _listing(self) -> str:
        hashes = self.behaviour.hashes
        names = sorted(path.name for path in self.behaviour.folder.glob("*.whl"))
        digests = {n: f"#sha256={hashes[n]}" if n in hashes else "" for n in names}
        yanked = {n: f' data-yanked="{escape(why)}"' for n, why in self.behaviour.yanked.items()}
        links = "".join(
            f'<a href="/files/{n}?token=s3cret{digests[n]}"{yanked.get(n, "")}>{n}</a>'
            for n in names
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>"

    def _wheel(self, path: Path) -> None:
        asked = self.headers.get("Range", "")
        self.behaviour.asked.append(asked)
        if self.behaviour.status != 200:
            self._answer(self.behaviour.status, b"", {})
            return
        data = path.read_bytes()
        if not (asked and self.behaviour.ranges):
            self._answer(200, data, {})
            return
        first, last = asked.removeprefix("bytes=").split("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = int(last) + 1 if first and last else len(data)
        span = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        self._answer(206, data[start:end], span)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        how = self.behaviour
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if status == 206 or "Content-Type" not in headers:
            time.sleep(how.pause)
            tail = self.headers.get("Range", "").startswith("bytes=-")
            if how.breaks and how.break_after is not None and (how.break_tail or not tail):
                how.breaks -= 1
                body = body[: how.break_after]
                self.close_connection = True
        for at in range(0, len(body), 1 << 16):
            with contextlib.suppress(OSError):  # the client may be gone
                self.wfile.write(body[at : at + (1 << 16)])
            how.sent += len(body[at : at + (1 << 16)])
            time.sleep(how.chunk_pause)
