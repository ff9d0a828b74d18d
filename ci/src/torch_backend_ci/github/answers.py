# SPDX-License-Identifier: BSD-3-Clause
"""What is taken as GitHub's answer.

PyGithub takes more: a proxy's page in HTML, or a write that was only sent elsewhere, would pass as
done, and a list whose next page is itself would never end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import github
from requests.utils import parse_header_links

_WITHOUT_BODY = (202, 204, 205)
_ARTIFACT_IS_ELSEWHERE = 302

Answer = tuple[int, dict[str, Any], str]


class NotBelieved(RuntimeError):
    """GitHub does not answer like this; the text says why."""


def guard(client: github.Github) -> None:
    """Whatever the client asks from now on."""
    requester = client.requester
    ask = partial(_ask, requester.requestJson)
    # Everything passes through this method, and PyGithub has no hook for it.
    requester.requestJson = ask  # type: ignore[method-assign]


def _ask(request: Callable[..., Answer], verb: str, url: str, *more: Any, **named: Any) -> Answer:
    status, headers, text = request(verb, url, *more, **named)
    if 300 <= status < 400 and not (verb == "GET" and status == _ARTIFACT_IS_ELSEWHERE):
        raise NotBelieved(f"it sends a {verb} elsewhere ({status}); has the repository moved?")
    if 200 <= status < 300 and status not in _WITHOUT_BODY and text.lstrip()[:1] not in ("{", "["):
        raise NotBelieved(f"it is not JSON ({status}); does a proxy answer?")
    _check_next(url, headers)
    return status, headers, text


def _check_next(url: str, headers: Mapping[str, Any]) -> None:
    """The pages of a list have to come to an end."""
    for link in parse_header_links(str(headers.get("link", ""))):
        if link.get("rel") == "next" and not _goes_on(_query(url), _query(link.get("url", ""))):
            raise NotBelieved("its list goes round in circles")


def _goes_on(here: Mapping[str, list[str]], there: Mapping[str, list[str]]) -> bool:
    """Page by page, or, in lists that go by cursors, anywhere else."""
    if "page" not in there:
        return here != there
    now, then = here.get("page", ["1"])[0], there["page"][0]
    return now.isdecimal() and then.isdecimal() and int(now) < int(then)


def _query(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)
