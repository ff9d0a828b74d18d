# SPDX-License-Identifier: BSD-3-Clause
"""What the documentation site is made from: pages, navigation, and links between them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from website import glossary, headers, python, requirements
from website.pages import NAVIGATION, ROOT, documents
from website.restructured import escaped, linked, slug

from torch_conformance.spec.chapters import chapters

PAGES = [name for name in documents() if name.suffix == ".md"]
#: Made by commands, in their own form.
GENERATED = re.compile(
    r"docs/surface/examples/|docs/results/\d|docs/(kernels|liars|operators)\.md|CHANGELOG\.md"
)
WRITTEN = [page for page in PAGES if not GENERATED.match(page.as_posix())]
#: How a page says what it is for.
PURPOSE = re.compile(r"This (page|guide|walkthrough|chapter) [a-z][^.]*[.:]")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without code and comments."""
    return COMMENT.sub("", FENCED.sub("", (ROOT / page).read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: Counter[str] = Counter()
    made = set()
    for _, title in HEADING.findall(FENCED.sub("", (ROOT / page).read_text())):
        name = slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title))
        made.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return made


def navigation() -> list[str]:
    """The entries of the navigation, in their order; patterns are written out."""
    generated = {
        f"{requirements.DIRECTORY}/index",
        *(f"{python.DIRECTORY}/{page.page}" for page in python.listed()),
        *(f"{headers.DIRECTORY}/{page.page}" for page in headers.listed()),
    }
    there = {name.as_posix().rpartition(".")[0] for name in PAGES} | generated
    found: list[str] = []
    for line in NAVIGATION.read_text().splitlines():
        if re.fullmatch(r"[\w./*-]+", line):
            pattern = re.compile(re.escape(line).replace(r"\*", "[^/]*"))
            entries = sorted(name for name in there if pattern.fullmatch(name))
            assert entries, f"there is no page {line}"
            found += entries
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    counts = Counter(navigation())
    pages = {name.as_posix().removesuffix(".md") for name in PAGES}
    assert pages - set(counts) == set()
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("page", WRITTEN, ids=str)
def test_a_page_first_says_what_it_is_for(page: Path) -> None:
    title, _, rest = COMMENT.sub("", (ROOT / page).read_text()).lstrip("\n").partition("\n")
    first = " ".join(rest.lstrip("\n").partition("\n\n")[0].split())
    assert title.startswith("# "), title
    assert PURPOSE.match(first), f"{page} begins with: {first}"


def test_generated_pages_first_say_what_they_are_for() -> None:
    purposes = [page.purpose for page in python.listed()]
    purposes += [page.purpose for page in headers.listed()]
    assert [purpose for purpose in purposes if not PURPOSE.match(purpose)] == []


@pytest.mark.parametrize("page", WRITTEN, ids=str)
def test_headings_of_a_page_leave_no_level_out(page: Path) -> None:
    levels = [len(marks) for marks, _ in HEADING.findall(prose(page))]
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] - pair[0] > 1] == []


@pytest.mark.parametrize("page", [Path("README.md"), *PAGES], ids=str)
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            parts = urlsplit(target)
            assert parts.scheme in ("https", "http"), target
            assert re.fullmatch(r"[\w.-]+\.[a-z]+(:\d+)?", parts.netloc), target
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            there = anchors(file.resolve().relative_to(ROOT))
            assert anchor in there, f"{page}: {target} is none of {sorted(there)}"


def test_every_chapter_has_a_guide_and_every_guide_exists() -> None:
    assert set(requirements.guides()) == set(chapters())
    for places in requirements.guides().values():
        for place in places:
            assert linked(place).startswith(":section:"), place


def test_every_integration_page_leads_to_requirements() -> None:
    guides = {place.partition("#")[0] for each in requirements.guides().values() for place in each}
    docs = ROOT / "docs"
    pages = [*docs.glob("walkthrough/0[1-6]*.md"), *docs.glob("integration/*.md")]
    assert {page.relative_to(ROOT).as_posix() for page in pages} <= guides


def test_code_in_prose_is_kept_and_nothing_else_has_a_meaning() -> None:
    assert escaped("*out = a_ | `b*`s") == r"\*out = a\_ \| \ ``b*``\ s"
    assert escaped("an odd ` stays") == r"an odd \` stays"


@pytest.mark.parametrize(
    ("title", "anchor"),
    [("3. Streams and events", "3-streams-and-events"), ("`a_b`: C++, x", "a_b-c-x")],
)
def test_anchors_are_those_of_github(title: str, anchor: str) -> None:
    assert slug(title) == anchor


def test_words_that_are_no_links_are_words_of_the_glossary() -> None:
    assert set(glossary.words()) >= glossary.ORDINARY
    assert len(set(glossary.words())) == len(glossary.words()) > 40


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Capabilities are probed", ["capability"]),
        ("a nightly\nrun of test subjects", ["nightly run", "test subject"]),
        ("a level, a module and a check", []),  # of any program
        ("the descriptors of subcapabilities", ["descriptor"]),
    ],
)
def test_words_of_the_glossary_are_found_in_every_form(text: str, found: list[str]) -> None:
    matches = glossary.pattern().findall(text)
    assert [glossary.defined(match) for match in matches] == found
