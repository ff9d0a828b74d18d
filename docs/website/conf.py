# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx's configuration of the documentation site; README.md in this directory explains it.

Names in lower case are Sphinx's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch_puone

sys.path.insert(0, str(Path(__file__).parents[1]))
from website import sources  # (what is documented has to be imported first)

project = "torch-puone"
author = "the torch-puone authors"
copyright = f"{author}, BSD-3-Clause"
version = release = torch_puone.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx.ext.napoleon",
    "website.sources",
    "website.crossings",
    "website.terms",
]
smartquotes = False
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = True
# Types of others, of which there is no inventory without a network, and private ones; those of ours
# that are public must be found.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!torch\.puone|torch_puone|torch_conformance\.authoring\.api).*|.*\._[A-Za-z].*"),
    (r"(c|cpp):.*", r"(?!puone).*|puone_\w+_s|puone_dtype"),
]

myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
# Reports that commands print begin with a heading of the second level, because a comment on a pull
# request does.
suppress_warnings = ["myst.header"]

default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "torch-puone"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_copy_source = False
# Excerpts of pages need a server.
html_show_search_summary = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": False}

linkcode_resolve = sources.linkcode_resolve
