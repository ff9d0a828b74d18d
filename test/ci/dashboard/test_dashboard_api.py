# SPDX-License-Identifier: BSD-3-Clause
"""What programs get: badges, the list of what there is, the schemas of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from dashboard_findings import model
from dashboard_pages import valid
from dashboard_sample import BROKEN, report, sample_store, unloadable

from torch_backend_ci.dashboard import build, documents, paths
from torch_backend_ci.dashboard.pages import api, badge
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.render import encode

SVG = "{http://www.w3.org/2000/svg}"
WRONG = {"outcome": "fail", "message": "3 of 8 elements differ"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    build.build(sample_store(folder / "store"), folder / "site", 1)
    return folder / "site"


def endpoint(made: Model, backend: str = "cpu") -> dict[str, Any]:
    files = {file.path: file.content for file in badge.pages(made)}
    told: dict[str, Any] = json.loads(files[paths.of_endpoint(backend)])
    picture = ElementTree.fromstring(files[paths.of_badge(backend)])
    assert picture.findtext(f"{SVG}title") == f"{told['label']} of {backend}: {told['message']}"
    return told


def test_the_badge_is_of_the_newest_release_that_has_a_column() -> None:
    reports = [
        report(torch=torch, started=f"2026-11-20T0{hour}:00:00+00:00", complete=hour != 3)
        for hour, torch in enumerate(("2.13.0", "2.9.1", "2.16.0.dev20261120", "2.15.0"))
    ]
    assert endpoint(model(reports))["message"] == "training, torch 2.13.0"
    assert endpoint(model(reports[2:3]))["message"] == "training, torch 2.16.0.dev20261120"


def test_a_badge_that_is_old_says_so_and_loses_its_colour() -> None:
    old = report(started="2026-11-15T02:00:00+00:00")
    fresh = endpoint(model([old]))
    stale = endpoint(model([old, report("other", started="2026-11-20T02:00:00+00:00")]))
    assert stale["message"] == "training, torch 2.13.0, 5 days old"
    assert stale["color"] != fresh["color"]


def test_a_badge_does_not_claim_a_level_that_nobody_reached_or_judged() -> None:
    failing = report(outcomes={"smoke/smoke_001:c0": WRONG})
    assert endpoint(model([failing]))["message"] == "no level, torch 2.13.0"
    dead = unloadable("cpu", "2.13.0", "2026-11-20T02:00:00+00:00", "no driver")
    told = endpoint(model([dead]))
    assert told["message"] == "not assessed, torch 2.13.0"
    assert told["color"] == endpoint(model([failing]))["color"]


def test_everything_that_the_list_names_is_there(site: Path) -> None:
    told = json.loads((site / paths.API).read_bytes())
    valid(told)
    named = [
        told["feed"],
        *told["documents"].values(),
        *(one[name] for one in told["backends"] for name in ("document", "badge", "endpoint")),
        *(one["document"] for one in [*told["steps"], *told["comparisons"]]),
        *told["surfaces"].values(),
        *told["requirements"].values(),
        *told["schemas"].values(),
        *(
            told["templates"]["run"].format(id=run)
            for one in told["series"]
            for run in one["runs"] + one["others"]
        ),
    ]
    assert [path for path in named if not (site / path).is_file()] == []
    assert told["newest"] == "2026-11-20T04:00:00Z"
    assert len(told["series"]) == 9


def test_every_document_has_the_schema_that_it_names(site: Path) -> None:
    kinds = set()
    for file in (site / "api").rglob("*.json"):
        told = json.loads(file.read_bytes())
        if "schema" in told:
            valid(told)
            kinds.add(told["schema"])
    assert set(map(documents.schema, api.kinds())) - kinds <= {documents.schema("step")}


def test_the_templates_of_the_list_are_the_addresses_of_runs_and_checks() -> None:
    made = model([report()])
    (run,) = made.series[next(iter(made.series))].runs
    told = api.index(made).templates
    assert told.run.format(id=run.id[:12]) == paths.api(paths.of_run(run))
    topic = BROKEN.partition(":")[0]
    assert told.topic.format(topic=topic) == paths.of_topic_document(topic)


def test_an_empty_store_has_a_list_too() -> None:
    told = api.index(model([]))
    valid(json.loads(encode(told)))
    assert told.newest is None
    assert told.series == ()
