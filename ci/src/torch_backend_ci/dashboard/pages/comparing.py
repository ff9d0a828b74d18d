# SPDX-License-Identifier: BSD-3-Clause
"""Compare any two aligned runs in the browser; and the list of those comparisons that are pages.

What the runs asked, by `comparison.ALIKE`, and what they say of themselves besides is in a file for
each series: of its first run all, of each other run what is not as in the run before it. How their
checks came out is in the index of the search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from torch_backend_ci.dashboard import documents, pairs, paths
from torch_backend_ci.dashboard.model import Run, Series
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.dashboard.pages import compare
from torch_backend_ci.dashboard.pages.search import EVIDENCE
from torch_backend_ci.dashboard.render import encode
from torch_backend_ci.document import Part
from torch_conformance.results.comparison import ALIKE, NOTED
from torch_conformance.spec.outcome import Outcome

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


class SeriesPart(documents.KeyPart, kw_only=True, frozen=True):
    """The runs of a series."""

    outcomes: Annotated[
        str, Meta(description="How the checks came out, from the root of the site.")
    ]
    told: Annotated[
        str, Meta(description="What the runs say of themselves, from the root of the site.")
    ]
    runs: Annotated[
        tuple[tuple[str, str], ...],
        Meta(description="Aligned, oldest first: id and when it started."),
    ]
    others: Annotated[
        tuple[tuple[str, str, str], ...],
        Meta(description="Not aligned, oldest first: id, when it started, and why."),
    ]


class Document(Part, tag_field="schema", tag=documents.schema("runs"), frozen=True):
    """The runs that can be compared, and where it stands what they are."""

    series: tuple[SeriesPart, ...]
    pages: Annotated[
        tuple[str, ...], Meta(description="Of comparisons, from the root of the site.")
    ]


def pages(model: Model) -> Iterator[Page | File]:
    """The page where two runs are chosen, and what it needs to know of the runs."""
    for key, series in model.series.items():
        yield File(paths.of_told(key), encode({"runs": list(told(series.runs))}))
    made = compare.wanted(model)
    by_backend = defaultdict(list)
    for pair in made:
        by_backend[pair.new.key.backend].append((compare.title(pair), paths.of_comparison(*pair)))
    context = {
        "made": dict(sorted(by_backend.items())),
        "lists": compare.LISTS,
        "outcomes": [str(outcome) for outcome in Outcome],
        "evidence": EVIDENCE,
    }
    document = Document(
        series=tuple(map(_series, model.series.values())),
        pages=tuple(paths.of_comparison(*pair) for pair in made),
    )
    yield Page(paths.COMPARE, "Compare two runs", "comparing.html", context, document)


def told(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Of each run what torch_conformance.results.comparison reads, where it is not as before."""
    before: dict[str, Any] = {}
    for run in runs:
        facts = pairs.facts(run)
        now = msgspec.to_builtins(
            {
                "asks": {name: read(facts) for name, read in ALIKE.items()},
                "notes": {name: getattr(facts, name) for name in NOTED},
                "capabilities": facts.capabilities,
            }
        )
        yield {name: value for name, value in now.items() if value != before.get(name)}
        before = now


def _series(series: Series) -> SeriesPart:
    return SeriesPart(
        **documents.of_key(series.key),
        outcomes=paths.of_index(series.key),
        told=paths.of_told(series.key),
        runs=tuple((run.id[:12], documents.moment(run)) for run in series.runs),
        others=tuple(
            (run.id[:12], documents.moment(run), run.why_not or "") for run in series.others
        ),
    )
