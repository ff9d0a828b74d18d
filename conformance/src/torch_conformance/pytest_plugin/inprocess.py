# SPDX-License-Identifier: BSD-3-Clause
"""``--isolate=none``: checks run as ordinary tests in this process.

So --pdb, pytest's capturing, and plugins that look at running tests work on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from torch_conformance.authoring.check import Check
from torch_conformance.judging.judge import Emit
from torch_conformance.pytest_plugin.emit import end
from torch_conformance.pytest_plugin.nodes import CheckItem
from torch_conformance.pytest_plugin.suite import Session

if TYPE_CHECKING:
    from torch_conformance.running.inprocess import InProcess

# Exceptions that end the run, not only the check.
ENDING = (KeyboardInterrupt, pytest.exit.Exception)


def run_as_tests(
    runner: InProcess,
    session: Session,
    items: Mapping[str, CheckItem],
    checks: Iterable[Check],
    emit: Emit,
) -> None:
    """Run checks by pytest's protocol for tests, which reports their results itself."""
    for check in checks:
        item = items[check.id]
        item.in_process = partial(_run, runner, session, item)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        runtestprotocol(item)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        stop_if_asked(item.session)


def stop_if_asked(session: pytest.Session) -> None:
    """End the run where a result was the last that pytest wants, after --maxfail for example."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _run(runner: InProcess, session: Session, item: CheckItem) -> None:
    raw, error = runner.run_one(item.check)
    if isinstance(error, ENDING):
        raise error
    assert session.judge is not None
    judged = session.judge.judge(item.check, raw)
    end(item, judged)
    if error is not None and judged.result.unexpected:
        raise error  # For pytest_exception_interact: it is where --pdb begins.
