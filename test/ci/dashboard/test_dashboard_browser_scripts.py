# SPDX-License-Identifier: BSD-3-Clause
"""What scripts add to the site, in a real browser: search, comparisons, filters, by keys alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from dashboard_sample import BROKEN, CRASHED, RENAMED, SLOWED
from dashboard_site import Seen, opened
from playwright.sync_api import Browser, expect

WRONG = "surface:memory status:broken"


@pytest.fixture
def seen(chromium: Browser, served: str) -> Iterator[Seen]:
    """A window in which nothing may go wrong."""
    with opened(chromium, served) as made:
        yield made
        assert made.problems == []


def test_a_search_from_any_page_finds_checks_and_leads_to_them(seen: Seen) -> None:
    seen.go("index.html")
    seen.page.fill("header input[type=search]", "seq(pass fail pass)")
    seen.page.press("header input[type=search]", "Enter")
    expect(seen.page.locator("#count")).to_have_text("1 check, 1 result.")
    row = seen.page.locator("#rows tr")
    expect(row).to_contain_text("puone-sim torch 2.13: pass native")
    expect(row).to_contain_text("before: pass in 2 runs, fail in 1 run")
    row.locator("th a").click()
    expect(seen.page.locator("main h1")).to_have_text(BROKEN)


def test_a_search_can_be_made_and_followed_by_keys_alone(seen: Seen) -> None:
    seen.go("search.html")
    keys = seen.page.keyboard
    reached = "document.activeElement.id"
    for _ in range(30):
        keys.press("Tab")
        if seen.page.evaluate(reached) == "query":
            break
    assert seen.page.evaluate(reached) == "query"
    keys.type("status:crash")
    keys.press("Enter")
    expect(seen.page.locator("#count")).to_have_text("1 check, 1 result.")
    assert seen.page.evaluate(reached) == "query", "the focus stays where one types"
    for _ in range(3):  # The button, the table that scrolls, the first link.
        keys.press("Tab")
    keys.press("Enter")
    expect(seen.page.locator("main h1")).to_have_text(CRASHED)


def test_a_search_has_an_address_and_goes_back(seen: Seen) -> None:
    seen.go(f"search.html?q={quote('status:crash')}")
    expect(seen.page.locator("#query")).to_have_value("status:crash")
    expect(seen.page.locator("#rows th")).to_have_text(CRASHED)
    seen.page.fill("#query", "evidence:fallback backend:puone-sim")
    seen.page.press("#query", "Enter")
    expect(seen.page.locator("#rows th")).to_have_text(SLOWED)
    assert seen.page.url.endswith("?q=evidence%3Afallback+backend%3Apuone-sim")
    seen.page.go_back()
    expect(seen.page.locator("#rows th")).to_have_text(CRASHED)


def test_a_wrong_query_is_shown_with_what_is_wrong_marked(seen: Seen) -> None:
    seen.go(f"search.html?q={quote(WRONG)}")
    expect(seen.page.locator("#error")).to_contain_text("Character 16: there is no status:broken")
    expect(seen.page.locator("#error mark")).to_have_text("status:broken")
    expect(seen.page.locator("#query")).to_have_attribute("aria-invalid", "true")
    expect(seen.page.locator("#results")).to_be_hidden()
    seen.page.fill("#query", "surface:memory")
    seen.page.press("#query", "Enter")
    expect(seen.page.locator("#error")).to_be_empty()
    expect(seen.page.locator("#results")).to_be_visible()


def test_a_query_is_text_whatever_it_says(seen: Seen) -> None:
    hostile = '<img src=x onerror=alert(1)> "'
    seen.go(f"search.html?q={quote(hostile)}")
    expect(seen.page.locator("#error code")).to_have_text(hostile)
    assert seen.page.locator("#error img").count() == 0


def test_an_index_that_is_not_there_is_told_and_fetched_again(
    chromium: Browser, served: str
) -> None:
    with opened(chromium, served) as seen:
        seen.page.route("**/api/search.json", lambda route: route.abort())
        seen.go("search.html?q=memory")
        expect(seen.page.locator("#error")).to_contain_text("could not load what it needs")
        seen.page.unroute("**/api/search.json")
        seen.page.press("#query", "Enter")
        expect(seen.page.locator("#rows th").first).to_contain_text("memory/")


@pytest.mark.parametrize("number", range(6))
def test_every_example_of_the_page_can_be_asked(number: int, seen: Seen) -> None:
    seen.go("search.html")
    seen.page.locator("#examples + ul a").nth(number).click()
    expect(seen.page.locator("#count")).to_have_text(re.compile(r"results?\.$|Nothing is found\.$"))
    expect(seen.page.locator("#error")).to_be_empty()


def runs(site: Path, backend: str, line: str, which: str = "runs") -> list[str]:
    """The names of a series' runs."""
    told = json.loads((site / "api/compare/index.json").read_bytes())
    one = next(s for s in told["series"] if (s["backend"], s["line"]) == (backend, line))
    return [run[0] for run in one[which]]


def test_two_runs_are_chosen_and_compared(seen: Seen, site: Path) -> None:
    _, old, new, _ = runs(site, "puone-sim", "2.13")
    seen.go("compare/index.html")
    for side, run in (("old", old), ("new", new)):
        seen.page.select_option(f"#{side}-series", label="puone-sim torch 2.13")
        seen.page.select_option(f"#{side}", run)
    seen.page.click("form >> text=Compare")
    expect(seen.page.locator("#summary")).to_contain_text("2 regressions, 1 check gone.")
    cells = seen.page.locator("#regressions tbody tr > *")
    expect(cells).to_have_text([BROKEN, "pass", "fail", SLOWED, "native", "fallback"])
    expect(seen.page.locator("#removed tbody tr > *")).to_have_text([RENAMED, "pass", "gone"])
    expect(seen.page.locator("#improvements")).to_be_hidden()
    seen.page.click("text=a page of their own")
    assert seen.page.url.endswith(f"compare/{old}-{new}.html")


def test_runs_that_did_not_ask_the_same_are_refused_unless_one_insists(
    seen: Seen, site: Path
) -> None:
    old, new = runs(site, "cpu", "2.13")[0], runs(site, "puone-sim", "2.13")[2]
    seen.go(f"compare/index.html?old={old}&new={new}")
    expect(seen.page.locator("#summary")).to_contain_text("are not compared")
    expect(seen.page.locator("#unlike")).to_contain_text("backend differs")
    expect(seen.page.locator("#comparison")).to_be_hidden()
    seen.page.click("text=Compare them nevertheless")
    expect(seen.page.locator("#notes")).to_contain_text("backend: cpu, cpu → puone, puone")
    expect(seen.page.locator("#regressions")).to_contain_text(BROKEN)


def test_a_run_that_does_not_count_or_is_not_there_is_told(seen: Seen, site: Path) -> None:
    (aligned, *_), (other, *_) = runs(site, "cpu", "2.13"), runs(site, "hostile", "2.13", "others")
    seen.go(f"compare/index.html?old={aligned}&new={other}")
    expect(seen.page.locator("#error")).to_contain_text("does not count: the run is incomplete")
    seen.go(f"compare/index.html?old={aligned}&new=%3Cb%3E")
    expect(seen.page.locator("#error")).to_have_text("There is no run <b> here.")
    expect(seen.page.locator("#summary")).to_be_empty()


def test_the_theme_is_chosen_and_kept(seen: Seen) -> None:
    seen.go("index.html")
    light = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.page.click("#theme")
    dark = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    seen.go("search.html")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_much_that_is_found_comes_in_parts_and_the_focus_goes_with_it(
    seen: Seen, site: Path
) -> None:
    group = {"prefix": "a/b", "cases": [f":c{n:03}" for n in range(250)], "requirements": []}
    told = json.loads((site / "api/search.json").read_bytes())
    told["groups"] = [{**group, "tier": "core", "level": "must"}]
    told["series"] = [{"backend": "cpu", "line": "2.13", "runs": 1, "file": "api/one.json"}]
    history = {"now": "A" * 250, "spells": {}}
    seen.page.route("**/api/search.json", lambda route: route.fulfill(json=told))
    seen.page.route("**/api/one.json", lambda route: route.fulfill(json=history))
    seen.go("search.html?q=backend:cpu")
    expect(seen.page.locator("#count")).to_have_text("250 checks, 250 results.")
    for shown, left in ((100, "150"), (200, "50")):
        expect(seen.page.locator("#rows tr")).to_have_count(shown)
        seen.page.click(f"text=Show more ({left} left)")
        expect(seen.page.locator("#rows th a").nth(shown)).to_be_focused()
    expect(seen.page.locator("#rows tr")).to_have_count(250)
    expect(seen.page.locator("#more")).to_be_hidden()


def test_the_rows_of_a_long_table_can_be_filtered(seen: Seen) -> None:
    seen.go("requirement/index.html")
    rows = seen.page.locator("table[data-filter] tbody tr:visible")
    every = rows.count()
    seen.page.fill(".filter input", "MEM-003")
    expect(rows).to_have_count(1)
    expect(seen.page.locator(".filter [role=status]")).to_have_text(f"1 of {every}")
    seen.page.fill(".filter input", "")
    expect(rows).to_have_count(every)
