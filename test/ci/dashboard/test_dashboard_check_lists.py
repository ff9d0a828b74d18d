# SPDX-License-Identifier: BSD-3-Clause
"""The lists of checks are complete, show the worst first, and stay short where much is alike."""

from __future__ import annotations

import dashboard_oracle
import pytest
from dashboard_pages import Shown, shown
from dashboard_sample import BROKEN, CHECKS, CRASHED, RENAMED, report, sample

from torch_backend_ci.dashboard import columns, paths
from torch_backend_ci.dashboard.columns import Cell, Grid
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.pages import checks, surface
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.stems import stems

WRONG = {"outcome": "fail", "message": "3 of 8 elements differ", "repro": "import torch"}
GOOD, FAIL, CRASH = Cell("pass", False), Cell("fail", True), Cell("crash", True)
SKIPPED = Cell("unsupported", False)
KEYS = tuple(Key(name, "2.13") for name in ("a", "b", "c"))


@pytest.fixture(scope="module")
def model() -> Model:
    return dashboard_oracle.model(sample().values())


def lists(model: Model) -> dict[str, Shown]:
    return {page.path: shown(page) for page in surface.pages(model)}


def test_every_check_is_linked_from_a_list(model: Model) -> None:
    linked = {link for page in lists(model).values() for link in page.links}
    assert {paths.of_check(check.id) for check in model.checks()} <= linked


def test_the_list_of_surfaces_links_each(model: Model) -> None:
    (page,) = (shown(page) for page in checks.pages(model))
    assert set(lists(model)) <= set(page.links)
    assert sum(entry["checks"] for entry in page.data["surfaces"]) == len(CHECKS)
    memory = next(entry for entry in page.data["surfaces"] if entry["name"] == "memory")
    assert memory["bad"] == 1


def test_where_a_check_is_bad_is_said(model: Model) -> None:
    page = lists(model)[paths.of_surface("stream")]
    assert "crash on puone-sim nightly; pass, fail" not in page.text
    assert "1 check : crash on puone-sim nightly; pass elsewhere" in page.text
    assert paths.of_check(CRASHED) in page.links


def test_a_check_that_no_column_has_is_told_apart() -> None:
    nights = [
        report(started="2026-11-01T02:00:00+00:00"),
        report(started="2026-11-02T02:00:00+00:00", without=(RENAMED,)),
    ]
    page = lists(dashboard_oracle.model(nights))[paths.of_surface("copy")]
    assert "1 check : in no column any more" in page.text
    assert paths.of_check(RENAMED) in page.links


def test_a_big_surface_has_a_list_for_each_topic(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface, "BIG", 4)
    monkeypatch.setattr(surface, "MAX_NAMED", 1)
    pages = lists(model)
    topic = paths.of_topic("memory/mem_003")
    assert topic in pages[paths.of_surface("memory")].links
    assert paths.of_check(BROKEN) in pages[topic].links
    assert pages[paths.of_surface("memory")].data["groups"] == []
    documents = [entry["document"] for entry in pages[paths.of_surface("memory")].data["topics"]]
    assert paths.api(topic) in documents
    linked = {link for page in pages.values() for link in page.links}
    assert {paths.of_check(check.id) for check in model.checks()} <= linked


def test_a_surface_where_all_is_bad_is_a_short_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surface, "BIG", 4)
    monkeypatch.setattr(surface, "MAX_NAMED", 2)
    model = dashboard_oracle.model([report(outcomes=dict.fromkeys(CHECKS, WRONG))])
    page = lists(model)[paths.of_surface("memory")]
    assert "And 2 more" in page.text
    assert len([link for link in page.links if "id=memory/mem_001:" in link]) == 2


def test_checks_that_are_bad_alike_are_one_group_whatever_they_are_elsewhere() -> None:
    rows = {"s/a": (FAIL, GOOD, GOOD), "s/b": (FAIL, SKIPPED, GOOD), "s/c": (GOOD, GOOD, GOOD)}
    groups = columns.alike(Grid(KEYS, rows), rows)
    assert [group.ids for group in groups] == [("s/a", "s/b"), ("s/c",)]
    assert groups[0].bad == (("fail", (KEYS[0],)),)
    assert groups[0].others == ("pass", "unsupported")


def test_so_many_different_groups_that_nobody_would_read_them_are_told_by_their_worst_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "MOST", 1)
    rows = {
        "s/a": (CRASH, GOOD, GOOD),
        "s/b": (FAIL, FAIL, GOOD),
        "s/c": (FAIL, GOOD, GOOD),
        "s/d": (GOOD, GOOD, GOOD),
    }
    groups = columns.alike(Grid(KEYS, rows), rows)
    assert [group.ids for group in groups] == [("s/a",), ("s/b", "s/c"), ("s/d",)]
    assert groups[1].bad == (("fail", ()),)


def test_checks_that_are_bad_nowhere_are_parted_by_what_they_are() -> None:
    rows = {
        "s/a": (GOOD, GOOD, GOOD),
        "s/b": (GOOD, SKIPPED, GOOD),
        "s/c": (GOOD, None, GOOD),
        "s/d": (SKIPPED, GOOD, GOOD),
    }
    groups = columns.alike(Grid(KEYS, rows), rows)
    assert [group.ids for group in groups] == [("s/a", "s/c"), ("s/b", "s/d")]
    assert [group.others for group in groups] == [("pass",), ("pass", "unsupported")]


def test_the_worst_outcome_is_first_then_what_is_bad_in_most_columns() -> None:
    rows = {
        "s/fine": (GOOD, GOOD, GOOD),
        "s/gone": (None, None, None),
        "s/one": (FAIL, GOOD, GOOD),
        "s/three": (FAIL, FAIL, FAIL),
        "s/crash": (GOOD, CRASH, FAIL),
    }
    groups = columns.alike(Grid(KEYS, rows), rows)
    assert [group.ids[0] for group in groups] == ["s/crash", "s/three", "s/one", "s/gone", "s/fine"]
    assert [outcome for outcome, _ in groups[0].bad] == ["crash", "fail"]


def test_ids_that_differ_in_the_last_word_share_a_line() -> None:
    made = stems(["s/add:bool", "s/add:int8", "s/plain", "s/topic:case:bool"])
    assert [(stem.text, [word for word, _ in stem.ids]) for stem in made] == [
        ("add", ["bool", "int8"]),
        ("", ["plain"]),
        ("topic:case", ["bool"]),
    ]


def test_the_document_of_a_surface_has_the_outcome_of_every_check_in_every_column(
    model: Model,
) -> None:
    data = lists(model)[paths.of_surface("memory")].data
    found = {id: group["outcomes"] for group in data["groups"] for id in group["checks"]}
    columns = [(column["backend"], column["line"]) for column in data["columns"]]
    assert found[BROKEN][columns.index(("hostile", "2.13"))] == "fail"
    assert found[BROKEN][columns.index(("cpu", "2.13"))] == "pass"
    assert len(found) == sum(check.surface == "memory" for check in model.checks())


def test_a_store_without_a_complete_run_has_an_empty_list() -> None:
    model = dashboard_oracle.model([report(complete=False)])
    assert lists(model) == {}
    (page,) = (shown(page) for page in checks.pages(model))
    assert page.data["surfaces"] == []
