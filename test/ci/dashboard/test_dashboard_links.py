# SPDX-License-Identifier: BSD-3-Clause
"""The site as files: no link leads nowhere, and every page is what the HTML standard says."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dashboard_pages
from dashboard_site import KINDS, files, of_kind, telling
from page_rules import broken, complaints, places


def test_no_link_leads_nowhere(site: Path) -> None:
    assert [problem for path in files(site) for problem in broken(site, path)] == []


def test_an_id_is_of_one_element_and_what_is_named_is_there(site: Path) -> None:
    for path in files(site):
        found = places(site / path)
        assert [id for id, count in found.ids.items() if count > 1 or not id] == [], path
        assert sorted(set(found.named) - found.ids.keys()) == [], path


def test_every_page_can_be_reached_from_the_overview(site: Path) -> None:
    reached, new = {"index.html"}, ["index.html"]
    while new:
        path = new.pop()
        for link in places(site / path).links:
            to = urlsplit(link)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(to.path)))
            if not to.scheme and target.endswith(".html") and target not in reached:
                reached.add(target)
                new.append(target)
    assert sorted(set(files(site)) - reached) == []


def test_every_document_is_what_its_schema_says(site: Path) -> None:
    kinds = set()
    for file in (site / "api").rglob("*.json"):
        data = json.loads(file.read_bytes())
        if "schema" in data:
            kinds.add(data["schema"])
            dashboard_pages.valid(data)
    assert len(kinds) > 10


def test_pages_are_valid_html(site: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><p><div></p>", encoding="utf-8")
    pages = [site / path for kind in KINDS for path in telling(site, of_kind(site, kind))]
    found = complaints(wrong, *pages)
    assert found.pop(str(wrong)), "it finds nothing"
    assert found == {}
