# SPDX-License-Identifier: BSD-3-Clause
"""A file of the site, before it is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch_backend_ci.document import Part


@dataclass(frozen=True)
class Page:
    """A page for people and, under `api/`, the same as JSON."""

    path: str
    """In the site, with `/`: `requirement/MEM-003.html`."""
    title: str
    template: str
    """In dashboard/templates."""
    context: Mapping[str, Any]
    """What the template needs besides what `render` gives all: `title`, `path`, `root`, ..."""
    data: Part | None = None
    """The document `api/requirement/MEM-003.json`; None for pages of words only."""


@dataclass(frozen=True)
class File:
    """Any other file: a feed, a picture, an index for the search."""

    path: str
    content: bytes


@dataclass(frozen=True)
class Lasting:
    """A page that need not be made again as long as what it is made from stays."""

    path: str
    """Of the page."""
    of: str
    """All that it depends on besides the code: ids of runs, say."""
    make: Callable[[], Page]


Task = Callable[[], Iterable[Page | File | Lasting]]
"""Makes some of the site, in whichever process."""
