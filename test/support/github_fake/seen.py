# SPDX-License-Identifier: BSD-3-Clause
"""What people see of a repository: without numbers and times that differ from run to run."""

from __future__ import annotations

from typing import Any

from github_fake.world import Repository, World


def seen(world: World, repository: Repository) -> dict[str, Any]:
    """To be compared with how it was."""
    commits = world.objects.commits
    branches = {
        ref: (commits[sha].tree, sorted(commits[x].message for x in world.objects.history(sha)))
        for ref, sha in repository.refs.items()
    }
    issues = {
        number: (
            issue.state,
            issue.title,
            issue.body,
            sorted(issue.labels),
            [(comment.author, comment.body) for comment in issue.comments],
            commits[issue.pull.head_sha].tree if issue.pull else None,
        )
        for number, issue in repository.issues.items()
    }
    checks = {  # of several with one name, the newest is shown
        (check.name, commits[check.head_sha].tree): (
            check.status,
            check.conclusion,
            check.external_id,
            check.output,
            check.annotations,
        )
        for check in repository.checks
    }
    return {
        "labels": sorted((x.name, x.color, x.description) for x in repository.labels),
        "branches": branches,
        "issues": issues,
        "checks": checks,
        "dispatches": list(repository.dispatches),
        "workflow_dispatches": list(repository.workflow_dispatches),
    }
