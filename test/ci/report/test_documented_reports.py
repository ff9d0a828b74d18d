# SPDX-License-Identifier: BSD-3-Clause
"""docs/ci/pull-requests.md and docs/ci/feed.md show what really comes of a PR."""

from __future__ import annotations

import json
import re
from pathlib import Path

from github_fake import GitHubFake
from github_fixtures import Verb
from reporting import PLACE, judged

from torch_backend_ci import document
from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.feed.entry import Merged, make
from torch_backend_ci.label import rules
from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Domain

WAS = "virtual void copy_data(void* dest, const void* src, std::size_t count) const"


def a_declaration(text: str) -> Declaration:
    name = "c10::Allocator::copy_data"
    return Declaration(Domain.CPP, "method", name, "allocator", text, PLACE, 226)


MADE_PURE = finding("made_pure", a_declaration(WAS), a_declaration(f"{WAS} = 0"))


def block(page: Path, language: str) -> str:
    return page.read_text().partition(f"```{language}\n")[2].partition("```")[0]


def test_the_page_shows_what_a_pull_request_is_told(
    github_fake: GitHubFake, verb: Verb, root: Path
) -> None:
    command, _, shown = block(root / "docs/ci/pull-requests.md", "console").partition("\n")
    _, run = judged(github_fake, "copy/copy_001:c0", found=(MADE_PURE,))
    words = command.removeprefix("$ torch-backend-ci ").split()
    words[words.index("--run-id") + 1] = str(run.id)
    assert verb(*words).out == re.sub(r"on [0-9a-f]{12}", f"on {run.head_sha[:12]}", shown)


def test_the_page_shows_an_entry_of_the_feed(root: Path) -> None:
    merged = Merged(
        pr=1,
        title="Make copy_data pure",
        url="https://github.com/octo-org/puone/pull/1",
        commit="a" * 40,
        merged_at="2026-01-01T00:00:00Z",
        reverts=None,
        files=(ChangedFile("c10/core/Allocator.h"),),
    )
    entry, _ = make(merged, [MADE_PURE], rules.load())
    assert json.loads(block(root / "docs/ci/feed.md", "json")) == json.loads(document.dumps(entry))


def test_the_pages_link_and_name_what_exists(root: Path) -> None:
    for name in ("pull-requests", "feed"):
        text = (root / f"docs/ci/{name}.md").read_text()
        for path in re.findall(r"`((?:ci|labels|test)/[\w./-]+\.\w+)`", text):
            assert (root / path).exists(), f"{name}.md: {path}"
