# SPDX-License-Identifier: BSD-3-Clause
"""The feed of regressions: an entry for each run of a series that has some, newest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from torch_backend_ci import atom
from torch_backend_ci.atom import escaped
from torch_backend_ci.dashboard import causes, documents, pairs, paths
from torch_backend_ci.dashboard.causes import Cause
from torch_backend_ci.dashboard.model import Change
from torch_backend_ci.dashboard.page import File
from torch_backend_ci.dashboard.pairs import Pair

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

NEWEST = 100
MOST_CAUSES = 10
TITLE = "Regressions of PyTorch backends"
# Sites may be moved and mirrored: an entry stays the same on every host.
ID = f"{documents.NAMESPACE}:regressions"


class Entry(NamedTuple):
    """A run with regressions."""

    pair: Pair
    """The run, after the one before it in its series."""
    changes: list[Change]


def pages(model: Model) -> Iterator[File]:
    """feed.atom."""
    found = heapq.nlargest(NEWEST, _entries(model), key=_age)
    compared = {paths.of_comparison(*pair) for pair in pairs.prerendered(model)}
    updated = documents.moment(found[0].pair.new) if found else atom.NEVER
    feed = atom.feed(ID, TITLE, updated, author="PyTorch conformance")
    atom.add(feed, "link", rel="self", type="application/atom+xml", href=paths.FEED)
    atom.add(feed, "link", rel="alternate", type="text/html", href=paths.OVERVIEW)
    for entry in found:
        _add(feed, entry, compared)
    yield File(paths.FEED, atom.written(feed))


def _entries(model: Model) -> Iterator[Entry]:
    for key, series in model.series.items():
        bad = (change for change in model.changes(key) if change.kind == "regression")
        for index, changes in groupby(bad, lambda change: change.run):
            yield Entry(Pair(series.runs[index - 1], series.runs[index]), list(changes))


def _age(entry: Entry) -> tuple[str, str]:
    return documents.moment(entry.pair.new), entry.pair.new.id


def _add(feed: ElementTree.Element, entry: Entry, compared: set[str]) -> None:
    run = entry.pair.new
    page = paths.of_comparison(*entry.pair)
    element = atom.entry(feed, f"{ID}:{run.id}", _title(entry), documents.moment(run))
    place = page if page in compared else paths.of_run(run)
    atom.add(element, "link", rel="alternate", type="text/html", href=place)
    atom.add(element, "category", term=run.key.backend)
    atom.add(element, "category", term=f"torch {run.key.line}")
    atom.add(element, "content", "\n".join(_html(entry)), type="html")


def _title(entry: Entry) -> str:
    run, count = entry.pair.new, len(entry.changes)
    many = "regression" if count == 1 else "regressions"
    return f"{run.key.backend}, torch {run.key.line}: {count:,} {many} on {run.started:%Y-%m-%d}"


def _html(entry: Entry) -> Iterator[str]:
    old, new = entry.pair
    yield f"<p>torch {escaped(new.torch)}, compared with the run of {old.started:%Y-%m-%d}.</p>"
    if differs := pairs.unlike(old, new):
        said = escaped(", ".join(differs))
        yield f"<p>The two runs did not ask the same: what differs is {said}.</p>"
    found = causes.of_series(entry.changes)
    yield "<ul>"
    yield from map(_cause, found[:MOST_CAUSES])
    yield "</ul>"
    if more := sum(len(cause.ids) for cause in found[MOST_CAUSES:]):
        yield f"<p>... and {more:,} more.</p>"


def _cause(cause: Cause) -> str:
    checks = f"<code>{escaped(cause.ids[0])}</code>"
    if others := len(cause.ids) - 1:
        checks += f" and {others:,} more"
    said = f": {escaped(cause.text)}" if cause.text else ""
    return f"<li>{checks}: {_words(cause.before)} &#8594; {_words(cause.after)}{said}</li>"


def _words(outcome: str) -> str:
    return escaped(outcome.replace("_", " "))
