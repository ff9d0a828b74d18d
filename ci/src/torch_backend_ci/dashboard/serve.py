# SPDX-License-Identifier: BSD-3-Clause
"""A site on this machine, for looking at it: files and nothing else, with strict headers."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from torch_backend_ci.dashboard.render import POLICY
from torch_backend_ci.dashboard.site import MARK
from torch_backend_ci.errors import CiError

HOST = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of a site; a site that is rebuilt meanwhile is served from then on."""

    extensions_map = {  # noqa: RUF012 - as in the base class
        "": "application/octet-stream",
        ".atom": "application/atom+xml; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
    }

    def end_headers(self) -> None:
        """Every answer has them, errors too."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """A directory is its index.html."""
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing for what went well."""

    def log_error(self, format: str, *args: Any) -> None:
        """Log a missing file, with characters that are safe on a terminal."""
        super().log_message("%s", ascii(f"{self.path}: {format % args}")[1:-1])


def server(site: Path, port: int) -> ThreadingHTTPServer:
    """Listens on this machine only; port 0 takes a free one. CiError if that cannot be."""
    if not (site / MARK).is_file():
        raise CiError(f"{site} is not a site: make it with `torch-backend-ci dashboard build`")
    handler = functools.partial(Handler, directory=str(site))
    try:
        return ThreadingHTTPServer((HOST, port), handler)
    except OSError as error:
        raise CiError(f"cannot listen on {HOST}:{port}: {error.strerror}; try --port 0") from error
