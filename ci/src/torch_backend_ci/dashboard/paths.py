# SPDX-License-Identifier: BSD-3-Clause
"""Where everything is in the site. Addresses are promises: they are linked from elsewhere."""

from __future__ import annotations

from urllib.parse import quote

from torch_backend_ci.dashboard.model import Key, Run

OVERVIEW = "index.html"
REQUIREMENTS = "requirement/index.html"
CHECKS = "checks.html"
CHECK = "check.html"
"""Shows any check; see of_check."""
COMPARE = "compare/index.html"
UPSTREAM = "upstream/index.html"
BLOCKED = "upstream/blocked.html"
SEARCH = "search.html"
ABOUT = "about.html"
FEED = "feed.atom"
API = "api/index.json"
"""What there is, for programs."""


def of_backend(name: str) -> str:
    """The page of a backend; the store rejects names that are not file names."""
    return f"backend/{name}/index.html"


def of_badge(name: str) -> str:
    """Its level as a picture."""
    return f"backend/{name}/badge.svg"


def of_endpoint(name: str) -> str:
    """Its level as shields.io asks for it."""
    return f"backend/{name}/badge.json"


def of_requirement(id: str) -> str:
    """The page of a requirement."""
    return f"requirement/{id}.html"


def of_surface(surface: str) -> str:
    """The list of a surface's checks."""
    return f"check/{surface}.html"


def of_topic(topic: str) -> str:
    """The list of the checks whose ids begin so: `opinfo/forward`."""
    return f"check/{topic}/index.html"


def of_check(id: str) -> str:
    """Where a check is shown: one page for all, which a browser fills in."""
    return f"{CHECK}?id={quote(id, safe='/:')}"


def of_topic_document(topic: str) -> str:
    """How the checks whose ids begin so came out in every run, and what they said."""
    return f"api/check/{topic}.json"


def of_run(run: Run) -> str:
    """The page of a run."""
    return f"run/{run.id[:12]}.html"


def of_comparison(old: Run, new: Run) -> str:
    """The page of what changed between two runs of one series or of one day."""
    return f"compare/{old.id[:12]}-{new.id[:12]}.html"


def of_choice(old: Run, new: Run) -> str:
    """The comparison of any two runs, which a browser makes."""
    return f"{COMPARE}?old={old.id[:12]}&new={new.id[:12]}"


def of_step(before: str, after: str) -> str:
    """The page of what changed between two torches."""
    return f"upstream/{before}-{after}.html"


def of_series(key: Key) -> str:
    """The place of a series on its backend's page."""
    return f"{of_backend(key.backend)}#torch-{key.line}"


def of_index(key: Key) -> str:
    """How every check came out in a series, for the search."""
    return f"api/search/{key.backend}/{key.line}.json"


def of_told(key: Key) -> str:
    """What the runs of a series say of themselves, for comparing them."""
    return f"api/compare/{key.backend}/{key.line}.json"


def of_schema(kind: str) -> str:
    """What documents of a kind look like, as JSON Schema."""
    return f"api/schema/{kind}.schema.json"


def api(path: str) -> str:
    """The JSON behind a page; that of the overview makes room for the list of all."""
    if path == OVERVIEW:
        return "api/overview.json"
    return f"api/{path.removesuffix('.html')}.json"


def root(path: str) -> str:
    """The way up from a page to the root of the site: links are relative, so it may be anywhere."""
    return "../" * path.count("/")
