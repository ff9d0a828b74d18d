# SPDX-License-Identifier: BSD-3-Clause
"""The suite under pytest-xdist: every xdist worker has one isolated worker for each backend.

The records travel with the test reports to the controller, which alone writes the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from torch_conformance.authoring.backend import prepare_parent
from torch_conformance.judging.judge import Judged
from torch_conformance.pytest_plugin.emit import emit_result
from torch_conformance.pytest_plugin.execution import Runs, make_runner, probe, with_reruns
from torch_conformance.pytest_plugin.nodes import CheckItem
from torch_conformance.pytest_plugin.suite import Session, Suite, open_report, start
from torch_conformance.results.report import Capability
from torch_conformance.running.result import Result
from torch_conformance.selecting.selection import Selection
from torch_conformance.spec.capabilities import Capabilities
from torch_conformance.spec.outcome import CannotLoad, LoadProblem, Outcome
from torch_conformance.spec.reason import CannotLoadBackend

if TYPE_CHECKING:
    from torch_conformance.running.inprocess import InProcess
    from torch_conformance.running.pool import Pool

OUTPUT = "conformance"


def register_xdist(config: pytest.Config, suite: Suite) -> None:
    """Register the side of xdist that this process is, if any."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(XdistWorker(config, suite), "conformance-xdist-worker")
    elif config.getoption("dist", "no") != "no":
        # Not asked by xdist's own plugin: it may be registered after this one.
        config.pluginmanager.register(XdistController(suite), "conformance-xdist-controller")


class XdistWorker:
    """Runs single items when xdist sends them."""

    def __init__(self, config: pytest.Config, suite: Suite) -> None:
        self._config = config
        self._suite = suite
        self._runners: dict[str, tuple[Pool | InProcess, Runs, Capabilities]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if not isinstance(item, CheckItem):
            return None
        session = self._suite.sessions[item.backend]
        for judged in self._run(session, item):
            emit_result(self._config, item, judged)
        return True

    def _run(self, session: Session, item: CheckItem) -> list[Judged]:
        try:
            _, runs, capabilities = self._runner(session)
        except CannotLoad as error:
            session.cannot_load, session.load_problem = str(error), error.problem
            reason = CannotLoadBackend(text=str(error))
            assert session.judge is not None
            raw = Result(item.check.id, Outcome.NOT_RUN, reason=reason)
            return [session.judge.judge(item.check, raw)]
        assert session.judge is not None
        plan = session.judge.plan([item.check], capabilities)
        results = [session.judge.judge(item.check, raw) for raw in plan.decided]
        runs(plan.run, results.append)
        return results

    def _runner(self, session: Session) -> tuple[Pool | InProcess, Runs, Capabilities]:
        name = session.descriptor.name
        if session.cannot_load:
            raise CannotLoad(session.cannot_load, session.load_problem)
        if name not in self._runners:
            start(session, self._suite)
            options = self._suite.options(session.descriptor)
            runner = make_runner(session, options)
            runs = with_reruns(session, runner, options)
            try:
                self._runners[name] = runner, runs, probe(session, runner)
            except CannotLoad:
                runner.close()
                raise
        return self._runners[name]

    def pytest_sessionfinish(self) -> None:
        for runner, _, _ in self._runners.values():
            runner.close()
        self._config.workeroutput[OUTPUT] = {  # type: ignore[attr-defined]  # added by xdist
            name: {
                "capabilities": msgspec.to_builtins(session.capabilities),
                "cannot_load": session.cannot_load,
                "load_problem": session.load_problem and session.load_problem.value,
                "selection": msgspec.to_builtins(session.selection),
                "identity": self._runners[name][0].identity if name in self._runners else {},
            }
            for name, session in self._suite.sessions.items()
        }


class XdistController:
    """Keeps the reports of a distributed run."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        prepare_parent()
        for name, session in self._suite.sessions.items():
            parts = [id.rsplit("::", 2) for id in ids if id.count("::") >= 2]
            session.selected = {check for _, backend, check in parts if backend == name}
            if session.selected and session.report is None:
                open_report(session, self._suite)
                session.finished = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {}).get(OUTPUT, {})
        for name, facts in output.items():
            session = self._suite.sessions[name]
            session.cannot_load = session.cannot_load or facts["cannot_load"]
            if facts["load_problem"]:
                session.load_problem = LoadProblem(facts["load_problem"])
            if session.report is None:
                continue
            chosen = msgspec.convert(facts["selection"], Selection)
            session.report.note(**facts["identity"], selection=chosen)
            self._suite.place_report(session, chosen.differs_by)
            if facts["capabilities"]:
                table = msgspec.convert(facts["capabilities"], dict[str, Capability])
                session.report.note(capabilities=table)
            if facts["cannot_load"]:
                session.report.note(cannot_load=facts["cannot_load"])
