# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a page's HTML, as far as it can be told without a browser."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
#: Elements that hold nothing but phrases; a block in them is closed by a browser, silently.
PHRASES = frozenset({"p", "span", "bdi", "b", "em", "code", "h1", "h2", "h3", "h4", "summary"})
BLOCKS = frozenset({"p", "div", "ul", "ol", "dl", "table", "section", "pre", "details", "figure"})
Attributes = list[tuple[str, "str | None"]]


def problems(html: str) -> list[str]:
    """Sentences; none for a page, or a part of one, that is well-formed and says its pictures."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    left = [f"<{tag}> is not closed" for tag in reader.open]
    return [*reader.found, *left]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self._element(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self._element(tag, attrs)
        if tag not in VOID and "svg" not in self.open:
            self.found.append(f"<{tag}/> is not closed by its slash")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.found.append(f"</{tag}> closes another element")

    def _element(self, tag: str, attrs: Attributes) -> None:
        said = dict(attrs)
        if len(said) < len(attrs):
            self.found.append(f"<{tag}> says an attribute twice")
        self.found += [f"<{tag}> runs {name}" for name in said if name.startswith("on")]
        if "style" in said or tag == "style" or (tag == "script" and "src" not in said):
            self.found.append(f"<{tag}> is against the policy")
        if tag in BLOCKS and self.open and self.open[-1] in PHRASES:
            self.found.append(f"<{tag}> in <{self.open[-1]}>")
        self._id(said.get("id"))
        self._named(tag, said)

    def _id(self, id: str | None) -> None:
        if id in self.ids:
            self.found.append(f"the id {id} is there twice")
        if id:
            self.ids.add(id)

    def _named(self, tag: str, said: dict[str, str | None]) -> None:
        if tag == "img" and "alt" not in said:
            self.found.append("an image without a text")
        hidden = said.get("aria-hidden") == "true"
        if (
            tag == "svg"
            and not hidden
            and not (said.get("role") == "img" and said.get("aria-label"))
        ):
            self.found.append("a picture without a text")
        if said.get("role") == "region" and not said.get("aria-label"):
            self.found.append("a region without a name")
