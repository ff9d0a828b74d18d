# SPDX-License-Identifier: BSD-3-Clause
"""The pages of requirements say what is asked, who does it, since when, and what checks it."""

from __future__ import annotations

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BROKEN, report, sample

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.pages import requirement, requirements
from torch_backend_ci.dashboard.read import Model
from torch_conformance.spec.catalogue import Blocked, Requirement, Source

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


@pytest.fixture(scope="module")
def pages(model: Model) -> dict[str, Shown]:
    return {page.title: shown(page) for page in requirement.pages(model)}


def column(page: Shown, backend: str, line: str = "2.13") -> dict[str, object]:
    columns: list[dict[str, object]] = page.data["columns"]
    return next(it for it in columns if (it["backend"], it["line"]) == (backend, line))


def test_every_requirement_has_a_page_with_its_statement_and_reason(
    model: Model, pages: dict[str, Shown]
) -> None:
    assert set(pages) == set(model.requirements)
    for id, it in model.requirements.items():
        assert " ".join(it.statement.split()) in pages[id].text
        assert " ".join(it.reason.split()) in pages[id].text


def test_who_meets_it_is_told_with_the_day_since_when(pages: dict[str, Shown]) -> None:
    page = pages["MEM-003"]
    assert "verified in 6, broken in 3 of 9 columns" in page.text
    assert "puone-sim 2.13 verified 2026-11-20, was broken" in page.text
    assert "cpu 2.13 verified 2026-11-17, always" in page.text
    mended = column(page, "puone-sim")
    assert (mended["standing"], mended["was"]) == ("verified", "broken")
    assert column(page, "hostile")["standing"] == "broken"


def test_its_checks_are_linked_the_bad_ones_first(pages: dict[str, Shown]) -> None:
    page = pages["MEM-003"]
    linked = [link for link in page.links if "id=memory/" in link]
    assert linked[0] == paths.of_check(BROKEN)
    assert page.data["checks"] == sorted(page.data["checks"])
    assert len(linked) == len(page.data["checks"])


def test_a_requirement_that_no_run_knows_says_so(pages: dict[str, Shown]) -> None:
    page = pages["MEM-002"]
    assert "In no run of 9 columns" in page.text
    assert "No complete run has had any." in page.text
    assert column(page, "cpu") == {**column(page, "cpu"), "standing": None, "since": None}


def test_a_requirement_that_a_column_lost_says_what_it_was() -> None:
    nights = [
        report(started="2026-11-01T02:00:00+00:00"),
        report(started="2026-11-02T02:00:00+00:00", without=(BROKEN, f"{BROKEN[:-1]}1")),
    ]
    model = dashboard_oracle.model(nights)
    page = next(shown(page) for page in requirement.pages(model) if page.title == "MEM-003")
    assert "not there was verified" in page.text
    assert column(page, "cpu")["was"] == "verified"


def test_what_blocks_a_requirement_upstream_is_linked(model: Model) -> None:
    issue = "https://github.com/pytorch/pytorch/issues/1"
    blocked = Requirement(
        "MEM-003",
        "memory",
        "must",
        "core",
        "It holds.",
        "It matters.",
        since="2.12",
        until="2.14",
        needs=("streams", "events"),
        source=Source("documented", "javascript:alert(1)"),
        blocked_upstream=Blocked(issue, "<2.14"),
    )
    changed = dashboard_oracle.model(sample().values())
    changed.requirements = {"MEM-003": blocked}
    (page,) = (shown(page) for page in requirement.pages(changed))
    assert f'href="{issue}"' in page.html
    assert paths.BLOCKED in page.links
    for said in ("with torch <2.14", "streams, events", "Since torch 2.12", "Until torch 2.14"):
        assert said in page.text
    assert 'href="javascript:' not in page.html


def test_the_list_has_every_requirement_and_says_where_it_is_broken(model: Model) -> None:
    (page,) = (shown(page) for page in requirements.pages(model))
    assert {paths.of_requirement(id) for id in model.requirements} <= set(page.links)
    assert "broken on hostile 2.12, hostile 2.13, hostile nightly" in page.text
    entry = next(it for it in page.data["requirements"] if it["id"] == "MEM-003")
    assert len(entry["standings"]["verified"]) == 6
    assert entry["checks"] == 2


def test_the_list_links_only_surfaces_that_have_a_list(model: Model) -> None:
    (page,) = (shown(page) for page in requirements.pages(model))
    surfaces = {check.surface for check in model.checks()}
    linked = {link for link in page.links if link.startswith("check/")}
    assert linked == {paths.of_surface(name) for name in surfaces}
