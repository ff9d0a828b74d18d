# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a job or of a composite action, one after another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_runner import commands, shell
from workflow_runner.mistakes import Mistake
from workflow_runner.record import Place
from workflow_runner.sessions import Session, StepResult
from workflow_runner.sources import Source
from workflow_runner.stand_ins import STAND_INS, Call, StepFailed

Step = Mapping[str, Any]


@dataclass
class Steps:
    """Where they stand, and what they have said so far."""

    session: Session
    file: str
    job: str
    source: Source  # what `$/` stands for
    contexts: Mapping[str, Any] = field(default_factory=dict)  # of an action: its inputs, its path
    env: Mapping[str, str] = field(default_factory=dict)  # of the step that uses the action
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of `run:`
    status: str = "success"
    said: dict[str, Any] = field(default_factory=dict)  # the context `steps`

    def play(self, steps: Sequence[Step]) -> None:
        for index, step in enumerate(steps):
            place = Place(self.file, self.job, index)
            result = self._play(step, place)
            self.session.results.append(result)
            if "id" in step:
                self.said[step["id"]] = {
                    "outputs": result.outputs,
                    "outcome": result.outcome,
                    "conclusion": result.conclusion,
                }
            if result.conclusion in ("failure", "cancelled") and self.status == "success":
                self.status = result.conclusion

    def _play(self, step: Step, place: Place) -> StepResult:
        where = f"{place.file}: {place.job or 'action'}, {_title(step)}"
        env = {**self.session.env, **self.env}
        scope = self._scope(env, where)
        if not self.session.expressions.condition(step.get("if"), scope):
            return StepResult(_title(step), "skipped", "skipped")
        env |= _texts(self.session.expressions.evaluate(step.get("env", {}), scope))
        scope = self._scope(env, where)
        step = self.session.expressions.evaluate({**step, "if": None, "env": None}, scope)
        self.session.record(place)
        try:
            result = self._run(step, env) if "run" in step else self._use(step, env, where)
        except Mistake as mistake:
            if str(mistake).startswith(where):
                raise
            raise Mistake(f"{where}: {mistake}") from mistake
        if result.outcome == "failure" and step.get("continue-on-error"):
            result.conclusion = "success"
        return result

    def _scope(self, env: Mapping[str, str], where: str) -> Any:
        more = {**self.contexts, "env": env, "steps": self.said}
        if not self.contexts:
            more["job"] = {**self.session.contexts["job"], "status": self.status}
        return self.session.scope(more, self.status, where)

    def _run(self, step: Step, env: Mapping[str, str]) -> StepResult:
        session = self.session
        session.scripts += 1
        folder = session.temp / str(session.scripts)
        files = commands.Files(folder)
        said = self.contexts.get("github", session.contexts["github"])
        action = {"GITHUB_ACTION_PATH": said["action_path"]} if "action_path" in said else {}
        status, log = shell.run(
            step["run"],
            step.get("shell", self.defaults.get("shell")),
            folder / "script.sh",
            session.workspace
            / step.get("working-directory", self.defaults.get("working-directory", "")),
            session.environment({**env, **action, **files.env}),
            step.get("timeout-minutes"),
        )
        log = session.keep_secret(log)
        session.env |= files.environment
        session.path += files.path
        outcome = "failure" if status else "success"
        return StepResult(
            _title(step),
            outcome,
            outcome,
            files.outputs,
            f"{log}\nexit status {status}\n",
            files.summary,
            commands.annotated(log),
        )

    def _use(self, step: Step, env: Mapping[str, str], where: str) -> StepResult:
        uses, inputs = step["uses"], _texts(step.get("with") or {})
        if uses.startswith(("./", "$/")):
            return self._composite(step, uses, inputs, env, where)
        name = uses.partition("@")[0]
        if name not in STAND_INS:
            raise Mistake(f"there is no stand-in for {name}")
        try:
            outputs, log = STAND_INS[name](Call(self.session, inputs, env)), ""
            outcome = "success"
        except StepFailed as failed:
            outputs, outcome, log = {}, "failure", str(failed)
        return StepResult(_title(step), outcome, outcome, outputs, log)

    def _composite(
        self, step: Step, uses: str, inputs: Mapping[str, str], env: Mapping[str, str], where: str
    ) -> StepResult:
        """`./` is read from the workspace: somebody must have checked it out."""
        folder = self.session.workspace / uses[2:]
        if uses.startswith("$/"):
            top = self.session.temp / f"source-{len(list(self.session.temp.iterdir()))}"
            self.source.unpack(uses[2:], top)
            folder = top / uses[2:]
        file = _action_file(folder)
        path = str(Path(uses[2:]) / file.name)
        action = self.session.expressions.parse("action", path, {path: file.read_text()})
        github = {**self.session.contexts["github"], "action_path": str(folder)}
        declared = self.session.expressions.evaluate(
            action.get("inputs") or {}, self.session.scope({"github": github}, "success", where)
        )
        given = _given(declared, inputs)
        inner = Steps(self.session, path, "", self.source, {"github": github, "inputs": given}, env)
        inner.play(action["runs"]["steps"])
        said = {name: output["value"] for name, output in (action.get("outputs") or {}).items()}
        outputs = self.session.expressions.evaluate(said, inner._scope(env, where))
        return StepResult(_title(step), inner.status, inner.status, _texts(outputs))


def _action_file(folder: Path) -> Path:
    for name in ("action.yml", "action.yaml"):
        if (folder / name).is_file():
            return folder / name
    raise Mistake(f"there is no action in {folder.name}: is the repository checked out?")


def _given(declared: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, str]:
    """The inputs of an action; GitHub only warns of those that it does not have."""
    if unknown := inputs.keys() - declared.keys():
        raise Mistake(f"the action has no input {', '.join(sorted(unknown))}")
    result = {}
    for name, about in declared.items():
        if name not in inputs and about.get("required") and "default" not in about:
            raise Mistake(f"the action needs the input {name}")
        result[name] = inputs.get(name, str(about.get("default", "")))
    return result


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """As they reach a process."""
    return {name: text(value) for name, value in values.items()}


def text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _title(step: Step) -> str:
    if "name" in step:
        return str(step["name"])
    what = step.get("run") or step.get("uses") or ""
    return re.sub(r"\s+", " ", str(what)).strip()[:60]
