# SPDX-License-Identifier: BSD-3-Clause
"""The two hosts that a fake answers as: the API, and the storage that downloads come from.

They go on listening when a fake ends, and serve the next one: to start and stop them costs more
than most tests.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Protocol

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.wrappers import Request, Response

from github_fake.handling import Reply


class Closed(Exception):
    """The connection ends, with what is given as its last bytes."""


@dataclass
class Sent:
    """A reply and how much of its body arrives; all of it for None."""

    reply: Reply
    cut: int | None = None


class Site(Protocol):
    """What answers."""

    def answer(self, request: Request) -> Sent:
        """As the API."""

    def download(self, request: Request) -> Sent:
        """As the storage."""


class Hosts:
    """Both, for one site at a time."""

    def __init__(self) -> None:
        self.site: Site | None = None
        api, storage = (ThreadedWSGIServer("127.0.0.1", 0, a, _Handler) for a in self._apps())
        self.url = f"http://127.0.0.1:{api.server_port}"
        self.storage_url = f"http://localhost:{storage.server_port}"
        for server in (api, storage):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def _apps(self) -> tuple[Any, Any]:
        return self._api, self._storage

    def _api(self, environ: Any, start_response: Any) -> Any:
        return _send(environ, start_response, lambda: self._site().answer(Request(environ)))

    def _storage(self, environ: Any, start_response: Any) -> Any:
        return _send(environ, start_response, lambda: self._site().download(Request(environ)))

    def _site(self) -> Site:
        if self.site is None:
            raise Closed
        return self.site


_idle: list[Hosts] = []


def take(site: Site) -> Hosts:
    """Hosts that nobody uses."""
    hosts = _idle.pop() if _idle else Hosts()
    hosts.site = site
    return hosts


def give_back(hosts: Hosts) -> None:
    """For the next one."""
    hosts.site = None
    _idle.append(hosts)


def _send(environ: Any, start_response: Any, answer: Any) -> Any:
    connection = environ["werkzeug.socket"]
    try:
        sent = answer()
        response = _response(sent.reply)
        if sent.cut is None:
            return response(environ, start_response)
        head = f"HTTP/1.1 {response.status}\r\n{response.headers}".encode()
        connection.sendall(head + response.get_data()[: sent.cut])
    except Closed as closed:
        with contextlib.suppress(OSError):  # the client may be gone
            connection.sendall(b"".join(closed.args))
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def _response(reply: Reply) -> Response:
    if isinstance(reply.body, bytes):
        data = reply.body
    else:
        data = b"" if reply.body is None else json.dumps(reply.body).encode()
    headers = {
        "content-type": "application/json; charset=utf-8",
        "x-ratelimit-limit": "5000",
        "x-ratelimit-remaining": "4999",
        "x-ratelimit-reset": str(int(time.time()) + 3600),
        "x-github-request-id": "C0DE:1",
    } | reply.headers
    return Response(data, reply.status, headers)


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True

    def log(self, type: str, message: str, *args: Any) -> None: ...

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        self.close_connection = True
