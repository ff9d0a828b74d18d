# SPDX-License-Identifier: BSD-3-Clause
"""The feed of regressions: what RFC 4287 asks for, one entry for a run, ids that never change."""

from __future__ import annotations

import re
from datetime import datetime
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
import synthetic
from dashboard_findings import model
from dashboard_pages import comparisons
from dashboard_sample import BROKEN, CHECKS, HOSTILE, SLOWED, report, sample
from synthetic import Content

from torch_backend_ci import atom
from torch_backend_ci.dashboard import pairs, paths
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import feed
from torch_backend_ci.dashboard.read import Model

ATOM = "{http://www.w3.org/2005/Atom}"
WRONG = {"outcome": "fail", "message": "3 of 8 elements differ"}


class Seen(HTMLParser):
    """The tags and the text of an entry's content."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def night(day: int, month: int = 11, **more: Any) -> Content:
    return report(started=f"2026-{month:02}-{day:02}T02:00:00+00:00", **more)


def read(made: Model) -> ElementTree.Element:
    (file,) = feed.pages(made)
    assert file.path == "feed.atom"
    root = ElementTree.fromstring(file.content)
    assert_valid(root)
    return root


def assert_valid(root: ElementTree.Element) -> None:
    """What RFC 4287 demands of a feed and its entries (sections 4.1.1 and 4.1.2)."""
    assert root.tag == f"{ATOM}feed"
    assert root.findtext(f"{ATOM}author/{ATOM}name")
    ids = []
    for element in (root, *root.findall(f"{ATOM}entry")):
        for needed in ("id", "title", "updated"):
            (found,) = element.findall(f"{ATOM}{needed}")
            assert found.text
        ids.append(element.findtext(f"{ATOM}id") or "")
        updated = element.findtext(f"{ATOM}updated") or ""
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", updated)
        datetime.strptime(updated, "%Y-%m-%dT%H:%M:%SZ")
        links = [(link.get("rel"), link.get("type")) for link in element.findall(f"{ATOM}link")]
        assert len(links) == len(set(links))
        assert ("alternate", "text/html") in links
    assert len(ids) == len(set(ids))
    assert all(id.startswith("urn:") for id in ids)


def content(entry: ElementTree.Element) -> Seen:
    element = entry.find(f"{ATOM}content")
    assert element is not None
    assert element.get("type") == "html"
    seen = Seen()
    seen.feed(element.text or "")
    return seen


def links(element: ElementTree.Element) -> list[str]:
    return [link.get("href") or "" for link in element.findall(f"{ATOM}link")]


def test_a_run_with_regressions_is_one_entry_that_links_its_comparison() -> None:
    outcomes: dict[str, Any] = {BROKEN: WRONG, SLOWED: "crash"}
    made = model([night(1), night(2, outcomes=outcomes), night(3)])
    old, new, _ = made.series[Key("cpu", "2.13")].runs
    root = read(made)
    (entry,) = root.findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "cpu, torch 2.13: 2 regressions on 2026-11-02"
    assert entry.findtext(f"{ATOM}id") == f"urn:torch-conformance:dashboard:regressions:{new.id}"
    assert entry.findtext(f"{ATOM}updated") == "2026-11-02T02:00:00Z"
    assert root.findtext(f"{ATOM}updated") == "2026-11-02T02:00:00Z"
    assert links(entry) == [paths.of_comparison(old, new)]
    assert links(entry)[0] in {page.path for page in comparisons(made)}
    terms = [category.get("term") for category in entry.findall(f"{ATOM}category")]
    assert terms == ["cpu", "torch 2.13"]
    seen = content(entry)
    assert f"{BROKEN}: pass → fail: N of N elements differ" in seen.text
    assert "compared with the run of 2026-11-01" in seen.text


def test_without_regressions_there_is_a_valid_feed_without_entries() -> None:
    for reports in ([], [night(1, outcomes={BROKEN: WRONG})], [night(1), night(2)]):
        root = read(model(reports))
        assert root.findall(f"{ATOM}entry") == []
        assert root.findtext(f"{ATOM}updated") == atom.NEVER


def test_the_newest_hundred_are_told_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert feed.NEWEST == 100
    monkeypatch.setattr(feed, "NEWEST", 3)
    reports = [night(day, outcomes={BROKEN: WRONG} if day % 2 else {}) for day in range(1, 12)]
    root = read(model(reports))
    told = [entry.findtext(f"{ATOM}updated") or "" for entry in root.findall(f"{ATOM}entry")]
    assert [moment[:10] for moment in told] == ["2026-11-11", "2026-11-09", "2026-11-07"]


def test_an_entry_whose_comparison_has_no_page_any_more_links_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "NEWEST", 2)
    made = model(night(day, outcomes={BROKEN: WRONG} if day % 2 else {}) for day in range(1, 6))
    there = {page.path for page in comparisons(made)}
    runs = made.series[Key("cpu", "2.13")].runs
    newest, older = (links(entry)[0] for entry in read(made).findall(f"{ATOM}entry"))
    assert newest == paths.of_comparison(runs[3], runs[4])
    assert newest in there
    assert older == paths.of_run(runs[2])


def test_an_entry_keeps_its_id_and_its_words_when_runs_are_added() -> None:
    reports = [night(1), night(2, outcomes={BROKEN: WRONG})]
    before, *_ = read(model(reports)).findall(f"{ATOM}entry")
    more = [night(3), night(4, outcomes={BROKEN: WRONG}), report(backend="other")]
    *_, after = read(model(reports + more)).findall(f"{ATOM}entry")
    assert ElementTree.tostring(before) == ElementTree.tostring(after)


def test_that_the_suite_changed_too_is_said() -> None:
    other: dict[str, Any] = {"source": {"commit": None, "digest": "b" * 64}}
    (entry,) = read(model([night(1), night(2, outcomes={BROKEN: WRONG}, **other)])).findall(
        f"{ATOM}entry"
    )
    assert "did not ask the same: what differs is suite" in content(entry).text


def test_of_many_regressions_the_causes_are_told_and_the_rest_counted() -> None:
    def run(day: int, bad: bool) -> Content:
        records = [
            synthetic.record("MEM-003", "error", n, message=f"kind_{chr(97 + n % 20)} is broken")
            if bad
            else synthetic.record("MEM-003", "pass", n)
            for n in range(200)
        ]
        return synthetic.content(records, started=f"2026-11-{day:02}T02:00:00+00:00")

    (entry,) = read(model([run(1, False), run(2, True)])).findall(f"{ATOM}entry")
    seen = content(entry)
    assert seen.text.count("and 9 more") == feed.MOST_CAUSES
    assert "... and 100 more." in seen.text
    assert "200 regressions" in (entry.findtext(f"{ATOM}title") or "")


def test_nothing_that_a_report_says_is_markup() -> None:
    evil: dict[str, Any] = {id: {"outcome": "fail", "message": HOSTILE} for id in CHECKS}
    made = model([night(1), night(2, outcomes=evil)])
    (entry,) = read(made).findall(f"{ATOM}entry")
    assert content(entry).tags <= {"p", "ul", "li", "code"}
    (file,) = feed.pages(made)
    assert b"\x1b" not in file.content
    assert "\u202e" not in file.content.decode()
    assert file.content.isascii()


def test_the_feed_is_made_of_the_model_alone() -> None:
    one, other = (next(feed.pages(model(sample().values()))) for _ in range(2))
    assert one == other
    assert len(read(model(sample().values())).findall(f"{ATOM}entry")) == 4
