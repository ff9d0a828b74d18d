# SPDX-License-Identifier: BSD-3-Clause
"""Runs each marked test in a process of its own, and takes its reports from there.

The driver reads its options when it is loaded, and a device error or a crash would harm the tests
that follow. A fresh interpreter would take seconds to import torch. So one process, the nursery, is
forked when the tests are collected, before any of them uses a device; it forks a child for each
test. Session and module fixtures are made again in each child.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

import pytest
from _pytest.runner import runtestprotocol

import torch_puone
from torch_puone import _C, sanitizer

from .observing import Observer
from .settings import SCHEDULE, Settings, settings_of

# Makes a child print the stacks of its threads.
_STACKS = signal.SIGUSR2


@dataclass(frozen=True)
class _Ended:
    """How a child ended: with what it sent, or without."""

    sent: bytes | None = None
    status: int = 0  # as of waitpid
    timed_out: bool = False


@dataclass(frozen=True)
class _Quit:
    """A child was left by pytest.exit(), as the debugger is."""

    reason: str


class Runner:
    """Replaces pytest's own protocol for the tests that are marked.

    The nursery is forked while this is made, so its processes do not have this plugin.
    """

    def __init__(self, session: pytest.Session) -> None:
        if torch_puone.is_initialized():
            raise pytest.UsageError(
                "puone was used while the tests were collected, so its tests cannot have processes "
                "of their own: make tensors in tests and fixtures, not when a module is imported"
            )
        _make_temporary_directory(session.config)
        settings = {
            i: found for i, item in enumerate(session.items) if (found := settings_of(item))
        }
        self._settings = {session.items[i]: (i, found) for i, found in settings.items()}
        for item, (_, found) in self._settings.items():
            if found.schedules and _seed(item) is None and not hasattr(item, "callspec"):
                raise pytest.UsageError(f"{item.nodeid}: a unittest.TestCase has no schedules")
        self._nursery = _Nursery(session)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run a marked test in a child and log its reports."""
        if item not in self._settings:
            return None
        index, settings = self._settings[item]
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        ended = self._nursery.run(index, settings)
        for report in self._reports(item, settings, ended):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_unconfigure(self) -> None:
        """End the nursery."""
        self._nursery.close()

    def _reports(
        self, item: pytest.Item, settings: Settings, ended: _Ended
    ) -> Sequence[pytest.TestReport]:
        if ended.sent is None:
            return _reports_of_death(item, settings, ended)
        sent = pickle.loads(ended.sent)
        if isinstance(sent, _Quit):
            pytest.exit(sent.reason)
        if isinstance(sent, str):
            return _reports_of_failure(item, sent)
        reports, recorded = sent
        for warning in recorded:
            item.ihook.pytest_warning_recorded.call_historic(kwargs=warning)
        made = item.config.hook.pytest_report_from_serializable
        return [made(config=item.config, data=report) for report in reports]


def _seed(item: pytest.Item) -> int | None:
    callspec = getattr(item, "callspec", None)
    seed: int | None = callspec.params.get(SCHEDULE) if callspec else None
    return seed


def _make_temporary_directory(config: pytest.Config) -> None:
    """One directory for the `tmp_path` of all tests: each child would make its own."""
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        factory.getbasetemp()


def _reports_of_death(
    item: pytest.Item, settings: Settings, ended: _Ended
) -> Sequence[pytest.TestReport]:
    sections = [
        (f"Captured std{stream}", text)
        for stream, text in zip(("out", "err"), _captured(item.config), strict=True)
        if text
    ]
    return _reports_of_failure(item, f"{item.nodeid}: {_cause(settings, ended)}", sections)


def _reports_of_failure(
    item: pytest.Item, text: str, sections: Sequence[tuple[str, str]] = ()
) -> Sequence[pytest.TestReport]:
    def report(outcome: Literal["passed", "failed"], when: Literal["call", "teardown"]) -> Any:
        keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
        text_of = text if outcome == "failed" else None
        return pytest.TestReport(
            item.nodeid, item.location, keywords, outcome, text_of, when, sections
        )

    return [report("failed", "call"), report("passed", "teardown")]


def _cause(settings: Settings, ended: _Ended) -> str:
    if ended.timed_out:
        return f"the test's process was killed after {settings.timeout} seconds"
    if os.WIFSIGNALED(ended.status):
        return f"the test's process was killed by {signal.Signals(os.WTERMSIG(ended.status)).name}"
    return f"the test's process ended with status {os.waitstatus_to_exitcode(ended.status)}"


def _captured(config: pytest.Config) -> tuple[str, str]:
    """What a child has left in the files that it shares with this process."""
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is None or not manager.is_globally_capturing():
        return "", ""
    out, err = manager.read_global_capture()
    return out, err


# ---- the nursery ----


class _Nursery:
    """The process that forks a child for each test; this side of it is the parent's."""

    def __init__(self, session: pytest.Session) -> None:
        self._channel, theirs = Pipe()
        self._process = _fork()
        if self._process == 0:
            self._channel.close()
            try:
                _serve(theirs, session)
            finally:
                os._exit(0)
        theirs.close()

    def run(self, index: int, settings: Settings) -> _Ended:
        """Run the test of this index in a child. Returns when the child has ended."""
        self._channel.send((index, settings))
        ended: _Ended = self._channel.recv()
        return ended

    def close(self) -> None:
        """Wait for the process to end."""
        self._channel.close()
        os.waitpid(self._process, 0)


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():  # of threads: torch's libraries have some, which do not run
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(channel: Connection, session: pytest.Session) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's and the child's concern
    while True:
        try:
            index, settings = channel.recv()
        except EOFError:
            return
        channel.send(_in_a_child(session, index, settings))


def _in_a_child(session: pytest.Session, index: int, settings: Settings) -> _Ended:
    reader, writer = Pipe(duplex=False)
    process = _fork()
    if process == 0:
        status = 1
        try:
            reader.close()
            writer.send_bytes(_run_test(session, index, settings))
            status = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    writer.close()
    debugged = session.config.option.usepdb
    with reader:
        return _wait_for(process, reader, None if debugged else settings.timeout or None)


def _wait_for(process: int, reader: Connection, timeout: float | None) -> _Ended:
    # Processes that the child has left behind may keep the pipe open: so wait for the child, too.
    handle = os.pidfd_open(process)
    try:
        ready = wait([reader, handle], timeout)
        if not ready:
            os.kill(process, _STACKS)
            time.sleep(0.5)
            os.kill(process, signal.SIGKILL)
        sent = None
        if reader.poll():
            try:
                sent = reader.recv_bytes()
            except EOFError:
                pass
        _, status = os.waitpid(process, 0)
        return _Ended(sent, status, timed_out=not ready)
    finally:
        os.close(handle)


# ---- the child ----


def _run_test(session: pytest.Session, index: int, settings: Settings) -> bytes:
    """What the parent makes reports of: reports and warnings, how it was left, or an error."""
    try:
        return _Child(session, index, settings).run()
    except pytest.exit.Exception as quit:
        return pickle.dumps(_Quit(quit.msg))
    except Exception:
        return pickle.dumps(traceback.format_exc())


class _Child:
    """The process of one test; a plugin of pytest there."""

    def __init__(self, session: pytest.Session, index: int, settings: Settings) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        faulthandler.register(_STACKS, file=2, all_threads=True)
        if faulthandler.is_enabled():
            faulthandler.enable(file=2)  # which is captured, so that the report has it
        self._item = session.items[index]
        self._reports: list[pytest.TestReport] = []
        self._warnings: list[dict[str, Any]] = []
        plugins = session.config.pluginmanager
        for plugin in plugins.get_plugins():
            if type(plugin).__name__ == "WorkerInteractor":  # xdist's: it would send from here
                plugins.unregister(plugin)
        plugins.register(self)
        plugins.register(Observer(settings))
        _set(settings.environment(_seed(self._item)))

    def run(self) -> bytes:
        """The reports of the test and the warnings."""
        self._item.config.hook.pytest_runtest_protocol(item=self._item, nextitem=None)
        written = self._item.config.hook.pytest_report_to_serializable
        reports = [written(config=self._item.config, report=report) for report in self._reports]
        return pickle.dumps((reports, self._warnings))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """As pytest's own, but nothing is logged here."""
        self._reports = runtestprotocol(item, log=False, nextitem=None)
        return True

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        """Keep it for the parent, as text if it cannot be sent."""
        try:
            pickle.dumps(warning_message)
        except Exception:
            warning_message = warnings.WarningMessage(
                UserWarning(str(warning_message.message)),
                UserWarning,
                warning_message.filename,
                warning_message.lineno,
            )
        self._warnings.append(
            {
                "warning_message": warning_message,
                "when": when,
                "nodeid": nodeid,
                "location": location,
            }
        )


def _set(environment: dict[str, str | None]) -> None:
    """Let the driver have these options, also if it was loaded before."""
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _C.choose_driver_again()
    sanitizer._enable_from_environment()
