# SPDX-License-Identifier: BSD-3-Clause
"""The fixtures of the tests of `ci`.

Not as `pytest_plugins`, which only a conftest at the root of a run may have: the suite's own tests
run pytest elsewhere on directories of this one.
"""

from __future__ import annotations

from dashboard_site import chromium, served, site
from github_fixtures import converges, github_event, github_fake, verb, waits

__all__ = [
    "chromium",
    "converges",
    "github_event",
    "github_fake",
    "served",
    "site",
    "verb",
    "waits",
]
