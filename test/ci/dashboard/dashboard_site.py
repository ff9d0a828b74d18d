# SPDX-License-Identifier: BSD-3-Clause
"""The site of the sample store in a browser: fixtures, and what tests of pages look at."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dashboard_findings import between, finding
from dashboard_sample import (
    BLOCKED,
    BROKEN,
    CRASHED,
    HOSTILE,
    NOW,
    RENAMED,
    SLOWED,
    TORCHES,
    sample_store,
)
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.build import build
from torch_backend_ci.dashboard.serve import HOST, server
from torch_backend_ci.results.add import Fate, add

ROOT = Path(__file__).resolve().parents[3]
BROWSER = ROOT / "build" / "chromium" / "chromium.sh"
expect.set_options(timeout=60_000)  # Of a busy machine; what is waited for comes at once.
#: Every kind of page, by where it is.
KINDS = {
    "overview": r"index\.html",
    "backend": r"backend/[^/]+/index\.html",
    "requirements": r"requirement/index\.html",
    "requirement": r"requirement/[A-Z]+(?:-[A-Z]+)?-\d+\.html",
    "checks": r"checks\.html",
    "surface": r"check/[^/]+\.html",
    "check": r"check\.html",
    "run": r"run/[0-9a-f]{12}\.html",
    "compare": r"compare/index\.html",
    "comparison": r"compare/[0-9a-f]{12}-[0-9a-f]{12}\.html",
    "upstream": r"upstream/index\.html",
    "blocked": r"upstream/blocked\.html",
    "step": r"upstream/[0-9][^/]*\.html",
    "search": r"search\.html",
    "about": r"about\.html",
}


@dataclass
class Seen:
    """A page in the browser, and what went wrong in it."""

    page: Page
    base: str
    problems: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """To a page of the site; a check is waited for."""
        self.page.goto(self.base + path)
        if path.startswith(f"{paths.CHECK}?"):
            expect(self.page.locator("#check")).to_be_visible()

    def listen(self) -> None:
        """From now on, everything that should not happen is a problem."""
        told = self.problems.append
        page = self.page
        page.on("console", lambda it: told(f"console: {it.text}") if it.type in BAD else None)
        page.on("pageerror", lambda it: told(f"error: {it}"))
        page.on("requestfailed", lambda it: told(f"not loaded: {it.url}"))
        page.on("response", lambda it: told(f"{it.status}: {it.url}") if it.status > 399 else None)
        page.on("dialog", self._run)

    def _run(self, dialog: Dialog) -> None:
        """What hostile texts try."""
        self.problems.append(f"a script of a report ran: {dialog.message}")
        dialog.dismiss()


#: Kinds of messages; violations of the policy are errors.
BAD = ("error", "warning")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the sample's site."""
    folder = tmp_path_factory.mktemp("dashboard")
    kept = sample_store(folder / "store")
    findings = folder / "findings.json"
    step = between(*TORCHES[:2], finding(message=HOSTILE, hint=HOSTILE), finding("c10::other"))
    findings.write_text(json.dumps(step.document), encoding="utf-8")
    assert [told.fate for told in add(kept, [findings], NOW)] == [Fate.ADDED]
    build(kept, folder / "site", 1)
    return folder / "site"


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    with server(site, 0) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{listening.server_port}/"
        listening.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser; of a module and no longer, for its driver occupies the thread's event loop."""
    program = os.environ.get("CHROMIUM", str(BROWSER))
    if not Path(program).is_file():
        pytest.fail(f"there is no browser at {program}: `make chromium`, or set CHROMIUM to one")
    with (
        sync_playwright() as driver,
        contextlib.closing(driver.chromium.launch(executable_path=program)) as browser,
    ):
        yield browser


@contextlib.contextmanager
def opened(chromium: Browser, served: str, **context: Any) -> Iterator[Seen]:
    """A fresh window, as wide, dark or without scripts as the context says."""
    with contextlib.closing(chromium.new_context(**context)) as window:
        seen = Seen(window.new_page(), served)
        seen.listen()
        yield seen


def files(site: Path) -> list[str]:
    """The paths of all pages."""
    return sorted(str(one.relative_to(site)) for one in site.rglob("*.html"))


def of_kind(site: Path, kind: str) -> list[str]:
    """The pages of a kind, at least one."""
    found = [path for path in files(site) if re.fullmatch(KINDS[kind], path)]
    assert found, f"the sample has no page of kind {kind}"
    return found


def addresses(site: Path, kind: str) -> list[str]:
    """Where pages of a kind are: as `of_kind`, but one page shows all checks."""
    if kind == "check":
        return [paths.of_check(id) for id in (BROKEN, SLOWED, BLOCKED, CRASHED, RENAMED)]
    return of_kind(site, kind)


def some(places: Sequence[str]) -> list[str]:
    """The first and the last."""
    return list(dict.fromkeys([places[0], places[-1]]))


def telling(site: Path, places: Sequence[str]) -> list[str]:
    """Those, and the pages that show what the hostile backend says."""
    hostile = [path for path in places if "?" in path or b"alert(1)" in (site / path).read_bytes()]
    return list(dict.fromkeys([*some(places), *hostile]))
