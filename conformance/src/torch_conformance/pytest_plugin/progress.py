# SPDX-License-Identifier: BSD-3-Clause
"""How far a run is: a live line on a terminal, a line now and then elsewhere.

The lines replace pytest's letters: checks of all files run at the same time, so letters would be
interleaved. What goes wrong is shown at once. With -q and -v pytest's own output is left as it is.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_conformance.pytest_plugin.emit import result_of
from torch_conformance.selecting.durations import DurationsError, load
from torch_conformance.spec.result import CheckResult

if TYPE_CHECKING:
    from torch_conformance.pytest_plugin.suite import Session, Suite

# Seconds between two looks of the live line, and between two lines elsewhere.
LIVE_INTERVAL, LOG_INTERVAL = 0.1, 30.0
# What goes wrong after so many is only counted until the end.
MAX_SHOWN = 20


class Estimate:
    """The time that is left, by what every check took in the run before."""

    def __init__(self, ids: Collection[str], durations: Mapping[str, float]) -> None:
        known = [durations[id] for id in ids if id in durations]
        usual = sum(known) / len(known) if known else 1.0
        # The runner's own time is the same for each.
        self._weights = {id: durations.get(id, usual) + 1e-3 for id in ids}
        self._left = self._total = sum(self._weights.values())

    def done(self, id: str) -> None:
        """A check has its result."""
        self._left -= self._weights.pop(id, 0.0)

    def seconds_left(self, elapsed: float) -> float | None:
        """Seconds until the end, if all goes on as it did; None when nothing is known yet."""
        behind = self._total - self._left
        return elapsed * max(self._left, 0.0) / behind if behind > 0 else None


def durations(report_file: Path) -> Mapping[str, float]:
    """Seconds of every check in the report of the run before, if there is one."""
    try:
        return load(report_file).seconds
    except DurationsError:
        return {}


def line(session: Session, id: str, seconds_left: float | None) -> str:
    """How far the run of one backend is; `id` had its result last."""
    assert session.report is not None
    done, total = len(session.report.results), len(session.selected)
    left = "" if seconds_left is None else f"  ETA {clock(seconds_left)}"
    bad = f"{len(session.report.unexpected)} bad"
    share = f"{done}/{total} {100 * done // max(total, 1):>3}%"
    return f"{session.descriptor.name}  {share}  {bad}{left}  {id.partition(':')[0]}"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """The plugin that writes the line, on the terminal of pytest's reporter."""

    def __init__(
        self, reporter: Any, suite: Suite, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._reporter = reporter
        self._suite = suite
        self._now = now
        self.is_live = bool(reporter.isatty)
        self._interval = LIVE_INTERVAL if self.is_live else LOG_INTERVAL
        self._durations: dict[str, Mapping[str, float]] = {}
        self._estimates: dict[str, tuple[Estimate, float]] = {}
        self._written = now()
        self._shown = 0

    def pytest_collection_finish(self) -> None:
        """Before the new report replaces the old one."""
        for name, session in self._suite.sessions.items():
            self._durations[name] = durations(session.report_file)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        result = result_of(report)
        session = self._suite.sessions[report.backend] if result else None
        if result is None or session is None or session.report is None:
            return
        estimate, begin = self._estimate(session)
        estimate.done(result.id)
        if result.unexpected:
            self._write_bad(result)
        now = self._now()
        if now - self._written >= self._interval:
            self._written = now
            self._write(line(session, result.id, estimate.seconds_left(now - begin)))

    def _estimate(self, session: Session) -> tuple[Estimate, float]:
        name = session.descriptor.name
        if name not in self._estimates:
            known = self._durations.get(name, {})
            self._estimates[name] = Estimate(session.selected, known), self._now()
        return self._estimates[name]

    def _write(self, text: str) -> None:
        if self.is_live:
            width = shutil.get_terminal_size().columns
            self._reporter.rewrite(text[: width - 1], erase=True)
        else:
            self._reporter.ensure_newline()
            self._reporter.write_line(text)

    def _write_bad(self, result: CheckResult) -> None:
        self._shown += 1
        if self._shown > MAX_SHOWN:
            return
        message, _, _ = result.text.partition("\n")
        self._clear()
        self._reporter.ensure_newline()
        self._reporter.write_line(f"{result.outcome} {result.id}: {message}", red=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """What comes now is written where the live line was."""
        self._clear()

    def _clear(self) -> None:
        if self.is_live:
            self._reporter.rewrite("", erase=True)
            self._reporter.write("\r")


def register(session: pytest.Session, suite: Suite) -> None:
    """Show the progress of this run, unless somebody wants less or more."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    reporter.showfspath = False  # Checks of all files take turns.
    if reporter.verbosity != 0:
        return
    if config.getini("console_output_style") != "classic":
        plugin = Progress(reporter, suite)
        suite.shows_live_line = plugin.is_live
        suite.shows_progress = True
        config.pluginmanager.register(plugin, "conformance-progress")
