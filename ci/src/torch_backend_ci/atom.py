# SPDX-License-Identifier: BSD-3-Clause
"""Atom (RFC 4287), for readers of news.

The texts come from pull requests and reports, which anybody can write: in the text of XML it is
escaped by ElementTree; what becomes HTML within that text has to go through `escaped`.
"""

from __future__ import annotations

from html import escape
from xml.etree import ElementTree

from torch_backend_ci.github.markdown import visible

NEVER = "1970-01-01T00:00:00Z"
"""When an empty feed was updated: Atom wants to know."""


def feed(id: str, title: str, updated: str, author: str) -> ElementTree.Element:
    """A feed with all that the standard asks for, still without links and entries."""
    element = ElementTree.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    add(element, "id", id)
    add(element, "title", title)
    add(element, "updated", updated)
    add(add(element, "author"), "name", author)
    return element


def entry(feed: ElementTree.Element, id: str, title: str, updated: str) -> ElementTree.Element:
    """An entry of a feed, still without link and content."""
    element = add(feed, "entry")
    add(element, "id", id)
    add(element, "title", title)
    add(element, "updated", updated)
    return element


def add(
    parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: str
) -> ElementTree.Element:
    """A child with this text, in which nothing is markup or unseen."""
    shown = {name: visible(value) for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, shown)
    element.text = visible(text, keep="\n\t") if text is not None else None
    return element


def escaped(text: str) -> str:
    """Text for the HTML of an entry's content."""
    return escape(visible(text, keep="\n\t"))


def written(feed: ElementTree.Element) -> bytes:
    """The file."""
    ElementTree.indent(feed, " ")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(feed) + b"\n"
