# SPDX-License-Identifier: BSD-3-Clause
"""`pytest hal_conformance --driver=PATH`: every test in a forked child with a deadline.

By default each has a child of its own. With --share-process a child goes on with the next test as
long as all is well: for devices that take long to be initialised by a process.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from hal_conformance import closing, contract
from hal_conformance.abi import Status
from hal_conformance.closing import Failure
from hal_conformance.covers import FILE, Covered, catalogue, covered_by
from hal_conformance.driver import Driver
from hal_conformance.known_answers import known_answers
from hal_conformance.process import Answerer, Ending, run_in_child
from hal_conformance.queueing import runs_at_once

# By driver: whether it runs work on the calling thread.
RUNS_AT_ONCE = pytest.StashKey[dict[Path, bool]]()
# The driver whose tests share a child, and the child.
SHARED = pytest.StashKey[tuple[Path, Answerer]]()
# In that child the driver is never shut down, which may be done once only.
IS_SHARED = pytest.StashKey[bool]()
# What a process does first and last with a driver is tested in processes of their own.
LIFE = frozenset({"HAL-010", "HAL-011", "HAL-012", "HAL-013"})


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hal", "driver conformance (pytest hal_conformance)")
    group.addoption(
        "--driver",
        action="append",
        default=[],
        metavar="PATH",
        help="driver library to test; repeatable",
    )
    group.addoption(
        "--driver-symbol",
        default=Driver.symbol,
        metavar="NAME",
        help="what the library exports, for a contract whose names were changed "
        "(default: %(default)s)",
    )
    group.addoption(
        "--driver-deadline",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="time one test may take, and a multiple of it for the few that take long (default: 5)",
    )
    group.addoption(
        "--share-process",
        action="store_true",
        help="run tests that begin with an initialised driver in one process, one after another, "
        "for a device that takes long to be initialised; one that does not pass runs again in a "
        "process of its own, and that verdict counts",
    )
    group.addoption(
        "--should",
        choices=("warn", "fail"),
        default="warn",
        help="what a failed test of a should-level requirement is: an expected failure, which "
        "leaves the run green (default), or a failure",
    )
    group.addoption(
        "--requirement",
        action="append",
        default=[],
        metavar="ID",
        help="run only the tests of this requirement, such as HAL-014; repeatable",
    )
    group.addoption(
        "--kernel",
        action="append",
        default=[],
        metavar="NAME",
        help="run only the known answers of this kernel; repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "must: checks a requirement of level must")
    config.addinivalue_line("markers", "should: checks only requirements of level should")
    Driver.symbol = str(config.getoption("driver_symbol"))
    for path in _drivers(config):
        if not path.is_file():
            raise pytest.UsageError(f"--driver: no such file: {path}")
    for name in _option(config, "requirement"):
        if name not in catalogue():
            raise pytest.UsageError(f"--requirement: {name} is not in {FILE}")
    for name in _option(config, "kernel"):
        if name not in contract.kernels():
            raise pytest.UsageError(f"--kernel: {name} is not in {contract.PATH}")


def pytest_sessionstart(session: pytest.Session) -> None:
    if not _drivers(session.config):
        raise pytest.UsageError("the HAL suite tests a driver library: give --driver=PATH")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver_path" in metafunc.fixturenames:
        paths = _drivers(metafunc.config)
        metafunc.parametrize("driver_path", paths, ids=[path.stem for path in paths])
    if "answered_kernel" in metafunc.fixturenames:
        metafunc.parametrize("answered_kernel", contract.kernels())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        requirements = _covered(item).requirements
        # JUnit's XML then says which requirements a test is of.
        item.user_properties += [("requirement", name) for name in requirements]
        path = _driver_of(item)
        if path is not None:
            item.user_properties.append(("driver", path.stem))
        kernel = _kernel_of(item)
        if kernel is not None:
            item.user_properties.append(("kernel", kernel))
        levels = {catalogue()[name].level for name in requirements}
        if levels:
            item.add_marker("must" if "must" in levels else "should")
    wanted = set(_option(config, "requirement"))
    kernels = set(_option(config, "kernel"))
    if wanted or kernels:
        chosen = [
            item
            for item in items
            if (not wanted or wanted & set(_covered(item).requirements))
            and (not kernels or _kernel_of(item) in kernels)
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items[:] = _by_family(items)


def _by_family(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests, with those of known answers sorted by the family of their kernel.

    The cases of one family are in memory at a time: with those of all, a fork takes long.
    """
    answers = [item for item in items if _kernel_of(item)]
    of_family = iter(sorted(answers, key=lambda item: _family(_kernel_of(item) or "")))
    return [next(of_family) if _kernel_of(item) else item for item in items]


def _family(kernel: str) -> str:
    return contract.kernels()[kernel].family


def _driver_of(item: pytest.Item) -> Path | None:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    path = item.callspec.params.get("driver_path")
    return path if isinstance(path, Path) else None


def _kernel_of(item: pytest.Item) -> str | None:
    """The kernel whose known answers the test runs."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    name = item.callspec.params.get("answered_kernel")
    return name if isinstance(name, str) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What failed and why; how many kernels give the known answers, by driver."""
    failed = [
        report for name in ("failed", "xfailed") for report in terminalreporter.stats.get(name, [])
    ]
    for line in closing.lines(map(_failure, failed)):
        terminalreporter.write_line(line)
    _summarise_kernels(terminalreporter)


def _failure(report: Any) -> Failure:
    properties = getattr(report, "user_properties", ())
    crash = getattr(report.longrepr, "reprcrash", None)
    return Failure(
        dict(properties).get("driver", ""),
        tuple(value for name, value in properties if name == "requirement"),
        crash.message if crash is not None else str(report.longrepr),
    )


def _summarise_kernels(terminalreporter: Any) -> None:
    outcomes: dict[str, dict[str, set[str]]] = {}
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            kernel = dict(getattr(report, "user_properties", ())).get("kernel")
            if kernel is not None:
                driver = dict(report.user_properties)["driver"]
                outcomes.setdefault(driver, {}).setdefault(outcome, set()).add(kernel)
    for driver, kernels in sorted(outcomes.items()):
        wrong = kernels.get("failed", set())
        right = len(kernels.get("passed", set()) - wrong)
        lacking = len(kernels.get("skipped", set()))
        terminalreporter.write_line(
            f"{driver}: {right} of {len(contract.kernels())} kernels answer correctly, "
            f"{len(wrong)} do not, {lacking} are not offered"
        )


def _covered(item: pytest.Item) -> Covered:
    return covered_by(item.function) if isinstance(item, pytest.Function) else Covered()


def _option(config: pytest.Config, name: str) -> list[str]:
    # This file may be loaded after the command line was parsed; then there is no such option.
    return list(config.getoption(name, default=None) or ())


def _drivers(config: pytest.Config) -> list[Path]:
    return [Path(path).resolve() for path in _option(config, "driver")]


# ---- fixtures: all of them run in the test's own child ----


@pytest.fixture
def library(driver_path: Path, request: pytest.FixtureRequest) -> Driver:
    """The driver, loaded and not initialised."""
    driver = Driver(driver_path, request.config.stash[RUNS_AT_ONCE][driver_path])
    missing = driver.missing_capability(_covered(request.node).needs)
    if missing:
        pytest.skip(f"not declared: {missing}")
    return driver


@pytest.fixture
def running(library: Driver, request: pytest.FixtureRequest) -> Driver:
    """The driver, initialised. The test is to shut it down."""
    status = library.api.init() if library.has_entry("init") else Status.UNSUPPORTED
    if status == Status.UNSUPPORTED and not library.capabilities():
        pytest.skip("not there: init, and the driver declares no capability")
    library.ok(status)
    missing = library.missing_condition(_covered(request.node).needs)
    if missing:
        pytest.skip(f"not there: {missing}")
    return library


@pytest.fixture
def hal(running: Driver, request: pytest.FixtureRequest) -> Iterator[Driver]:
    """The driver, initialised; shut down at the end, except in a shared process."""
    yield running
    if not request.config.stash.get(IS_SHARED, False):
        running.ok(running.api.shutdown())


# ---- one forked child per test ----


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    if Path(__file__).parent not in item.path.parents:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    path, known = _driver_of(item), item.config.stash.setdefault(RUNS_AT_ONCE, {})
    if path is not None and path not in known:
        known[path] = runs_at_once(path)
    for report in _run(item):
        item.ihook.pytest_runtest_logreport(report=_by_level(item, report))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@cache
def _offered(driver_path: Path, seconds: float) -> frozenset[str]:
    """The kernels that a driver offers. None if it fails before it can answer."""

    def ask() -> bytes:
        driver = Driver(driver_path)
        if not driver.has_entry("init") or driver.api.init() != Status.OK:
            return b""
        return " ".join(filter(driver.kernel_info, contract.kernels())).encode()

    return frozenset(run_in_child(ask, seconds).payload.decode().split())


def _prepare(item: pytest.Item, seconds: float) -> None:
    """Make the cases of an offered kernel here, for all forked tests of its family to inherit."""
    kernel = _kernel_of(item)
    if kernel is None or not isinstance(item, pytest.Function):
        return
    if kernel in _offered(item.callspec.params["driver_path"], seconds):
        known_answers(kernel)


def _by_level(item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
    """The report; a failed test of should-level requirements only is an expected failure."""
    is_warned = item.config.getoption("should") == "warn" and "should" in item.keywords
    if report.when == "call" and report.failed and is_warned:
        report.outcome = "skipped"
        report.wasxfail = "a should-level requirement"
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    _end_shared(session.config)


def _run(item: pytest.Item) -> list[pytest.TestReport]:
    seconds = item.config.getoption("driver_deadline") * _covered(item).patience
    if _shares(item) and (reports := _run_shared(item, seconds)):
        return reports
    _prepare(item, seconds)
    ending = run_in_child(lambda: _reports_of(item), seconds)
    if ending.timed_out or ending.code != 0 or not ending.payload:
        return _died(item, ending, seconds)
    return _reports_from(item.config, ending.payload)


def _shares(item: pytest.Item) -> bool:
    """Whether the test may run where others ran: it begins with an initialised driver."""
    if not item.config.getoption("share_process") or not isinstance(item, pytest.Function):
        return False
    is_started = "hal" in inspect.signature(item.function).parameters
    return is_started and LIFE.isdisjoint(_covered(item).requirements)


def _run_shared(item: pytest.Item, seconds: float) -> list[pytest.TestReport]:
    """What it gives in the child that is shared; nothing unless it passes or is skipped there.

    After anything else the next test has a new child.
    """
    config, path = item.config, _driver_of(item)
    assert path is not None
    if SHARED in config.stash and config.stash[SHARED][0] != path:
        _end_shared(config)
    if SHARED not in config.stash:
        config.stash[SHARED] = path, Answerer(partial(_report_shared, item.session))
    answer = config.stash[SHARED][1].ask(b"%d" % item.session.items.index(item), seconds)
    reports = _reports_from(config, answer) if answer else []
    if reports and all(report.outcome != "failed" for report in reports):
        return reports
    _end_shared(config)
    return []


def _report_shared(session: pytest.Session, index: bytes) -> bytes:
    """In the child: run the test with this index."""
    session.config.stash[IS_SHARED] = True
    return _reports_of(session.items[int(index)])


def _end_shared(config: pytest.Config) -> None:
    if SHARED in config.stash:
        config.stash[SHARED][1].end()
        del config.stash[SHARED]


def _reports_of(item: pytest.Item) -> bytes:
    """Run the test here; its reports, for another process."""
    reports = runtestprotocol(item, log=False, nextitem=None)
    hook = item.config.hook.pytest_report_to_serializable
    return pickle.dumps([hook(config=item.config, report=report) for report in reports])


def _reports_from(config: pytest.Config, payload: bytes) -> list[pytest.TestReport]:
    hook = config.hook.pytest_report_from_serializable
    return [hook(config=config, data=data) for data in pickle.loads(payload)]


def _died(item: pytest.Item, ending: Ending, seconds: float) -> list[pytest.TestReport]:
    reason = str(ending)
    if ending.timed_out:
        reason += f": no end within {seconds:g} s"
    elif ending.code >= 0:
        reason += ", before the test had a result"
    capture = item.config.pluginmanager.getplugin("capturemanager")
    sections = []
    if capture is not None and capture.is_globally_capturing():
        capture.suspend_global_capture(in_=False)
        out, err = capture.read_global_capture()
        capture.resume_global_capture()
        sections = [("Captured out", out), ("Captured err", err)]
    call = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr=reason,
        when="call",
        sections=sections,
        user_properties=item.user_properties,
    )
    # JUnit's XML takes the properties, and so the requirements, from the last report of a test.
    end = copy.copy(call)
    end.when, end.outcome, end.longrepr, end.sections = "teardown", "passed", None, []
    return [call, end]
