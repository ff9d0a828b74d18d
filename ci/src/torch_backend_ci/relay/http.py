# SPDX-License-Identifier: BSD-3-Clause
"""Requests that carry a token: to the host that was named and no other, repeated with patience.

Where an answer was lost, or is one that may be another one later, the request is sent again. The
relay remembers callbacks, so it recognises one that arrives twice (client.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from torch_backend_ci.errors import CiError

_TIMEOUT = 30  # seconds for one answer
_TRIES_MORE = 4
_BACKOFF = 1.0  # seconds, doubled with each try
_WINDOW = 61.0  # seconds that the relay looks back to limit the rate; it does not say Retry-After
_LONGEST_WAIT = 120  # seconds, whatever a server asks for
_AGAIN = (429, 500, 502, 503, 504)
_MAX_ANSWER = 64 << 10  # bytes
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    content: Any  # of the JSON; None where it is none

    def text(self, key: str) -> str:
        """A text in it, empty if it has none."""
        value = self.content.get(key) if isinstance(self.content, dict) else None
        return value if isinstance(value, str) else ""


def require_safe(url: str, what: str) -> str:
    """The address, if a token may be sent there."""
    try:
        parts = urlsplit(url)
        local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        raise CiError(f"{what} is not an address") from None
    if (parts.scheme != "https" and not local) or not parts.hostname or "@" in parts.netloc:
        raise CiError(f"{what} must be an https address without a password in it")
    return url


def ask(
    method: str,
    url: str,
    token: str,
    body: bytes | None = None,
    params: Mapping[str, str] | None = None,
) -> Answer:
    """Send a request and hear the answer, whatever its status; CiError if there is none.

    No message has the token or the address's query in it.
    """
    host = urlsplit(url).hostname
    with requests.Session() as session:
        adapter = HTTPAdapter(max_retries=_retry(method))
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        try:
            with session.request(
                method,
                url,
                params=params,
                data=body,
                headers={"Content-Type": "application/json", "User-Agent": "puone-ci"},
                auth=_Bearer(token),
                timeout=_TIMEOUT,
                allow_redirects=False,
                stream=True,
            ) as response:
                data = response.raw.read(_MAX_ANSWER, decode_content=True)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise CiError(f"no answer from {host}: {type(error).__name__}; try again") from None
    try:
        return Answer(response.status_code, json.loads(data))
    except (ValueError, RecursionError):
        return Answer(response.status_code, None)


class _Bearer(requests.auth.AuthBase):
    """Given as `auth`, or a .netrc would take the header's place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Patience(Retry):
    """Waits until a window of the relay's rate limit has passed."""

    def get_backoff_time(self) -> float:
        limited = self.history and self.history[-1].status == 429
        return _WINDOW if limited else super().get_backoff_time()


def _retry(method: str) -> Retry:
    return _Patience(
        total=_TRIES_MORE,
        backoff_factor=_BACKOFF,
        status_forcelist=_AGAIN,
        allowed_methods={method},
        retry_after_max=_LONGEST_WAIT,
        raise_on_status=False,
        redirect=False,
    )
