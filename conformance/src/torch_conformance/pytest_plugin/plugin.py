# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plugin: options, collection, the run, the exit code.

Exit codes: 0 every check is as it should be, 1 failures; as pytest's own: 2 interrupted, 3 internal
error, 4 usage, 5 nothing was selected; 64 the run is incomplete, 65 nothing was executed, 66 a
backend cannot be loaded.
"""

from __future__ import annotations

import difflib
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from torch_conformance import PACKAGE
from torch_conformance.authoring import discovery
from torch_conformance.authoring.backend import prepare_parent
from torch_conformance.bringup import todo
from torch_conformance.expectations import ExpectationsError
from torch_conformance.judging.judge import Judged, needs
from torch_conformance.pytest_plugin import closing, nodes, progress, selected
from torch_conformance.pytest_plugin.emit import (
    Recorder,
    category,
    emit_result,
    marked,
    phase_report,
    result_of,
)
from torch_conformance.pytest_plugin.execution import run
from torch_conformance.pytest_plugin.garbage import not_collected
from torch_conformance.pytest_plugin.inprocess import stop_if_asked
from torch_conformance.pytest_plugin.nodes import CheckFile, CheckItem
from torch_conformance.pytest_plugin.options import add_options
from torch_conformance.pytest_plugin.suite import KEY, Session, Suite, open_report, start
from torch_conformance.pytest_plugin.xdist import register_xdist
from torch_conformance.selecting import changed, selection
from torch_conformance.spec.catalogue import CatalogueError
from torch_conformance.spec.descriptor import DescriptorError
from torch_conformance.spec.ids import matches
from torch_conformance.spec.outcome import CannotLoad

# The terminal's category of the phases of a check that it does not list. It is false, as pytest's
# own "" is: then it does not count as an outcome.
UNLISTED = ()

# Checks that are suggested in the place of one that does not exist.
MAX_NEAR = 3


pytest.register_assert_rewrite("torch_conformance.checks", discovery.EXTRA)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    try:
        suite = Suite(config)
    except (DescriptorError, ExpectationsError, CatalogueError) as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[KEY] = suite
    if config.getoption("--next"):
        _hide_details(config)
    for name in nodes.MARKS:
        config.addinivalue_line("markers", f"{name}: tier or level of a requirement of a check")
    config.pluginmanager.register(Recorder(suite), "conformance-recorder")
    register_xdist(config, suite)
    if suite.checks_dir:
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args.clear()  # Without arguments pytest would collect the current directory.
        config.args.append(str(suite.checks_dir))


def _hide_details(config: pytest.Config) -> None:
    """Show no details of failures, unless the command line asks for them."""
    if config.option.tbstyle == "auto":
        config.option.tbstyle = "no"
    if config.option.reportchars == "fE":
        config.option.reportchars = "N"


def pytest_report_header(config: pytest.Config) -> str | None:
    suite, name = config.stash[KEY], config.getoption("--shard-by")
    if name is None:
        return None
    if suite.durations is None:
        return f"--shard-by {name}: no such file yet; shards are alike in number"
    return f"--shard-by {name}: {len(suite.durations.seconds)} durations"


def pytest_sessionstart(session: pytest.Session) -> None:
    progress.register(session, session.config.stash[KEY])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with not_collected():
        return (yield)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CheckFile | None:
    suite = parent.config.stash[KEY]
    file = file_path.resolve()
    if file not in suite.every_file:
        return None
    if file.is_relative_to(PACKAGE) and not _wants(suite, discovery.prefix_of(file)):
        return None
    suite.problem = suite.problem or _problem(suite, parent.config)
    if suite.problem:
        return None
    node: CheckFile = CheckFile.from_parent(parent, path=file)
    node.suite = suite
    return node


def _problem(suite: Suite, config: pytest.Config) -> str | None:
    """Why the run cannot work, if it cannot: asked before seconds are spent on collecting checks.

    pytest takes an exception here for a broken file, so it is raised once all are collected.
    """
    if not suite.sessions and not suite.list_only:
        return (
            "name the backend to test: --backend=NAME (such as --backend=cpu), "
            "--backend-file=FILE, or an ini key 'conformance_backend'"
        )
    if config.getoption("usepdb", False) and suite.isolate != "none":
        return "--pdb needs --isolate=none: otherwise checks run in processes without a terminal"
    try:
        prepare_parent()
    except CannotLoad as error:
        return str(error)
    return None


def _wants(suite: Suite, prefix: str) -> bool:
    """Whether a check with this prefix can be run: importing all chapters takes seconds."""
    surface = prefix.partition("/")[0]
    in_tier = any(suite.tier_has(r.tier) for r in suite.catalogue.values() if r.surface == surface)
    named = not suite.patterns or any(_may_name(p, prefix) for p in suite.patterns)
    return in_tier and named


def _may_name(pattern: str, prefix: str) -> bool:
    stem = pattern.rstrip("*")
    return stem.startswith(prefix) or (pattern.endswith("*") and prefix.startswith(stem))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = config.stash[KEY]
    if suite.problem:
        raise pytest.UsageError(suite.problem)
    ours = [item for item in items if isinstance(item, CheckItem)]
    if not ours:
        _require_matches(suite, [])
        return
    _verify_expectations(suite, ours)
    kept = {id(item) for item in _select(suite, ours)}
    dropped: list[pytest.Item] = [item for item in ours if id(item) not in kept]
    _deselect(config, items, dropped)


def _verify_expectations(suite: Suite, items: list[CheckItem]) -> None:
    surfaces = {item.check.surface for item in items}
    # Of a chapter of several files perhaps only some were looked at.
    surfaces -= {discovery.chapter_of(file) for file in suite.every_file - suite.collected_files}
    for name, session in suite.sessions.items():
        session.known = {item.check.id for item in items if item.backend == name}
        session.surfaces = surfaces
        try:
            if not suite.update_expectations:
                session.expectations.verify(session.known, surfaces)
        except ExpectationsError as error:
            raise pytest.UsageError(str(error)) from None


def _select(suite: Suite, items: list[CheckItem]) -> list[CheckItem]:
    _require_matches(suite, [item.check.id for item in items])
    if suite.since:
        try:
            suite.changed = changed.since((item.check for item in items), suite.since)
        except changed.ChangedError as error:
            raise pytest.UsageError(f"--since: {error}") from None
    return [item for item in items if suite.asks_for(item.check)]


def _require_matches(suite: Suite, ids: list[str]) -> None:
    for pattern in suite.patterns:
        if not any(matches(pattern, id) for id in ids):
            surfaces = [f"{r.surface}/*" for r in suite.catalogue.values()]
            near = [id for id in ids if id.startswith(pattern)][:MAX_NEAR] or (
                difflib.get_close_matches(pattern, ids or dict.fromkeys(surfaces), MAX_NEAR)
            )
            meant = f": did you mean {' or '.join(near)}?" if near else ""
            raise pytest.UsageError(
                f"--check {pattern!r} matches no check{meant} (--list shows all checks)"
            )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what every option has selected, then keep the part of it that is this machine's."""
    suite = session.config.stash[KEY]
    ours = [item for item in session.items if isinstance(item, CheckItem)]
    dropped: list[pytest.Item] = []
    for name in suite.backend_names if ours else []:
        mine = [item for item in ours if item.backend == name]
        ids = {item.check.id for item in mine}
        kept = None
        if suite.shard is not None:
            kept = set(selection.part(ids, *suite.shard, suite.durations))
            dropped += [item for item in mine if item.check.id not in kept]
        if name in suite.sessions:
            chosen = selected.make(suite, ids, kept)
            backend = suite.sessions[name]
            backend.selection = chosen
            backend.needed = {need for i in mine for need in needs(i.check, suite.catalogue)}
            suite.place_report(backend, chosen.differs_by)
    _deselect(session.config, session.items, dropped)


def _deselect(config: pytest.Config, items: list[pytest.Item], dropped: list[pytest.Item]) -> None:
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = {id(item) for item in dropped}
        items[:] = [item for item in items if id(item) not in gone]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    suite = session.config.stash[KEY]
    ours = [item for item in session.items if isinstance(item, CheckItem)]
    if not ours or hasattr(session.config, "workerinput"):
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        return None
    if suite.list_only:
        _print_list(session, suite, ours)
        return True
    if session.config.option.collectonly:
        return True
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for backend in suite.sessions.values():
            _run_backend(session, suite, backend, ours)
    finally:
        signal.signal(signal.SIGTERM, previous)
    others = [item for item in session.items if not isinstance(item, CheckItem)]
    if not others:
        return True
    session.items = others
    return None


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: workers are ended and the report is written."""
    raise KeyboardInterrupt


def _run_backend(
    session: pytest.Session, suite: Suite, backend: Session, items: list[CheckItem]
) -> None:
    name = backend.descriptor.name
    mine = {item.check.id: item for item in items if item.backend == name}
    backend.selected = set(mine)
    start(backend, suite)
    open_report(backend, suite)

    def emit(judged: Judged) -> None:
        emit_result(session.config, mine[judged.result.id], judged)
        stop_if_asked(session)

    run(backend, suite, mine, emit)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> pytest.TestReport | None:
    """The reports of a check that runs as a test of pytest's."""
    if not isinstance(item, CheckItem):
        return None
    if call.when == "call" and item.ended is not None:
        return phase_report(item, "call")
    return marked(item, pytest.TestReport.from_item_and_call(item, call))


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: Any, config: pytest.Config) -> tuple[Any, str, str] | None:
    suite, result = config.stash[KEY], result_of(report)
    if result is None:
        # Set-up and teardown, which say nothing here. pytest goes through all it knows under "" for
        # every failure: a thousand of them would take it longer than the run.
        is_silent = hasattr(report, "conformance") and report.passed
        return (UNLISTED, "", "") if is_silent else None
    name, outcome = category(result), result.outcome
    if suite.shows_progress:
        return name, "", ""
    # pytest lists skipped tests together, under the word of the first one.
    word = name if name == "skipped" and suite.is_over else outcome.value
    return name, outcome.traits.letter, word.upper()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    suite = session.config.stash[KEY]
    suite.is_over, suite.shows_progress = True, False
    started = [s for s in suite.sessions.values() if s.report is not None]
    if hasattr(session.config, "workerinput") or not started:
        return
    for backend in started:
        assert backend.report is not None
        backend.report.write(complete=backend.complete)
        backend.report.write_junit()
        if suite.update_expectations:
            backend.update_expectations()
    code = max((closing.exit_code(backend) for backend in started), default=0)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        session.exitstatus = max(code, int(session.exitstatus))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    show_reasons = bool(config.getoption("--show-reasons")) or terminalreporter.verbosity > 0
    for session in config.stash[KEY].sessions.values():
        if session.report is not None:
            for line in closing.lines(session, config.stash[KEY].fallback, show_reasons):
                terminalreporter.write_line(line)
            if config.getoption("--next") and not session.cannot_load:
                report = session.report.report(session.complete)
                for line in todo.lines(report, config.stash[KEY].catalogue):
                    terminalreporter.write_line(line)


def _print_list(session: pytest.Session, suite: Suite, items: list[CheckItem]) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    reporter.ensure_newline()
    for check in {item.check.id: item.check for item in items}.values():
        requirements = ", ".join(
            f"{id} {suite.catalogue[id].level} {suite.catalogue[id].tier}"
            for id in check.requirements
        )
        reporter.write_line(f"{check.id}  [{requirements}]  {check.title}")
