# SPDX-License-Identifier: BSD-3-Clause
"""api/index.json: what there is for programs. And the schemas of the documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci.dashboard import documents, paths
from ci.dashboard.model import Series
from ci.dashboard.page import File
from ci.dashboard.pages import compare
from ci.dashboard.render import encode

if TYPE_CHECKING:
    from ci.dashboard.read import Model

SCHEMAS = Path(__file__).parents[1] / "schema"
SUFFIX = ".schema.json"
#: Of what there is one document.
SINGLE = {
    "overview": paths.OVERVIEW,
    "requirements": paths.REQUIREMENTS,
    "checks": paths.CHECKS,
    "search": paths.SEARCH,
    "upstream": paths.UPSTREAM,
    "blocked": paths.BLOCKED,
}


def pages(model: Model) -> Iterator[File]:
    """The list, and the schemas."""
    yield File(paths.API, encode(index(model)))
    for kind in kinds():
        yield File(paths.of_schema(kind), (SCHEMAS / f"{kind}{SUFFIX}").read_bytes())


def kinds() -> list[str]:
    """The kinds of documents that have a schema."""
    return sorted(file.name.removesuffix(SUFFIX) for file in SCHEMAS.glob(f"*{SUFFIX}"))


def index(model: Model) -> dict[str, Any]:
    """What there is; paths are from the root of the site."""
    return {
        "schema": documents.schema("index"),
        "newest": f"{model.newest:%Y-%m-%dT%H:%M:%SZ}" if model.newest else None,
        "documents": {name: paths.api(path) for name, path in SINGLE.items()},
        "backends": [_backend(name) for name in model.backends],
        "series": [_series(series) for series in model.series.values()],
        "templates": {"run": "api/run/{id}.json", "check": "api/check/{surface}/{rest}.json"},
        "requirements": {id: paths.api(paths.of_requirement(id)) for id in model.requirements},
        "surfaces": {name: paths.api(paths.of_surface(name)) for name in _surfaces(model)},
        "steps": [_step(one.before, one.after) for one in model.findings],
        "comparisons": [
            {
                "old": pair.old.id[:12],
                "new": pair.new.id[:12],
                "document": paths.api(paths.of_comparison(*pair)),
            }
            for pair in compare.wanted(model)
        ],
        "feed": paths.FEED,
        "schemas": {documents.schema(kind): paths.of_schema(kind) for kind in kinds()},
    }


def _backend(name: str) -> dict[str, str]:
    return {
        "name": name,
        "document": paths.api(paths.of_backend(name)),
        "badge": paths.of_badge(name),
        "endpoint": paths.of_endpoint(name),
    }


def _series(series: Series) -> dict[str, Any]:
    return {
        **documents.of_key(series.key),
        "column": documents.of_run(series.column) if series.column else None,
        "runs": [run.id[:12] for run in series.runs],
        "others": [run.id[:12] for run in series.others],
    }


def _step(before: str, after: str) -> dict[str, str]:
    place = paths.api(paths.of_step(before, after))
    return {"before": before, "after": after, "document": place}


def _surfaces(model: Model) -> list[str]:
    return sorted({check.surface for check in model.check_ids().values()})
