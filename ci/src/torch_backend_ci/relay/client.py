# SPDX-License-Identifier: BSD-3-Clause
"""Report a job to the relay; a repeated report ends in the same state.

The relay knows a job as dispatched, in progress, completed, in this order, and refuses a step taken
twice or left out. It says "invalid state transition" to both, so that one has to ask: a job that it
takes as in progress was not, and a job that it does not is completed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import printable
from torch_backend_ci.relay import http, oidc
from torch_backend_ci.relay.http import Answer

DEFAULT_URL = "https://gwuj7w5coh4y4l66urspge6mnm0pwaxq.lambda-url.us-east-1.on.aws/github/callback"
DELIVERED, ALREADY, IGNORED = "delivered", "already reported", "ignored"
ENDED = "ended before"

_MAX_BODY = (2 << 20) - (64 << 10)  # bytes; behind the relay 2 MB with its own words are taken
_OUT_OF_ORDER = "invalid state transition"
_SAID = 300  # characters of what the relay said
_CURES = {
    400: "it does not take this callback; if it knows no dispatch, that was more than three days "
    "ago, or was not its own",
    401: "it does not take the OIDC token of this job",
    403: "this repository or pipeline is not registered with it",
    404: "is it the address that ends in /github/callback?",
    405: "is it the address that ends in /github/callback?",
    413: "the callback is too large",
    429: "more callbacks in a minute than it takes of one repository; report fewer jobs",
}

Body = Mapping[str, Any]


class Relay:
    """One relay, spoken to by one job."""

    def __init__(self, url: str, mint: Callable[[], str] = oidc.mint) -> None:
        self._url = http.require_safe(url, "the relay's address").rstrip("/")
        self._mint = mint
        self._token: str | None = None

    def tell(self, body: Body, before: Body | None = None) -> str:
        """Tell it `body`, and first what comes `before` it where the relay does not know that yet.

        ENDED if for the relay the job has ended: somebody reported it, or it has waited too long.
        CiError if it does not take it.
        """
        answer = self._send(body)
        if not _is_out_of_order(answer):
            return self._judged(answer)
        if before is None:
            return ALREADY
        first = self._send(before)
        if _is_out_of_order(first):
            return ENDED
        self._judged(first)
        return self._judged(self._send(body))

    def _send(self, body: Body) -> Answer:
        """One callback. A token lives for minutes: one that is refused is replaced once."""
        data = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        if len(data) > _MAX_BODY:
            raise CiError(f"the callback has {len(data)} bytes, the relay takes {_MAX_BODY}")
        self._token = self._token or self._mint()
        answer = http.ask("POST", self._url, self._token, data)
        if answer.status == 401:
            self._token = self._mint()
            answer = http.ask("POST", self._url, self._token, data)
        return answer

    def _judged(self, answer: Answer) -> str:
        if answer.status == 409:
            return ALREADY
        if answer.status != 200:
            raise CiError(f"the relay answered {answer.status}{self._said(answer)}{_cure(answer)}")
        status = answer.text("status")
        if isinstance(answer.content, dict) and answer.content.get("ok") is True and status:
            return {"ignored": IGNORED, "duplicate": ALREADY}.get(status, DELIVERED)
        raise CiError("the relay answered 200 and not what a relay says; is the address right?")

    def _said(self, answer: Answer) -> str:
        detail = answer.text("detail").replace(self._token or "\0", "***")
        return f" ({printable(detail[:_SAID])})" if detail else ""


def _is_out_of_order(answer: Answer) -> bool:
    return answer.status == 400 and _OUT_OF_ORDER in answer.text("detail")


def _cure(answer: Answer) -> str:
    if answer.status >= 500:
        return ": it, or what is behind it, is out of order; run this again later"
    if 300 <= answer.status < 400:
        return ": it sends us elsewhere, and a token is not sent after it"
    cure = _CURES.get(answer.status)
    return f": {cure}" if cure else ""
