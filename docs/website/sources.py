# SPDX-License-Identifier: BSD-3-Clause
"""Links to files of the repository, and a page for every file that something links to.

A link in a document to a file that is not a page, a file's path in backticks, the role ``source``
and the links of the Python API lead to these pages, which have an anchor for each line.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import ReferenceRole
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = "source"
#: A link of linkcode to a line of a file, until it is known from where.
SCHEME = "source:"


class Source(ReferenceRole):
    """``source`` links to a file, or a line of it: ``csrc/hal/hal.h#L10``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference that `_resolve` finds."""
        path, _, line = self.target.partition("#L")
        text = self.title if self.has_explicit_title else f"{path}:{line}" if line else path
        return [reference(self.target, nodes.literal(text, text), self.env.docname)], []


class Section(ReferenceRole):
    """``section`` links to a document by its path in the repository: ``docs/hal.md#anchor``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference that MyST resolves."""
        return [section(self.target, self.title, self.env.docname)], []


class NamedFiles(SphinxPostTransform):
    """Makes links of what is only text: paths in backticks, and links of linkcode."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        """Change the document."""
        for literal in list(self.document.findall(nodes.literal)):
            path = literal.astext()
            if isinstance(literal.parent, nodes.TextElement) and _is_named(literal, path):
                literal.replace_self(reference(path, literal.deepcopy(), self.env.docname))
        for xref in list(self.document.findall(pending_xref)):
            # MyST asks nobody else about a path that is not a page.
            content = xref.next_node()
            if xref["reftype"] == "myst" and xref["refdomain"] is None and content is not None:
                xref.replace_self(_resolve(self.app, self.env, xref, content) or xref)
        for link in self.document.findall(nodes.reference):
            if link.get("refuri", "").startswith(SCHEME):
                path = link["refuri"].removeprefix(SCHEME)
                link["refuri"] = _uri(self.app, self.env.docname, path)


def section(target: str, title: str, docname: str) -> pending_xref:
    """A reference to a section of a document, or to the document."""
    path, _, anchor = target.partition("#")
    text = nodes.inline("", title)
    return pending_xref(
        "",
        text,
        refdomain="doc",
        reftype="myst",
        reftarget=path.rpartition(".")[0],
        reftargetid=anchor or None,
        refdoc=docname,
        refexplicit=True,
    )


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where linkcode finds the source of a Python object: a link that NamedFiles completes."""
    if domain != "py" or not info["module"]:
        return None
    found: Any = importlib.import_module(info["module"])
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    found = found.fget if isinstance(found, property) else found
    try:
        file = Path(inspect.getsourcefile(inspect.unwrap(found)) or "").resolve()
        line = inspect.getsourcelines(inspect.unwrap(found))[1]
    except (TypeError, OSError):
        return None  # a value, or what the extension module defines
    return f"{SCHEME}{file.relative_to(ROOT)}#L{line}" if file.is_relative_to(ROOT) else None


def _is_named(literal: nodes.literal, path: str) -> bool:
    inside = literal.parent
    while isinstance(inside, nodes.inline):
        inside = inside.parent
    linked = isinstance(inside, (nodes.reference, pending_xref))
    return not linked and "/" in path and not path.startswith("/") and (ROOT / path).is_file()


def reference(target: str, content: nodes.Node, docname: str) -> pending_xref:
    """A reference to a file of the repository or of the generated pages, with an anchor."""
    return pending_xref(
        "", content, refdomain=None, reftype="source", reftarget=target, refdoc=docname
    )


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node
) -> nodes.reference | None:
    """The page of a file, or the document that it is, for a path in a link."""
    if node["reftype"] not in ("source", "myst"):
        return None
    path, anchor, line = node["reftarget"].partition("#")
    if node["reftype"] == "myst":
        directory = posixpath.dirname(node["refdoc"])
        path = posixpath.normpath(posixpath.join(directory, path))
    if (ROOT / path).is_dir():
        path += "/README.md"
    docname = path.rpartition(".")[0]
    if docname in env.found_docs:
        uri = app.builder.get_relative_uri(node["refdoc"], docname) + anchor + line
    elif (ROOT / path).is_file():
        uri = _uri(app, node["refdoc"], f"{path}{anchor}{line}")
    else:
        return None
    return nodes.reference("", "", content, internal=True, refuri=uri)


def _uri(app: Sphinx, docname: str, target: str) -> str:
    """Of a line in the page of a file, which will be made."""
    path, anchor, line = target.partition("#")
    _linked(app).add(path)
    page = app.builder.get_relative_uri(docname, "index").removesuffix("index.html")
    return f"{page}{DIRECTORY}/{path}.html{anchor}" + line.replace("L", "L-")


def _linked(app: Sphinx) -> set[str]:
    """The paths of the files that something links to."""
    files: set[str] = app.__dict__.setdefault("website_sources", set())
    return files


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(page, context, template) of every file that something links to."""
    formatter = HtmlFormatter(linespans="L", wrapcode=True)
    for path in sorted(_linked(app)):
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        text = (ROOT / path).read_text()
        body = (
            f"<h1>{path}</h1><p>This page shows the file <code>{path}</code> of the repository.</p>"
            + highlight(text, lexer, formatter)
        )
        yield f"{DIRECTORY}/{path}", {"title": path, "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls."""
    app.add_role("source", Source())
    app.add_role("section", Section())
    app.add_post_transform(NamedFiles)
    app.connect("missing-reference", _resolve)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
