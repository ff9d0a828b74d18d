# SPDX-License-Identifier: BSD-3-Clause
"""What a page becomes: text stays text, and a mistake in a template is no page."""

from __future__ import annotations

import json
import re

import jinja2
import pytest
from dashboard_sample import HOSTILE

from torch_backend_ci import document
from torch_backend_ci.dashboard import render
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.dashboard.pages.checks import SurfacePart
from torch_conformance.results import levels


def shown(template: str, **context: object) -> str:
    return render.environment().from_string(template).render(context)


def test_what_a_report_says_is_never_markup() -> None:
    text = shown("<p title='{{ said }}'>{{ said }}</p>", said=HOSTILE)
    assert text.count("<") == 2
    assert text.count("'") == 2


def test_what_would_turn_the_reading_direction_or_hide_is_shown() -> None:
    assert shown("{{ said }}", said="a\u202eb\x1b[0m\ud800\tc\n") == "a\\u202eb\\x1b[0m\\ud800\tc\n"


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        shown("{{ missing }}")


def test_none_is_never_shown() -> None:
    with pytest.raises(jinja2.UndefinedError, match="None"):
        shown("{{ value }}", value=None)


def test_a_page_becomes_html_and_json_of_its_own_address() -> None:
    page = Page(
        "backend/a/index.html", "A & B", "base.html", {}, SurfacePart("b", 1, 0, 2, {}, "d")
    )
    html, api = render.render(page)
    assert html.path == page.path
    assert b"<title>A &amp; B" in html.content
    assert b'href="../../static/style.css"' in html.content
    assert render.POLICY in html.content.decode().replace("&#39;", "'")
    assert api.path == "api/backend/a/index.json"
    assert json.loads(api.content) == document.plain(page.data)


@pytest.mark.parametrize(
    "path", ["../a.html", "/a.html", "a//b.html", "a/.b", "a b.html", "", "a/"]
)
def test_a_path_out_of_the_site_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        list(render.render(File(path, b"")))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.00042, "0.42 ms"),
        (0.012, "12 ms"),
        (0.9999, "1.0 s"),
        (59.97, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_durations_are_told_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert render.seconds(seconds) == text


def test_a_share_is_all_or_nothing_only_if_it_is() -> None:
    assert [render.percent(part, 10_000) for part in (0, 1, 5_000, 9_999, 10_000)] == [
        "0 %",
        "0.1 %",
        "50.0 %",
        "99.9 %",
        "100 %",
    ]
    assert render.percent(0, 0) == "-"


def test_a_page_has_the_shapes_that_it_uses_and_no_others() -> None:
    context = {"levels": levels.every(), "ranks": [("pass", 1)]}
    (page,) = render.render(Page("about.html", "About", "about.html", context))
    html = page.content.decode()
    used = re.findall(r'<use href="#g-(\w+)"', html)
    assert re.findall(r'<symbol id="g-(\w+)"', html) == sorted(set(used))
    assert "pass" in used


def test_a_page_without_shapes_has_none() -> None:
    (page,) = render.render(Page("a.html", "A", "base.html", {}))
    assert b"<symbol" not in page.content
