# SPDX-License-Identifier: BSD-3-Clause
"""A page as its readers have it: the text, the links, and a document that keeps its promise."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import schemas_of

from torch_backend_ci.dashboard import render
from torch_backend_ci.dashboard.page import Lasting, Page
from torch_backend_ci.dashboard.pages import compare
from torch_backend_ci.dashboard.read import Model


@dataclass
class Shown:
    """What became of a page."""

    html: str
    text: str
    """With one space between words; of pictures what they say to those who do not see them."""
    links: list[str]
    """Paths in the site, of links that lead to another page of it."""
    tags: set[str]
    data: dict[str, Any]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open = tag
        said = dict(attrs)
        self.words.append(said.get("aria-label") or "")
        link = said.get("href") or ""
        if tag == "a":
            self.links.append(link)

    def handle_data(self, data: str) -> None:
        if self.open != "title":  # Says what `aria-label` says.
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.open = ""


def shown(page: Page) -> Shown:
    """Render a page; its document must have the schema that it names."""
    html = next(iter(render.render(page))).content.decode()
    reader = _Reader()
    reader.feed(html[html.index("<main") : html.index("</main>")])
    inside = [link for link in reader.links if not link.startswith("http")]
    links = [_target(page.path, link) for link in inside if not link.startswith("#")]
    for link in inside:
        assert not link.startswith("#") or f'id="{link[1:]}"' in html, f"nothing has the id {link}"
    data = json.loads(render.encode(page.data))
    valid(data)
    text = re.sub(r" (?=[,.;](?: |$))", "", " ".join(" ".join(reader.words).split()))
    return Shown(html, text, links, reader.tags, data)


def valid(data: dict[str, Any]) -> None:
    """Hold a document to its schema in torch_backend_ci."""
    schemas_of.valid(data, data["schema"].removeprefix("urn:torch-conformance:").rpartition(":")[0])


def _target(path: str, link: str) -> str:
    """What a relative link leads to."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    assert not link.startswith("/"), f"{link} works only where the site is at the root of a server"
    assert not target.startswith("../"), f"{link} leads out of the site"
    return target


def comparisons(model: Model) -> list[Lasting]:
    """Every page that compares two runs."""
    return [page for part in compare.parts(model) for page in part()]
