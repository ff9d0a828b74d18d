# SPDX-License-Identifier: BSD-3-Clause
"""Links between the guide and the requirements, and what makes pages usable with a keyboard."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.typing import ExtensionMetadata

from torch_conformance.spec import catalogue
from torch_conformance.spec.chapters import chapters
from website import requirements
from website.sources import reference


class RequirementIds(SphinxPostTransform):
    """An id of a requirement in backticks is a link to it."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Change the document."""
        for literal in list(self.document.findall(nodes.literal)):
            if literal.astext() in _REQUIREMENTS and not _linked(literal):
                surface = _REQUIREMENTS[literal.astext()].surface
                target = f"{_page(surface)}#{literal.astext().lower()}"
                literal.replace_self(reference(target, literal.deepcopy(), self.env.docname))


class Chapters(SphinxPostTransform):
    """A section of the guide ends with links to the chapters that require what it shows."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Change the document."""
        for anchor, surfaces in _chapters_of(self.env.docname).items():
            place = _section(self.document, anchor)
            if place is None:
                raise ValueError(f"guides.yaml: {self.env.docname} has no section {anchor!r}")
            text = nodes.paragraph("", "Requirements: ", classes=["requirements"])
            for index, surface in enumerate(surfaces):
                text += nodes.Text(", " if index else "")
                title = nodes.inline("", chapters()[surface].title)
                text += reference(_page(surface), title, self.env.docname)
            below = [each for each in place.children if isinstance(each, nodes.section)]
            place.insert(place.index(below[0]) if below else len(place.children), text)


def _chapters_of(docname: str) -> dict[str, list[str]]:
    """The chapters that link to a document, by the anchor of the section."""
    found: dict[str, list[str]] = defaultdict(list)
    for surface, places in requirements.guides().items():
        for place in places:
            path, _, anchor = place.partition("#")
            if path.rpartition(".")[0] == docname:
                found[anchor].append(surface)
    return found


def _section(document: nodes.document, anchor: str) -> nodes.section | None:
    for each in document.findall(nodes.section):
        if not anchor or anchor == each.get("slug"):
            return each
    return None


def _linked(node: nodes.Node) -> bool:
    while node is not None and not isinstance(node, nodes.document):
        if isinstance(node, (nodes.reference, nodes.title, pending_xref)):
            return True
        node = node.parent
    return False


def _page(surface: str) -> str:
    return f"{requirements.DIRECTORY}/{surface}.rst"


def _accessible(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Complete what the theme leaves out for readers without a mouse or a screen."""
    # Code that is wider than the page is scrolled with the keyboard, too.
    context["body"] = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


_REQUIREMENTS = catalogue.load()


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls."""
    app.add_post_transform(RequirementIds)
    app.add_post_transform(Chapters)
    app.connect("html-page-context", _accessible, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": False}
