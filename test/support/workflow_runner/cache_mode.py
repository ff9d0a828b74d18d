# SPDX-License-Identifier: BSD-3-Clause
"""`cache-mode`: what a job may do with the caches of its repository.

The library that reads workflows does not know the key yet, so it is taken out of what it is given.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from workflow_runner.mistakes import Mistake

# Events that people without write access can cause: their jobs may only read caches, unless the
# workflow says otherwise.
LOW_TRUST = {"issue_comment", "issues", "pull_request_target", "workflow_run"}
_LINE = re.compile(r"^ *cache-mode:.*\n", re.MULTILINE)


class Access(NamedTuple):
    """What a job may do."""

    restore: bool
    save: bool

    def within(self, other: Access | None) -> Access:
        """No more than the caller of a workflow may."""
        if other is None:
            return self
        return Access(self.restore and other.restore, self.save and other.save)


MODES = {
    "read": Access(True, False),
    "write": Access(True, True),
    "write-only": Access(False, True),
    "none": Access(False, False),
}


def without(workflow: str) -> str:
    """The text of a workflow that says nothing of it."""
    return _LINE.sub("", workflow)


def of(workflow: str, job: str, event: str) -> Access:
    """Of a job of the workflow with this text, run for an event."""
    document: dict[str, Any] = yaml.safe_load(workflow)
    default = "read" if event in LOW_TRUST else "write"
    mode = document["jobs"][job].get("cache-mode", document.get("cache-mode", default))
    if mode not in MODES:
        raise Mistake(f"cache-mode: {mode} is not one of: {', '.join(MODES)}")
    return MODES[mode]
