# SPDX-License-Identifier: BSD-3-Clause
"""What the pages of all checks say alike of a series and its runs, worked out once.

A site has a million rows of checks; most of them differ in a few numbers. Nothing here comes from
a report but names that the store takes for plain, and days.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from ci.dashboard import documents, paths, pictures
from ci.dashboard.model import Key, Series, Spell

if TYPE_CHECKING:
    from ci.dashboard.read import Model

#: From the page of any check to the root of the site.
ROOT = paths.root(paths.of_check("surface/name"))


class Lane:
    """A series on the pages of checks. Runs are named by their index in `Series.runs`."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.column = documents.of_run(series.runs[-1]) if series.runs else None
        self.link = Markup('<a href="{}{}"><bdi>{}</bdi> {}</a>').format(
            ROOT, paths.of_series(series.key), *series.key
        )
        self._whole: dict[Spell, Markup] = {}

    @functools.cached_property
    def moments(self) -> list[str]:
        """When each run started."""
        return [documents.moment(run) for run in self.series.runs]

    @functools.cached_property
    def runs(self) -> list[Markup]:
        """A link to each run, by its day."""
        link = Markup('<a class="nowrap" href="{}{}">{}</a>')
        return [
            link.format(ROOT, paths.of_run(run), run.started.date()) for run in self.series.runs
        ]

    def strip(self, spells: Sequence[Spell]) -> Markup:
        """As pictures.strip. Most checks came out alike in every run."""
        if len(spells) > 1:
            return pictures.strip(self.series, spells)
        if spells[0] not in self._whole:
            self._whole[spells[0]] = pictures.strip(self.series, spells)
        return self._whole[spells[0]]


@functools.lru_cache(maxsize=1)
def of(model: Model) -> Mapping[Key, Lane]:
    """The series of a model."""
    return {key: Lane(series) for key, series in model.series.items()}
