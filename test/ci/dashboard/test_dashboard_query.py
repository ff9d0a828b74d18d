# SPDX-License-Identifier: BSD-3-Clause
"""The query language, asked in node of the index that is made for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml
from node_scripts import answer

from torch_backend_ci import document
from torch_backend_ci.dashboard import build, render
from torch_backend_ci.dashboard.model import Check, Course, Key, Run, Series, Spell
from torch_backend_ci.dashboard.page import File
from torch_backend_ci.dashboard.pages import search

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

HERE = Path(__file__).parent
TOLD = yaml.load((HERE / "dashboard_queries.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@dataclass(frozen=True)
class History:
    """As much of a Model as the index is made from: what the YAML file says."""

    @cached_property
    def series(self) -> dict[Key, Series]:
        keys = {key(name): runs for name, runs in TOLD["runs"].items()}
        return {k: Series(k, (cast(Run, None),) * runs, (), None) for k, runs in keys.items()}

    def checks(self) -> Iterator[Check]:
        for id, told in sorted(TOLD["checks"].items()):
            asks = told["asks"]
            courses = {key(name): course(told[name]) for name in TOLD["runs"] if name in told}
            surface = id.partition("/")[0]
            yield Check(
                id, surface, asks["tier"], asks["level"], tuple(asks["requirements"]), courses
            )


def key(name: str) -> Key:
    return Key(*name.split(" "))


def course(letters: str) -> Course:
    spells = []
    first = 0
    for letter, alike in groupby(letters):
        last = first + len(list(alike)) - 1
        if letter != "-":
            outcome, evidence = TOLD["letters"][letter]
            spells.append(Spell(outcome, evidence, first, last))
        first = last + 1
    return Course(tuple(spells), None, None, ())


def made() -> dict[str, Any]:
    """The documents of the index by their paths."""
    documents = {}
    for page in search.pages(cast("Model", History())):
        if isinstance(page, File):
            documents[page.path] = json.loads(page.content)
        else:
            documents[page.path] = document.plain(page.data)
    return documents


def answers(queries: Sequence[str]) -> list[dict[str, Any]]:
    documents = made()
    told = documents["search.html"]
    question = {
        "told": told,
        "packed": [documents[one["file"]] for one in told["series"]],
        "queries": queries,
    }
    return list(answer("queries.mjs", question))


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    queries = [query for query, *_ in (*TOLD["found"], *TOLD["errors"])]
    return dict(zip(queries, answers(queries), strict=True))


@pytest.mark.parametrize(("query", "found"), TOLD["found"])
def test_a_query_finds_what_it_should(
    query: str, found: dict[str, list[str]], told: dict[str, dict[str, Any]]
) -> None:
    assert told[query] == found
    assert list(told[query]) == sorted(found)


@pytest.mark.parametrize(("query", "at", "part"), TOLD["errors"])
def test_a_wrong_query_is_told_where_and_why(
    query: str, at: list[int], part: str, told: dict[str, dict[str, Any]]
) -> None:
    assert [told[query].get("from"), told[query].get("to")] == at
    assert part in told[query]["message"]


def test_the_index_says_each_id_once_and_only_what_changed_at_length() -> None:
    documents = made()
    index = documents["search.html"]
    assert sum(len(group["cases"]) for group in index["groups"]) == len(TOLD["checks"])
    one = documents["api/search/puone-sim/nightly.json"]
    assert len(one["now"]) == len(TOLD["checks"])
    assert one["spells"] == {}, "there is one run, so nothing can have changed"
    assert len(documents["api/search/puone-sim/2.13.json"]["spells"]) == 7
    assert documents["api/search/puone-cuda/2.12.json"] == {"now": "-" * 7, "spells": {}}


def test_every_term_that_the_page_explains_is_one_of_the_language() -> None:
    fields = (build.STATIC / "query.js").read_text(encoding="utf-8")
    page = (render.TEMPLATES / "search.html").read_text(encoding="utf-8")
    named = json.loads(fields.partition("const FIELDS = ")[2].partition(";")[0])
    assert [field for field in named if f"<code>{field}:" not in page] == []
