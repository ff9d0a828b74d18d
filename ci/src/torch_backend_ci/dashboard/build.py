# SPDX-License-Identifier: BSD-3-Clause
"""From a store to a site: read, sum up what is new, render in several processes, publish."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from torch_backend_ci.dashboard import pages, paths, runs, state
from torch_backend_ci.dashboard.history import Stored
from torch_backend_ci.dashboard.lasted import Entry, Lasted
from torch_backend_ci.dashboard.model import Findings, Run
from torch_backend_ci.dashboard.page import File, Lasting, Task
from torch_backend_ci.dashboard.read import Model, in_series
from torch_backend_ci.dashboard.render import render
from torch_backend_ci.dashboard.site import Site
from torch_backend_ci.dashboard.stems import topic_of
from torch_backend_ci.dashboard.workers import Workers
from torch_backend_ci.output import say
from torch_backend_ci.results import layout
from torch_backend_ci.results.store import Store, VanishedError

STATIC = Path(__file__).parent / "static"
CHECKS = 500
"""Checks whose histories are in memory at once."""
BATCH = 200
"""Runs whose bad results are read at once."""
ATTEMPTS = 3
"""How often a build begins again because the store was compacted meanwhile."""


def build(store: Path, output: Path, jobs: int | None = None) -> int:
    """Make the site of a store, or make it up to date; returns its number of files.

    CiError if the store cannot be read or the site not be written: then the site is as it was.
    """
    kept, site, workers = Store(store), Site(output), Workers(jobs)
    for left in reversed(range(ATTEMPTS)):
        try:
            with site.building():
                return _build(kept, site, workers)
        except VanishedError:
            if not left:
                raise
            say("the store was compacted meanwhile: beginning again")
    raise AssertionError("the last attempt returns or raises")


def _build(store: Store, site: Site, workers: Workers) -> int:
    model, history = read(store, site.state, workers)
    notice = layout.notice(store.path)
    tasks, known = list(_tasks(model, history)), Lasted(site, notice)
    made = workers.map(
        lambda task: _write(site, known, notice, tasks[task]), range(len(tasks)), "pages"
    )
    known.keep({path: entry for _, lasting in made for path, entry in lasting.items()})
    return sum(count for count, _ in made)


def read(store: Store, folder: Path, workers: Workers) -> tuple[Model, Stored]:
    """The model of a store; `folder` keeps what makes the next time short."""
    snapshot = store.snapshot()
    with snapshot.reading() as database:
        every = runs.read(database)
    findings = [_findings(id, document) for id, document in store.findings()]
    series = in_series(every)
    say(f"{len(every)} runs in {len(series)} series")
    history = Stored(snapshot, state.updated(folder, snapshot, series, workers), series)
    history.load(workers)
    return Model(every, history, findings), history


def _findings(id: str, document: Mapping[str, Any]) -> Findings:
    before, after = document["before"]["version"], document["after"]["version"]
    return Findings(id, before, after, document)


def _tasks(model: Model, history: Stored) -> Iterator[Task]:
    """What can be made apart from each other, the longest first."""
    for maker in pages.makers():
        yield functools.partial(maker, model)
    for parts in pages.in_parts():
        yield from parts(model)
    for topics in _batches(model):
        yield functools.partial(_of_topics, model, history, topics)
    every = [run for series in model.series.values() for run in (*series.runs, *series.others)]
    for _, of_month in groupby(sorted(every, key=_month), _month):
        mine = list(of_month)
        for first in range(0, len(mine), BATCH):
            yield functools.partial(_of_runs, model, history, mine[first : first + BATCH])
    yield _static


def _month(run: Run) -> str:
    """As the store's files are: what is read together lies together."""
    return run.started.strftime("%Y-%m")


def _batches(model: Model) -> Iterator[dict[str, list[str]]]:
    """Topics with the ids of their checks, about as many checks in each batch."""
    batch: dict[str, list[str]] = {}
    for topic, ids in groupby(sorted(model.check_ids(), key=_place), topic_of):
        batch[topic] = list(ids)
        if sum(map(len, batch.values())) >= CHECKS:
            yield batch
            batch = {}
    if batch:
        yield batch


def _place(id: str) -> tuple[str, str]:
    """A topic stays together: the sorted ids alone would mix `a/b-c` into `a/b:`."""
    return topic_of(id), id


def _of_topics(model: Model, history: Stored, topics: Mapping[str, list[str]]) -> Iterator[File]:
    found = {check.id: check for check in history.checks_among(topics)}
    for topic, ids in topics.items():
        mine = [found[id] for id in ids]
        yield from (make(topic, mine, model) for make in pages.of_topics())


def _of_runs(model: Model, history: Stored, mine: Sequence[Run]) -> Iterator[Lasting]:
    before = {
        run.id: earlier
        for series in model.series.values()
        for earlier, run in pairwise(series.runs)
    }
    for make in pages.of_runs():
        history.announce(mine)
        for run in mine:
            both = [run, before[run.id]] if run.id in before else [run]
            of = " ".join(f"{one.id} {one.kept}" for one in both)
            yield Lasting(paths.of_run(run), of, functools.partial(make, run, model))


def _static() -> Iterator[File]:
    for file in sorted(STATIC.iterdir()):
        yield File(f"static/{file.name}", file.read_bytes())


def _write(
    site: Site, known: Lasted, notice: str | None, task: Task
) -> tuple[int, dict[str, Entry]]:
    """Returns how many files it made, and what has to be known to spare some the next time."""
    count, lasting = 0, {}
    for page in task():
        if isinstance(page, Lasting):
            files = known.files(page) or list(render(page.make(), notice))
            lasting[page.path] = known.entry(page, files)
        else:
            files = list(render(page, notice))
        for file in files:
            _put(site, file)
        count += len(files)
    return count, lasting


def _put(site: Site, file: File) -> None:
    try:
        site.put(file)
    except FileExistsError:
        raise ValueError(f"two pages want to be {file.path}") from None
