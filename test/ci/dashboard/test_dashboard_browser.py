# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of page in a real browser: nothing is complained of, and everybody can use it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dashboard_sample import BROKEN
from dashboard_site import KINDS, addresses, files, of_kind, opened, some, telling
from page_rules import TOO_WIDE, violations
from playwright.sync_api import Browser

from torch_backend_ci.dashboard import paths

#: Takes away what is there to be used with scripts only.
ADDED = "for (const it of document.querySelectorAll('main form, .filter')) it.remove()"


@pytest.mark.parametrize("kind", KINDS)
def test_pages_load_without_a_complaint(
    kind: str, site: Path, chromium: Browser, served: str
) -> None:
    with opened(chromium, served) as seen:
        for path in telling(site, addresses(site, kind)):
            seen.go(path)
            assert seen.page.locator("main h1").count() == 1, path
        assert seen.problems == []


def test_every_page_is_of_a_known_kind(site: Path) -> None:
    known = [path for kind in KINDS for path in of_kind(site, kind)]
    assert sorted(known) == files(site)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_can_be_used_by_everybody(
    kind: str, site: Path, chromium: Browser, served: str
) -> None:
    with opened(chromium, served) as seen:
        for path in some(addresses(site, kind)):
            seen.go(path)
            seen.page.evaluate(
                "for (const it of document.querySelectorAll('details')) it.open = true"
            )
            assert violations(seen.page) == [], path
            seen.page.emulate_media(color_scheme="dark")
            assert violations(seen.page, "color-contrast") == [], f"{path} in the dark"


@pytest.mark.parametrize("kind", KINDS)
def test_pages_fit_a_telephone_and_a_wide_screen(
    kind: str, site: Path, chromium: Browser, served: str
) -> None:
    with opened(chromium, served) as seen:
        for path in some(addresses(site, kind)):
            seen.go(path)
            for width in (360, 1920):
                seen.page.set_viewport_size({"width": width, "height": 800})
                more = seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
                wide = f"{path} is {more} px wider than {width}: {seen.page.evaluate(TOO_WIDE)}"
                assert more <= 0, wide


@pytest.mark.parametrize("kind", KINDS)
def test_pages_say_the_same_without_scripts(
    kind: str, site: Path, chromium: Browser, served: str
) -> None:
    path = of_kind(site, kind)[0]
    with (
        opened(chromium, served) as seen,
        opened(chromium, served, java_script_enabled=False) as off,
    ):
        seen.go(path)
        off.go(path)
        seen.page.evaluate(ADDED)
        texts = [set(one.page.locator("main").inner_text().split()) for one in (seen, off)]
        assert texts[0] <= texts[1], f"{path} shows more with scripts"
        assert len(off.page.locator("header nav a").all()) > 4
        assert not off.page.locator("main form").is_visible(), "it would do nothing"
        assert off.problems == []


def test_without_scripts_one_comes_from_the_overview_to_what_a_check_said(
    chromium: Browser, served: str
) -> None:
    with opened(chromium, served, java_script_enabled=False) as seen:
        seen.go("index.html")
        seen.page.click("main a[href='backend/hostile/index.html']")
        seen.page.click("details:has-text('Causes of what is bad') > summary >> nth=0")
        assert "alert(1)" in seen.page.locator("main").inner_text()
        seen.page.click("header nav >> text=Checks")
        seen.page.click("main a[href='check/memory.html']")
        seen.page.click(f"main a[href$='{paths.of_check(BROKEN)}'] >> visible=true")
        assert "needs scripts" in seen.page.locator("main").inner_text()
        assert seen.problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_printed_black_on_white_and_without_what_is_to_be_clicked(
    kind: str, site: Path, chromium: Browser, served: str
) -> None:
    with opened(chromium, served, color_scheme="dark") as seen:
        seen.go(addresses(site, kind)[0])
        seen.page.emulate_media(media="print", color_scheme="dark")
        style = "getComputedStyle(document.body)"
        assert seen.page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
        assert max(map(int, seen.page.evaluate(f"{style}.color.match(/\\d+/g)"))) < 80
        for hidden in ("header nav", "form", "button"):
            assert not any(one.is_visible() for one in seen.page.locator(hidden).all()), hidden
        assert seen.page.locator("main h1").is_visible()
