# SPDX-License-Identifier: BSD-3-Clause
"""What the steps of one job share: the machine, its environment, the contexts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_runner import commands
from workflow_runner.cache_mode import MODES, Access
from workflow_runner.events import Event
from workflow_runner.expressions import Expressions, Scope
from workflow_runner.hub import Hub
from workflow_runner.mistakes import Mistake
from workflow_runner.permissions import Permissions
from workflow_runner.record import Record

# Shorter ones stand in logs by chance.
_SHORTEST_SECRET = 6


@dataclass
class StepResult:
    """How a step ended: `conclusion` is what the job makes of its `outcome`."""

    name: str
    outcome: str
    conclusion: str
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    annotations: list[commands.Annotation] = field(default_factory=list)


@dataclass
class Session:
    """A job while it runs."""

    hub: Hub
    expressions: Expressions
    record: Record
    event: Event
    run: int
    folder: Path  # of this job alone, with its workspace in it
    contexts: Mapping[str, Any]  # but env and steps
    permissions: Permissions
    env: dict[str, str]
    machine: Mapping[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    caches: Access = MODES["write"]
    scripts: int = 0

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def repository(self) -> str:
        return self.event.repository

    def scope(self, more: Mapping[str, Any], status: str, where: str) -> Scope:
        return Scope({**self.contexts, **more}, status, self.workspace, where)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Of a process: the machine's, GitHub's, the job's, then that of the step."""
        return {
            **self.machine,
            **_described(self),
            **{name: str(value) for name, value in env.items()},
            "PATH": os.pathsep.join([*reversed(self.path), self.machine["PATH"]]),
        }

    def keep_secret(self, log: str) -> str:
        """The log as people see it. What a step prints of a secret is a mistake even so: it is
        hidden only as long as it is printed in one piece."""
        self.secrets.update(commands.masks(log))
        lines = [line for line in log.splitlines() if not line.startswith("::add-mask::")]
        shown = "\n".join(lines)
        for secret in self.secrets:
            if len(secret) >= _SHORTEST_SECRET and secret in shown:
                raise Mistake(f"a step prints a secret: {shown.replace(secret, '***')}")
        return shown


def machine(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """A fresh Linux machine: nothing of the environment that the tests run in, nobody's git."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    here = {name: os.environ[name] for name in ("LANG", "TMPDIR", "TZ") if name in os.environ}
    return {
        **here,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "CI": "true",
        **more,
    }


def _described(session: Session) -> dict[str, str]:
    """What GitHub tells every step of the run."""
    github = session.contexts["github"]
    said = {f"GITHUB_{name.upper()}": github[name] for name in _TOLD}
    runner = {f"RUNNER_{k.upper()}": str(v) for k, v in session.contexts["runner"].items()}
    return {"GITHUB_ACTIONS": "true", **{k: str(v) for k, v in said.items()}, **runner}


_TOLD = (
    *("actor", "api_url", "base_ref", "event_name", "event_path", "head_ref", "job", "ref"),
    *("ref_name", "ref_type", "repository", "repository_owner", "run_attempt", "run_id"),
    *("run_number", "server_url", "sha", "workflow", "workflow_ref", "workflow_sha", "workspace"),
)
