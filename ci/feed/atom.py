# SPDX-License-Identifier: BSD-3-Clause
"""The feed as Atom (RFC 4287), for readers of news.

Titles and declarations come from pull requests: in the text of XML they are escaped by ElementTree,
in the HTML within that text here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any
from xml.etree import ElementTree

from ci.feed.entry import Entry
from ci.github.markdown import visible

TITLE = "Changes of PyTorch that out-of-tree backends should know of"
_ATOM = "http://www.w3.org/2005/Atom"
_NEVER = "1970-01-01T00:00:00Z"  # when an empty feed was updated; Atom wants to know


def render(entries: Sequence[Entry], home: str) -> bytes:
    """feed.atom."""
    address = f"{home}/raw/feed/feed.atom"
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _add(feed, "id", address)
    _add(feed, "title", TITLE)
    _add(feed, "updated", entries[0]["merged_at"] if entries else _NEVER)
    _add(feed, "link", rel="self", type="application/atom+xml", href=address)
    _add(feed, "link", rel="alternate", type="text/html", href=home)
    _add(_add(feed, "author"), "name", home.rpartition("/")[2])
    for entry in entries:
        _entry(feed, entry)
    ElementTree.indent(feed, " ")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(feed) + b"\n"


def _entry(feed: ElementTree.Element, entry: Entry) -> None:
    element = _add(feed, "entry")
    _add(element, "id", f"{entry['url']}#{entry['commit']}")
    _add(element, "title", _title(entry))
    _add(element, "updated", entry["merged_at"])
    _add(element, "link", rel="alternate", type="text/html", href=entry["url"])
    for label in entry["labels"]:
        _add(element, "category", term=label)
    _add(element, "content", "\n".join(_html(entry)), type="html")


def _title(entry: Entry) -> str:
    severity = _words(entry["severity"] or "touched")
    return f"[{severity}: {', '.join(_about(entry))}] {entry['title']} (#{entry['pr']})"


def _about(entry: Entry) -> list[str]:
    backend = ["reference backend"] if entry["reference_backend"] else []
    return [*entry["surfaces"], *backend]


def _html(entry: Entry) -> Iterator[str]:
    if entry["reverts"]:
        yield f"<p>Takes back <code>{escape(entry['reverts'])}</code>.</p>"
    if not entry["judged"]:
        yield "<p>Its files were not compared with a torch: there may be findings.</p>"
    for finding in entry["findings"]:
        yield from _finding(finding)
    if entry["findings_left_out"]:
        yield f"<p>... and {entry['findings_left_out']} more.</p>"
    if entry["reference_backend"]:
        files = "".join(f"<li><code>{_escaped(f)}</code></li>" for f in entry["reference_backend"])
        yield f"<p>Changes the reference backend:</p><ul>{files}</ul>"
    if entry["reference_backend_left_out"]:
        yield f"<p>... and {entry['reference_backend_left_out']} more files.</p>"


def _finding(finding: dict[str, Any]) -> Iterator[str]:
    yield f"<h4>{_words(finding['severity'])}: <code>{_escaped(finding['name'])}</code></h4>"
    yield f"<p>{_escaped(finding['message'])}</p>"
    sides = (("-", finding["before"]), ("+", finding["after"]))
    lines = [f"{sign} {_escaped(text)}" for sign, text in sides if text is not None]
    if lines:
        yield f"<pre>{chr(10).join(lines)}</pre>"
    if finding["hint"]:
        yield f"<p>{_escaped(finding['hint'])}</p>"
    if finding["used_by"]:
        yield f"<p>Used by {_escaped(', '.join(finding['used_by']))}.</p>"


def _add(
    parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: str
) -> ElementTree.Element:
    shown = {name: visible(value) for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, shown)
    element.text = visible(text, keep="\n\t") if text is not None else None
    return element


def _escaped(text: str) -> str:
    return escape(visible(text, keep="\n\t"))


def _words(name: str) -> str:
    return name.replace("_", " ")
