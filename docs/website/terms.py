# SPDX-License-Identifier: BSD-3-Clause
"""The words of docs/glossary.md: each has an anchor, and a page links to it at its first use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.typing import ExtensionMetadata

from website.glossary import PAGE, anchor, defined, pattern, words
from website.sources import reference

#: Pages that are made from sources, in which a word is part of a comment or an identifier.
GENERATED = ("requirements/", "python/", "cpp/", "docs/surface/examples/", "docs/results/2")
_NOT_IN = (nodes.reference, nodes.title, nodes.literal, nodes.literal_block, pending_xref)


class Anchors(SphinxTransform):
    """A row of the glossary has the anchor of its word."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Change the document."""
        if self.env.docname != PAGE:
            return
        for row in self.document.findall(nodes.row):
            cell = row[0]
            if isinstance(cell, nodes.Element) and cell.astext() in words():
                cell["ids"].append(anchor(cell.astext()))


class FirstUses(SphinxPostTransform):
    """The first use of a word on a page is a link to its definition."""

    default_priority = 6  # before references are resolved, after what is in backticks

    def run(self, **kwargs: Any) -> None:
        """Change the document."""
        if self.env.docname == PAGE or self.env.docname.startswith(GENERATED):
            return
        seen: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            if _is_prose(text):
                parts = list(self._parts(text.astext(), seen))
                if len(parts) > 1:
                    text.parent.replace(text, parts)

    def _parts(self, text: str, seen: set[str]) -> Iterator[nodes.Node]:
        """The text with links instead of the words that are not `seen` yet, which then are."""
        end = 0
        for match in pattern().finditer(text):
            word = defined(match[0])
            if word in seen:
                continue
            seen.add(word)
            yield nodes.Text(text[end : match.start()])
            content = nodes.inline("", match[0], classes=["term"])
            yield reference(f"{PAGE}.md#{anchor(word)}", content, self.env.docname)
            end = match.end()
        yield nodes.Text(text[end:])


def _is_prose(text: nodes.Text) -> bool:
    """Whether a text is in a paragraph, and is neither code nor a link."""
    node, paragraph = text.parent, False
    while node is not None and not isinstance(node, nodes.document):
        if isinstance(node, _NOT_IN):
            return False
        paragraph = paragraph or isinstance(node, nodes.paragraph)
        node = node.parent
    return paragraph


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls."""
    app.add_transform(Anchors)
    app.add_post_transform(FirstUses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
