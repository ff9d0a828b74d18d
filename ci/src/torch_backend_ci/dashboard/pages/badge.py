# SPDX-License-Identifier: BSD-3-Clause
"""The badge of each backend: the level of its newest release line that has a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.model import NIGHTLY, Run, Series
from torch_backend_ci.dashboard.page import File
from torch_backend_ci.dashboard.render import encode, plural
from torch_conformance.results import badge
from torch_conformance.results.levels import Verdict

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model


def pages(model: Model) -> Iterator[File]:
    """badge.svg, and badge.json for shields.io."""
    for backend in model.backends:
        series, run = _shown([one for key, one in model.series.items() if key.backend == backend])
        verdict, remark = _verdict(run), _remark(series, run)
        yield File(paths.of_badge(backend), badge.svg(backend, run.torch, verdict, remark).encode())
        yield File(paths.of_endpoint(backend), encode(badge.endpoint(run.torch, verdict, remark)))


def _shown(series: list[Series]) -> tuple[Series, Run]:
    """The newest column of a release, else of a nightly, else the newest run that is none."""
    columns = [(one, one.column) for one in series if one.column]
    releases = [found for found in columns if found[0].key.line != NIGHTLY]
    others = [(one, one.others[-1]) for one in series if one.others]
    return (releases or columns or others)[-1]


def _verdict(run: Run) -> Verdict:
    title = "not assessed" if run.why_not else run.title if run.level else "no level"
    return Verdict(run.level, title, run.why_not, (), run.without, {})


def _remark(series: Series, run: Run) -> str:
    is_old = series.stale and run is series.column
    return f"{plural(series.stale.days, 'day')} old" if is_old and series.stale else ""
