# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site, built: no warning, no dead link, valid HTML, usable by everybody."""

from __future__ import annotations

import contextlib
import html
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_site import chromium
from page_rules import TOO_WIDE, broken, complaints, places, violations
from playwright.sync_api import Browser, Page
from website import glossary, requirements
from website.pages import ROOT

from torch_conformance.spec.chapters import chapters

__all__ = ["chromium"]  # a fixture

pytestmark = pytest.mark.nightly
#: One page of each kind.
KINDS = (
    "index",
    "docs/copying",
    "docs/walkthrough/04-operators",
    "docs/ci/dashboard",
    "docs/operators",
    "conformance/README",
    "requirements/index",
    "requirements/stream",
    "requirements/opinfo",
    "python/memory",
    "cpp/hal",
    "cpp/runtime",
    "source/csrc/hal/hal.h",
    "search",
    "genindex",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the site, built as `make docs` does."""
    base = tmp_path_factory.mktemp("site")
    source, built = base / "source", base / "html"
    run(sys.executable, "docs/website/pages.py", str(source))
    options = ("-W", "--keep-going", "-E", "-q", "-b", "html", "-c", "docs/website")
    run(sys.executable, "-m", "sphinx", *options, str(source), str(built))
    return built


def run(*command: str) -> None:
    """Run a command in the checkout, which succeeds and has nothing to say."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def files(site: Path) -> list[str]:
    """The paths of all pages."""
    return sorted(str(one.relative_to(site)) for one in site.rglob("*.html"))


def test_no_link_leads_nowhere(site: Path) -> None:
    assert [problem for path in files(site) for problem in broken(site, path)] == []


def test_an_id_is_of_one_element(site: Path) -> None:
    for path in files(site):
        repeated = [id for id, count in places(site / path).ids.items() if count > 1 or not id]
        assert repeated == [], path


def test_pages_are_valid_html(site: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><p><div></p>", encoding="utf-8")
    found = complaints(wrong, *(site / path for path in files(site)))
    assert found.pop(str(wrong)), "it finds nothing"
    assert found == {}


def test_every_requirement_has_an_anchor_and_links_to_its_checks_and_its_guide(site: Path) -> None:
    for surface, listed in requirements.by_chapter().items():
        page = site / f"requirements/{surface}.html"
        text = page.read_text()
        assert chapters()[surface].title in html.unescape(text)
        for requirement in listed:
            part = text.partition(f'<section id="{requirement.id.lower()}">')[2]
            part = part.partition("<section")[0]
            assert re.search(r'href="\.\./source/conformance/[^"]+\.py\.html', part)
            assert 'href="../docs/' in part
            assert f'href="{html.escape(requirement.source.url)}"' in part, requirement.id


def test_guides_link_to_their_requirements(site: Path) -> None:
    for surface, listed in requirements.guides().items():
        for place in listed:
            path, _, _ = place.partition("#")
            text = (site / path.replace(".md", ".html")).read_text()
            assert f"requirements/{surface}.html" in text, place


def test_every_word_of_the_glossary_has_an_anchor(site: Path) -> None:
    ids = places(site / f"{glossary.PAGE}.html").ids
    assert [word for word in glossary.words() if glossary.anchor(word) not in ids] == []


def test_the_first_use_of_a_word_links_to_the_glossary_and_later_ones_do_not(site: Path) -> None:
    text = (site / "docs/ci/gate.html").read_text()
    assert text.count('href="../glossary.html#term-baseline"') == 1
    before, _, behind = text.partition('href="../glossary.html#term-baseline"')
    assert "baseline" in behind
    assert not re.search(r"<p>[^<]*\bbaseline", before)


@contextlib.contextmanager
def opened(chromium: Browser, site: Path, kind: str, width: int = 1280) -> Iterator[Page]:
    """A page, read from the disk without a server."""
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto((site / f"{kind}.html").as_uri())
    with contextlib.closing(page):
        yield page


@pytest.mark.parametrize("kind", KINDS)
def test_pages_load_without_a_complaint(kind: str, site: Path, chromium: Browser) -> None:
    problems: list[str] = []
    with contextlib.closing(chromium.new_page()) as page:
        page.on("pageerror", lambda it: problems.append(str(it)))
        page.on("console", lambda it: problems.append(it.text) if it.type == "error" else None)
        page.goto((site / f"{kind}.html").as_uri())
        page.wait_for_load_state("load")
    assert problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_pages_can_be_used_by_everybody(kind: str, site: Path, chromium: Browser) -> None:
    with opened(chromium, site, kind) as page:
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, "color-contrast") == []


@pytest.mark.parametrize("kind", KINDS)
def test_pages_fit_a_telephone_and_a_wide_screen(kind: str, site: Path, chromium: Browser) -> None:
    for width in (360, 1920):
        with opened(chromium, site, kind, width) as page:
            more = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert more <= 0, f"{more} px wider than {width}: {page.evaluate(TOO_WIDE)}"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("record_stream", "The stream sanitizer"),
        ("STREAM-012", "STREAM-012"),
        ("kernel_launch", "The HAL"),
        ("empty_cache", "torch.puone.empty_cache"),
    ],
)
def test_the_search_works_without_a_server(
    words: str, found: str, site: Path, chromium: Browser
) -> None:
    with opened(chromium, site, "index") as page:
        page.fill(".sidebar-search", words)
        page.press(".sidebar-search", "Enter")
        # Results come one by one.
        page.locator("#search-results li", has_text=found).first.locator("a").first.click()
        assert page.locator("h1").is_visible()
