# SPDX-License-Identifier: BSD-3-Clause
"""A page for two runs of a backend: what changed.

The rules are those of torch_conformance.results.comparison.
A page depends on its two runs alone, so it never changes once it is made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta, structs

from torch_backend_ci.dashboard import causes, documents, pairs, paths, steps
from torch_backend_ci.dashboard.causes import Cause
from torch_backend_ci.dashboard.model import Run
from torch_backend_ci.dashboard.page import Lasting, Page
from torch_backend_ci.dashboard.pairs import Pair
from torch_backend_ci.document import Part, Sha256, convert
from torch_conformance.results.comparison import Comparison

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

MOST_CAUSES = 100
"""Lines of a list that the page has; the document has every check."""

#: The lists of a comparison, in the order in which they are read: name, title, what it means.
LISTS = (
    ("regressions", "Regressions", "Worse than before, new and bad, or newly left to the CPU."),
    ("removed", "Gone", "The newer run does not have them: what they covered is not tested."),
    ("withdrawn", "Withdrawn", "Bad before and not asked any more: nothing was mended."),
    ("improvements", "Improvements", "Better than before."),
    ("changed", "Other changes", "Neither better nor worse."),
    ("added", "New", "The older run did not have them."),
)


class RunPart(documents.RunPart, kw_only=True, frozen=True):
    """One of the runs."""

    backend: str
    line: documents.Line


class ReportPart(Part, frozen=True):
    """The report of a run."""

    report: Annotated[str, Meta(description="The id of the run.")]
    sha256: Sha256


class ChangePart(Part, frozen=True):
    """What is not as it was."""

    id: Annotated[str, Meta(description="Of a check, or the name of a capability.")]
    old: str
    new: str
    detail: str


class ComparisonPart(
    Part, tag_field="schema", tag="urn:torch-conformance:comparison:1", frozen=True
):
    """As `python -m torch_conformance compare --json` writes it."""

    good: bool
    old: ReportPart
    new: ReportPart
    notes: tuple[str, ...]
    lost: tuple[str, ...]
    regressions: tuple[ChangePart, ...]
    improvements: tuple[ChangePart, ...]
    withdrawn: tuple[ChangePart, ...]
    changed: tuple[ChangePart, ...]
    capabilities: tuple[ChangePart, ...]
    added: tuple[ChangePart, ...]
    removed: tuple[ChangePart, ...]


class Document(Part, tag_field="schema", tag=documents.schema("comparison"), frozen=True):
    """What changed between two runs of a backend."""

    old: RunPart
    new: RunPart
    refused: Annotated[
        tuple[str, ...],
        Meta(description="Why the runs are not compared, in sentences; empty if they are."),
    ]
    comparison: Annotated[ComparisonPart | None, Meta(description="Null if refused.")]


class Section(NamedTuple):
    """One of the lists, by cause."""

    name: str
    title: str
    meaning: str
    total: int
    causes: list[Cause]


def wanted(model: Model) -> list[Pair]:
    """Every two runs that have a page, once."""
    found = [*pairs.prerendered(model), *steps.compared(model)]
    return list({paths.of_comparison(*pair): pair for pair in found}.values())


def parts(model: Model) -> Iterator[Callable[[], Iterator[Lasting]]]:
    """The pages; those of one series after each other, as runs are in two pairs."""
    for _, mine in groupby(wanted(model), lambda pair: (pair.old.key, pair.new.key)):
        yield functools.partial(_pages, list(mine), model)


def _pages(together: Sequence[Pair], model: Model) -> Iterator[Lasting]:
    model.read_ahead([run for pair in together for run in reversed(pair)])
    for pair in together:
        of = " ".join(f"{run.id} {run.kept}" for run in pair)
        yield Lasting(paths.of_comparison(*pair), of, functools.partial(page, pair, model))


def page(pair: Pair, model: Model) -> Page:
    """The page of two runs, which says so where they cannot be compared."""
    across = pairs.unlike(*pair)
    refused = pairs.refusal(pair) or pairs.missing(pair)
    made = None if refused else pairs.compared(model, pair)
    context = {
        "pair": pair,
        "refused": refused,
        "across": across,
        "comparison": made,
        "sections": list(_sections(made)) if made else [],
        "apart": pairs.apart(pair),
        "room": MOST_CAUSES,
    }
    document = Document(
        old=_run(pair.old),
        new=_run(pair.new),
        refused=tuple(refused),
        comparison=convert(made.to_json(), ComparisonPart, "comparison") if made else None,
    )
    return Page(paths.of_comparison(*pair), title(pair), "compare.html", context, document)


def title(pair: Pair) -> str:
    """What is compared: two runs of a series, or two torches."""
    old, new = pair
    of_old, of_new = (f"{run.started:%Y-%m-%d}" for run in pair)
    if old.key == new.key:
        of_new = f"{new.started:%H:%M}" if of_old == of_new else of_new
        return f"{new.key.backend}, torch {new.key.line}: {of_old} to {of_new}"
    before, after = (run.torch.partition("+")[0] for run in pair)
    return f"{new.key.backend}: torch {before} to {after}"


def _sections(made: Comparison) -> Iterator[Section]:
    for name, heading, meaning in LISTS:
        changes: Sequence[Any] = getattr(made, name)
        found = causes.of_comparison(changes, made.new.results)
        yield Section(name, heading, meaning, len(changes), found)


def _run(run: Run) -> RunPart:
    return RunPart(**structs.asdict(documents.of_run(run)), **documents.of_key(run.key))
