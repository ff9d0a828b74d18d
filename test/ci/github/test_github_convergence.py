# SPDX-License-Identifier: BSD-3-Clause
"""Labels, comments and check runs: killed at any call and run again, the same end is reached."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake

from torch_backend_ci.cli import main
from torch_backend_ci.github import access
from torch_backend_ci.github.change import perform
from torch_backend_ci.github.check_run import Annotation, CheckRun, changes
from torch_backend_ci.label import apply, rules, sync
from torch_backend_ci.surface.model import Finding
from torch_backend_ci.surface.report import json as findings_json

RULES = rules.load()
FINDINGS = Path(__file__).parents[3] / "docs/surface/examples/label-findings.json"
HEADER = {"c10/core/Allocator.h": "struct Allocator;\n", "csrc/a.cpp": "int a;\n"}
Converges = Callable[..., None]


def repository() -> access.Repository:
    return access.repository(argparse.Namespace(repo=None))


@pytest.mark.nightly
def test_label_apply_converges(github_fake: GitHubFake, converges: Converges) -> None:
    number = github_fake.open_pull(HEADER).number
    findings = findings_json.read(FINDINGS).findings

    def label(found: Sequence[Finding]) -> None:
        repo = repository()
        planned = apply.planned_labels(repo, number, found, RULES)
        perform(apply.changes(repo, number, planned, RULES), dry_run=False)

    converges(lambda: label(findings))
    assert "impact: compile-break" in github_fake.repository.issue(number).labels
    converges(lambda: label(()))
    assert set(github_fake.repository.issue(number).labels) == {
        "impact: none",
        "reference-backend: touched",
        "surface: allocator",
    }


def test_label_sync_converges(github_fake: GitHubFake, converges: Converges) -> None:
    world, ours = github_fake.world, github_fake.repository
    first, second, third = RULES.labels[:3]
    world.define_label(ours, first.name.upper(), "ffffff", "other")
    world.define_label(ours, "theirs", "ffffff", None)
    converges(lambda: perform(sync.changes(repository(), [first, second, third]), dry_run=False))
    names = {label.name for label in github_fake.repository.labels}
    assert names == {first.name, second.name, third.name, "theirs"}


def test_comment_converges(github_fake: GitHubFake, converges: Converges, tmp_path: Path) -> None:
    number = github_fake.open_pull(HEADER).number
    body = tmp_path / "body.md"

    def comment() -> None:
        words = ["comment", f"--pr={number}", "--marker=gate", f"--body={body}"]
        assert main(words) == 0

    body.write_text("first")
    converges(comment)
    for _ in range(2):  # of runs that were not told of each other
        text = "<!-- puone-ci: gate -->\nsecond"
        github_fake.world.comment(github_fake.repository.issue(number), BOT, text)
    body.write_text("third")
    converges(comment)
    (said,) = github_fake.repository.issue(number).comments
    assert said.body.endswith("\nthird")


def test_a_check_run_converges(github_fake: GitHubFake, converges: Converges) -> None:
    pull = github_fake.open_pull(HEADER).pull
    assert pull
    marks = [Annotation("a.h", n, "failure", "new failure", f"no {n}") for n in range(1, 131)]
    wanted = CheckRun("gate", pull.head_sha, "run 1.1", "failure", "t", "s", annotations=marks)

    def report() -> None:
        perform(changes(repository(), wanted), dry_run=False)

    converges(report)
    (check,) = github_fake.repository.checks
    assert len(check.annotations) == 130
