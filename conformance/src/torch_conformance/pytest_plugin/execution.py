# SPDX-License-Identifier: BSD-3-Clause
"""The checks of one backend are run: probed for, set apart, once, again, or in rounds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit, Options
from torch_conformance.judging.reruns import Reruns
from torch_conformance.judging.rounds import Rounds, adversarial, without_rounds
from torch_conformance.pytest_plugin.inprocess import run_as_tests
from torch_conformance.pytest_plugin.nodes import CheckItem
from torch_conformance.running import probes
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import Capabilities
from torch_conformance.spec.outcome import CannotLoad

if TYPE_CHECKING:
    from torch_conformance.pytest_plugin.suite import Session, Suite
    from torch_conformance.running.inprocess import InProcess

Runs = Callable[[Iterable[Check], Emit], None]


def make_runner(session: Session, options: Options) -> Pool | InProcess:
    """What runs the checks of a backend; raises CannotLoad if the backend does not come up."""
    if options.isolate == "none":
        from torch_conformance.running.inprocess import InProcess  # Imports torch.

        return InProcess(session.descriptor, options.seed)
    return Pool(session.descriptor, options)


def _in_rounds(session: Session, suite: Suite, runner: Pool | InProcess, options: Options) -> Runs:
    """What runs checks in several rounds, each with workers of its own."""
    assert options.verify is not None and session.judge is not None
    rounds = options.verify.rounds
    session.verified = options.verify
    capable = Capabilities.of(session.capabilities)
    runner.close()  # There are backends that one process may use at a time.

    def make_pool(seed: int) -> Pool:
        pool = Pool(adversarial(session.descriptor, seed), options)
        pool.set_capabilities(capable)
        return pool

    def begin(number: int, seed: int) -> None:
        of = f"round {number} of {rounds}"
        suite.tell(f"{session.descriptor.name}: {of}, --verify-seed {seed}")

    def repro(id: str | None, seed: int) -> str:
        command = without_rounds(suite.arguments) if id is None else suite.repro(session)(id)
        return f"{command} --verify 1 --verify-seed {seed}"

    return Rounds(options.verify, make_pool, session.judge, repro, begin, session.note).run


def with_reruns(session: Session, runner: Pool | InProcess, options: Options) -> Runs:
    """What runs checks, those with unexpected results again; without processes all run once."""
    judge = session.judge
    assert judge is not None
    if isinstance(runner, Pool) and options.reruns:
        return Reruns(runner, judge, options, session.note).run

    def once(checks: Iterable[Check], emit: Emit) -> None:
        by_id = {check.id: check for check in checks}
        runner.run(by_id.values(), lambda raw: emit(judge.judge(by_id[raw.id], raw)))

    return once


def probe(session: Session, runner: Pool | InProcess) -> Capabilities:
    """Find out the capabilities that the descriptor leaves open, and note all in the report."""
    found: list[Result] = []
    runner.run(probes.to_probe(session.descriptor, session.needed), found.append)
    session.capabilities = table = probes.capabilities(session.descriptor, found)
    if session.report is not None:
        session.report.note(capabilities=table)
    known = Capabilities.of(table)
    runner.set_capabilities(known)
    return known


def _identify(session: Session, runner: Pool | InProcess) -> None:
    if session.report is not None:
        session.report.note(**runner.identity)


def run(session: Session, suite: Suite, items: Mapping[str, CheckItem], emit: Emit) -> None:
    """Run the checks of a backend, by id; every result goes to `emit`."""
    options = suite.options(session.descriptor)
    assert session.judge is not None
    try:
        runner = make_runner(session, options)
        try:
            checks = (item.check for item in items.values())
            plan = session.judge.plan(checks, probe(session, runner))
            for raw in plan.decided:
                emit(session.judge.judge(items[raw.id].check, raw))
            runs = _runs(session, suite, runner, options, items)
            runs(plan.run, emit)
        finally:
            _identify(session, runner)
            runner.close()
            if isinstance(runner, Pool):
                # It has unfrozen the tests, too, among which pytest looks for garbage at its end.
                gc.freeze()
    except CannotLoad as error:
        session.cannot_load = str(error)
        assert session.report is not None
        session.load_problem = error.problem
        session.report.note(cannot_load=str(error))
        return
    session.finished = True


def _runs(
    session: Session,
    suite: Suite,
    runner: Pool | InProcess,
    options: Options,
    items: Mapping[str, CheckItem],
) -> Runs:
    if options.verify:
        return _in_rounds(session, suite, runner, options)
    if not isinstance(runner, Pool):
        return partial(run_as_tests, runner, session, items)
    return with_reruns(session, runner, options)
