# SPDX-License-Identifier: BSD-3-Clause
"""Replies that do not depend on the operation: refusals, pages, and where to ask instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from werkzeug.wrappers import Request

from github_fake.handling import Listing, Reply
from github_fake.world import Refusal, World

PAGE, LARGEST_PAGE = 30, 100
DOCUMENTATION = "https://docs.github.com/rest"


def named(parameters: Mapping[str, str]) -> str | None:
    """The repository in a path."""
    if "repo" not in parameters:
        return None
    return f"{parameters['owner']}/{parameters['repo']}".lower()


def refused(refusal: Refusal) -> Reply:
    """GitHub's no."""
    headers = {}
    body: dict[str, Any] = {"message": refusal.message, "documentation_url": DOCUMENTATION}
    body["status"] = str(refusal.status)
    if refusal.status == 403 and refusal.errors:
        needs = "; ".join(f"{what}={level}" for what, level in refusal.errors[0])
        headers["x-accepted-github-permissions"] = needs
    elif refusal.errors:
        body["errors"] = refusal.errors
    return Reply(refusal.status, body, headers)


def paged(listing: Listing, request: Request, url: str) -> Reply:
    """The page that is asked for, and links to the others."""
    size = min(max(int(request.args.get("per_page", PAGE)), 1), LARGEST_PAGE)
    page = max(int(request.args.get("page", 1)), 1)
    last = max(-(-len(listing.things) // size), 1)
    body: Any = [listing.render(x) for x in listing.things[(page - 1) * size : page * size]]
    if listing.key:
        body = {"total_count": len(listing.things), listing.key: body}
    pages = {"prev": page - 1, "first": 1} if page > 1 else {}
    pages |= {"next": page + 1, "last": last} if page < last else {}
    links = [
        f'<{url}{request.path}?{urlencode({**request.args, "page": number})}>; rel="{relation}"'
        for relation, number in pages.items()
    ]
    return Reply(200, body, {"link": ", ".join(links)} if links else {})


def moved(world: World, name: str, request: Request, url: str) -> Reply:
    """A renamed repository sends on who reads, and who writes too, but few clients go there."""
    rest = urlsplit(request.environ["REQUEST_URI"]).path.split("/", 4)[4:]
    where = "/".join([f"{url}/repos/{world.moved[name]}", *rest])
    status = 301 if request.method == "GET" else 307
    return Reply(status, {"message": "Moved Permanently"}, {"location": where})
