# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the pages: text stays text, pictures have a text, elements are closed."""

from __future__ import annotations

from collections.abc import Iterator

import dashboard_oracle
import pytest
from dashboard_html import problems
from dashboard_pages import shown
from dashboard_sample import HOSTILE, sample
from jinja2.runtime import Macro

from torch_backend_ci.dashboard import render
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import about, backend, overview
from torch_backend_ci.dashboard.read import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


CALLS = (
    'icon("pass", "good", said)',
    "outcome(said)",
    "outcome(said, word=false)",
    'outcome("fail", word=false)',
    "outcome(none)",
    'change(said, "pass")',
    'change("native", "fallback", word=false)',
    "standing(said)",
    'standing("not asked", word=false)',
    "evidence(said)",
    'evidence("native", word=false)',
    "tag(said)",
    "level(run)",
    'totals({"pass": 7, "fail": 1})',
    'totals({"pass": 7, "fail": 1}, words=false)',
    "totals({})",
    'shares({"native": 3, "fallback": 1})',
    "shares({})",
    "outside(said)",
    'outside("https://example.org/?" ~ said, said)',
    "crumbs([(said, paths.OVERVIEW)], said)",
    "facts([(said, said)])",
    "link(paths.OVERVIEW, said)",
    'requirement("MEM-001", said)',
    "surface(said)",
    "backend(said)",
    "check(said)",
    "verbatim(said, said)",
    "bars(2, 5)",
    "day(run.started)",
    "moment(run.started)",
    "run(run)",
    "series(series.key)",
)
#: Tried in whole pages, below: they are around something.
AROUND = {"fold", "wide", "trend"}


def markup(call: str, **context: object) -> str:
    source = f'{{% import "macros.html" as m with context %}}{{{{ m.{call} }}}}'
    return render.environment().from_string(source).render(root="", **context)


@pytest.mark.parametrize("call", CALLS)
def test_a_macro_shows_what_is_said_as_text_and_a_name_for_each_picture(
    call: str, model: Model
) -> None:
    series = model.series[Key("hostile", "2.13")]
    html = markup(call, said=HOSTILE, series=series, run=series.runs[0])
    assert problems(html) == []
    assert HOSTILE not in html


def test_every_macro_is_tried() -> None:
    source = render.environment().get_template("macros.html").make_module({"root": ""})
    macros = {name for name, value in vars(source).items() if isinstance(value, Macro)}
    assert macros == {call.partition("(")[0] for call in CALLS} | AROUND


def test_an_address_that_is_no_page_is_no_link() -> None:
    assert "<a" not in markup("outside(said)", said="javascript:alert(1)")
    assert 'href="https://example.org"' in markup("outside(said)", said="https://example.org")


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ("<p><b>text</p></b>", "</p> closes another element"),
        ("<p>text", "<p> is not closed"),
        ("<div/>", "<div/> is not closed by its slash"),
        ("<p><div></div></p>", "<div> in <p>"),
        ('<i class="a" class="b"></i>', "<i> says an attribute twice"),
        ('<i id="a"></i><i id="a"></i>', "the id a is there twice"),
        ("<i onclick='x'></i>", "<i> runs onclick"),
        ("<i style='x'></i>", "<i> is against the policy"),
        ("<script>x</script>", "<script> is against the policy"),
        ("<img src=x>", "an image without a text"),
        ("<svg><path/></svg>", "a picture without a text"),
        ('<div role="region"></div>', "a region without a name"),
    ],
)
def test_what_is_wrong_is_told(html: str, problem: str) -> None:
    assert problem in problems(html)


def own_pages(model: Model) -> Iterator[str]:
    for module in (overview, backend, about):
        for page in module.pages(model):
            yield next(iter(render.render(page))).content.decode()


def test_the_pages_are_well_formed_and_say_their_pictures(model: Model) -> None:
    assert [problems(html) for html in own_pages(model)] == [[]] * (len(model.backends) + 2)


def test_a_store_without_runs_has_a_first_page_that_says_what_to_do() -> None:
    page = shown(next(overview.pages(dashboard_oracle.model([]))))
    assert "results add" in page.text
    assert page.data["columns"] == []
