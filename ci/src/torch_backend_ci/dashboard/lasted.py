# SPDX-License-Identifier: BSD-3-Clause
"""Reuse pages of the previous build whose inputs and code are unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from torch_backend_ci.dashboard import code, paths
from torch_backend_ci.dashboard.page import File, Lasting
from torch_backend_ci.dashboard.site import Site
from torch_conformance.results.writing import replace

FILE = "lasting.json"

Entry = tuple[str, str]
"""What a page was made from, and the digest of its files."""


class Lasted:
    """The lasting pages of a site, as the build before said. A cache: it may be lost or wrong."""

    def __init__(self, site: Site, notice: str | None) -> None:
        """`notice` is what every page says, and so a part of what they are made by."""
        self._site = site
        self._by = f"{code.digest()} {notice or ''}"
        self._file = site.hidden / FILE
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            self._known = found["pages"] if found["code"] == self._by else {}
        except (OSError, ValueError, LookupError, TypeError):
            self._known = {}

    def files(self, page: Lasting) -> list[File]:
        """The files of the page if they are there and as they would be made, else none."""
        of, digest = self._known.get(page.path, (None, None))
        if of != page.of:
            return []
        try:
            names = [name for name in (page.path, paths.api(page.path)) if self._is_there(name)]
            found = [File(name, (self._site.path / name).read_bytes()) for name in names]
        except OSError:
            return []
        return found if _digest(found) == digest else []

    def _is_there(self, name: str) -> bool:
        return (self._site.path / name).is_file()

    def entry(self, page: Lasting, files: Iterable[File]) -> Entry:
        """What is to be kept about a page."""
        return page.of, _digest(files)

    def keep(self, entries: Mapping[str, Entry]) -> None:
        """For the next build. If this one ends before the site is there, nothing will match."""
        replace(self._file, json.dumps({"code": self._by, "pages": entries}))


def _digest(files: Iterable[File]) -> str:
    made = hashlib.sha256()
    for file in files:
        made.update(f"{file.path} {len(file.content)}\n".encode() + file.content)
    return made.hexdigest()
