# SPDX-License-Identifier: BSD-3-Clause
"""How to read the site: its words, its symbols, its rules, and what there is for programs."""

from __future__ import annotations

from collections.abc import Iterator

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.page import Page
from torch_backend_ci.dashboard.read import Model
from torch_conformance.results import levels
from torch_conformance.spec.outcome import RANKS


def pages(_: Model) -> Iterator[Page]:
    """One page, the same for all stores."""
    outcomes = sorted(RANKS.items(), key=lambda entry: -entry[1])
    context = {"levels": levels.every(), "ranks": outcomes}
    yield Page(paths.ABOUT, "How to read this", "about.html", context)
