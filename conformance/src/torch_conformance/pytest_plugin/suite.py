# SPDX-License-Identifier: BSD-3-Clause
"""The state of one pytest run of the suite: what was asked for, and one session per backend."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

import torch_conformance
from torch_conformance import INI_BACKEND, INI_BACKEND_FILE, INI_EXPECTATIONS, PACKAGE
from torch_conformance.authoring.check import Check
from torch_conformance.authoring.discovery import chapter_files, topic_files
from torch_conformance.expectations import Expectations, ExpectationsError
from torch_conformance.expectations.update import update
from torch_conformance.judging.judge import (
    ALLOW,
    CHUNK,
    COUNTER,
    FORBID,
    Judge,
    Options,
    Verification,
)
from torch_conformance.pytest_plugin import report_file
from torch_conformance.pytest_plugin.options import verification
from torch_conformance.results import report, source
from torch_conformance.results.report import (
    Capability,
    Demand,
    File,
    Run,
    Source,
    Torch,
    Verify,
)
from torch_conformance.results.writing import Recording
from torch_conformance.selecting import durations
from torch_conformance.selecting.durations import Durations
from torch_conformance.selecting.selection import Selection
from torch_conformance.spec import catalogue, chapters, descriptor
from torch_conformance.spec.catalogue import PR_CONTAINS, PR_TIER, TIERS, Requirement
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.ids import BREADTHS, FULL, PR, STANDARD, matches, pattern_error
from torch_conformance.spec.outcome import LoadProblem, Outcome
from torch_conformance.spec.result import CheckResult

NO_BACKEND = "no-backend"
# What --dtypes accepts in the place of names.
DTYPE_WORDS = {PR: PR, STANDARD: STANDARD, "all": FULL}
KEY = pytest.StashKey["Suite"]()


@dataclass
class Session:
    """One backend in this run: its descriptor, its report, and how far it came."""

    descriptor: Descriptor
    expectations: Expectations
    expectations_file: Path | None
    report_file: Path = Path()
    report: Recording | None = None
    judge: Judge | None = None
    selected: set[str] = field(default_factory=set)
    selection: Selection | None = None
    needed: set[str] = field(default_factory=set)
    """The capabilities that checks of the selection need, also those of other shards."""
    capabilities: dict[str, Capability] = field(default_factory=dict)
    cannot_load: str | None = None
    load_problem: LoadProblem | None = None
    finished: bool = False
    verified: Verification | None = None
    known: set[str] = field(default_factory=set)
    surfaces: set[str] = field(default_factory=set)
    changes: list[str] = field(default_factory=list)
    """What `update_expectations` did, a line each."""

    @property
    def complete(self) -> bool:
        """Whether every selected check was executed or decided."""
        if self.report is None or self.cannot_load or not self.finished:
            return False
        results = self.report.results
        return self.selected <= set(results) and not any(
            result.outcome is Outcome.NOT_RUN for result in results.values()
        )

    def note(self, result: CheckResult) -> None:
        """Record a provisional result so that it survives a kill."""
        if self.report is not None:
            self.report.add(result)

    def update_expectations(self) -> None:
        """Rewrite the expectations file, if the run says enough; tell what was done."""
        assert self.report is not None and self.expectations_file is not None
        if not self.complete:
            self.changes = ["none: the run is not complete"]
            return
        today = datetime.date.today()
        try:
            changes = update(
                self.expectations_file, self.report.results, self.known, self.surfaces, today
            )
        except ExpectationsError as error:
            self.changes = [f"none: {error}"]
            return
        self.changes = changes.lines() or ["none: it says what happened"]


class Suite:
    """Options and backends of this run."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.getoption
        self.patterns: list[str] = option("--check") or []
        self.tier: str | None = option("--tier")
        self.shard = _shard(option("--shard"))
        self.durations = _durations(option("--shard-by"), self.shard)
        self.checks_dir = _folder(option("--checks-dir"))
        self.list_only: bool = option("--list")
        self.isolate: str = option("--isolate")
        self.seed: int = option("--seed")
        self.breadth, self.dtypes = selection(self.tier, option("--dtypes"))
        self.fallback: str = option("--fallback")
        self.update_expectations: bool = option("--update-expectations")
        self._workers: int | None = option("--workers")
        self._chunk: int | None = option("--chunk")
        self._reruns: int = option("--rerun-limit")
        self._stops_early = bool(option("maxfail"))
        self.verify = verification(config)
        self.since: str | None = option("--since")
        self.changed: set[str] = set()
        """The ids of the checks that --since selects."""
        self.arguments = [str(argument) for argument in config.invocation_params.args]
        self._config = config
        self._is_xdist_worker = hasattr(config, "workerinput")
        self._cli = _cli(config)
        for pattern in self.patterns:
            problem = pattern_error(pattern)
            if problem:
                raise pytest.UsageError(f"--check {problem}")
        folders = [
            chapters.FOLDER,
            *([self.checks_dir / "requirements"] if self.checks_dir else []),
        ]
        self.catalogue: dict[str, Requirement] = catalogue.load(folders)
        self.shows_live_line = False
        self.shows_progress = False
        """Whether lines about the progress are shown in the place of pytest's letters."""
        self.problem: str | None = None
        """Why the run cannot work, as far as collection has found out."""
        self.is_over = False
        """Whether all checks have run."""
        self.available: set[Check] = set()
        """The checks of the files that were collected, whether selected or not."""
        self.collected_files: set[Path] = set()
        self.sessions = _sessions(config)
        self._report = _named_report(config, len(self.sessions))
        _require_all_checks(config, self)
        for session in self.sessions.values():
            self.place_report(session, None)
            _require_counter(session.descriptor, self.fallback)

    @cached_property
    def every_file(self) -> set[Path]:
        """All files with checks that there are."""
        return {*chapter_files(self.checks_dir), *topic_files()}

    @property
    def collected_every_file(self) -> bool:
        """Whether pytest was given the whole suite to collect."""
        return self.every_file <= self.collected_files

    @property
    def backend_names(self) -> list[str]:
        """The backends of this run, or a placeholder that only --list accepts."""
        return list(self.sessions) or [NO_BACKEND]

    def place_report(self, session: Session, differs_by: Collection[str] | None) -> None:
        """Say where the report of a backend goes, by how its selection differs from the standard.

        If there is a report already, it moves.
        """
        name = session.descriptor.name
        named = Path(self._report.replace("{backend}", name)) if self._report else None
        file = named or report_file.default(name, self.tier, differs_by, self.shard)
        session.report_file = self._config.invocation_params.dir / file
        if session.report is not None:
            session.report.move(session.report_file)

    def wants(self, check: Check) -> bool:
        """Whether breadth or dtypes select a check."""
        dtype = dict(check.arguments).get("dtype")
        if self.dtypes and check.surface == "opinfo" and dtype is not None:
            return dtype in self.dtypes
        return BREADTHS.index(check.breadth) <= BREADTHS.index(self.breadth)

    def in_tier(self, check: Check) -> bool:
        """Whether a check belongs to the tier asked for or to one before it."""
        return any(self.tier_has(self.catalogue[id].tier) for id in check.requirements)

    def tier_has(self, tier: str) -> bool:
        """Whether a tier is the one asked for or one before it."""
        limit = PR_CONTAINS if self.tier == PR_TIER else self.tier or TIERS[-1]
        return TIERS.index(tier) <= TIERS.index(limit)

    def named(self, check: Check) -> bool:
        """Whether --check names the check."""
        return not self.patterns or any(matches(p, check.id) for p in self.patterns)

    def options(self, target: Descriptor) -> Options:
        """How to run a backend: the command line, then its descriptor, then the machine."""
        # One more than cores: some checks wait, for a deadline or for a fresh interpreter.
        workers = self._workers or target.workers or available_cores() + 1
        return Options(
            isolate=self.isolate,
            workers=1 if target.single_process or self._is_xdist_worker else workers,
            chunk=1 if self.isolate == "test" else self._chunk or target.chunk or CHUNK,
            seed=self.seed,
            dtypes=self.dtypes or (self.breadth,),
            fallback=self.fallback,
            reruns=0 if self.isolate == "none" else self._reruns,
            stops_early=self._stops_early,
            verify=self.verify,
            diagnose=self._reruns > 0,
        )

    def asks_for(self, check: Check) -> bool:
        """Whether tier, --check and --since select the check."""
        is_changed = self.since is None or check.id in self.changed
        return is_changed and self.in_tier(check) and self.named(check)

    def tell(self, line: str) -> None:
        """Write a line on the terminal, now."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            if self.shows_live_line:
                reporter.rewrite("", erase=True)
                reporter.write("\r")
            reporter.ensure_newline()
            reporter.write_line(line)

    def repro(self, session: Session) -> Callable[[str], str]:
        """The command that runs one check of a backend again."""
        file = session.descriptor.file
        known = file is None or Path(file).parent == descriptor.BUILT_IN
        name = session.descriptor.name
        choice = f"--backend={name}" if known else f"--backend-file={shlex.quote(str(file))}"
        if self.fallback == FORBID:
            choice += f" --fallback={FORBID}"
        return lambda id: f"{self._cli} {choice} --check {id}"


def start(session: Session, suite: Suite) -> None:
    """Get ready to judge the results of a backend."""
    import torch

    session.judge = Judge(
        session.descriptor,
        suite.catalogue,
        session.expectations,
        torch.__version__,
        suite.repro(session),
        suite.fallback,
    )


def open_report(session: Session, suite: Suite) -> None:
    """Open the report of a backend: from now on there is a file that says how far the run is."""
    import torch

    run = Run(
        backend=session.descriptor.name,
        device_type=session.descriptor.device_type,
        torch=Torch(version=str(torch.__version__), git=torch.version.git_version),
        suite=torch_conformance.__version__,
        source=Source(commit=source.commit(), digest=source.digest()),
        python=platform.python_version(),
        platform=platform.platform(),
        seed=suite.options(session.descriptor).seed,
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        duration_s=0.0,
        descriptor=source.fingerprint(_path(session.descriptor.file)),
        expectations=source.fingerprint(session.expectations_file),
        selection=session.selection,
        capabilities={},
        options=_said(suite, suite.options(session.descriptor)),
    )
    demands = {id: Demand(level=r.level, tier=r.tier) for id, r in suite.catalogue.items()}
    session.report = Recording(session.report_file, run, demands)
    session.report.write(complete=False)


def _said(suite: Suite, options: Options) -> report.Options:
    """The options as a report says them."""
    verify, durations = options.verify, suite.durations
    return report.Options(
        isolate=options.isolate,
        workers=options.workers,
        chunk=options.chunk,
        dtypes=options.dtypes,
        fallback=options.fallback,  # type: ignore[arg-type]  # one of FALLBACK_POLICIES
        rerun_limit=options.reruns,
        verify=Verify(rounds=verify.rounds, seed=verify.seed) if verify else None,
        shard="{}/{}".format(*suite.shard) if suite.shard else None,
        durations=File(file=durations.file, sha256=durations.sha256) if durations else None,
        tier=suite.tier,
        checks=tuple(suite.patterns),
    )


def _require_counter(target: Descriptor, fallback: str) -> None:
    """Refuse to judge fallbacks on a backend that does not count them."""
    counts = bool(target.fallback_counts) and target.capabilities.get(COUNTER, True)
    if fallback != ALLOW and not counts:
        raise pytest.UsageError(
            f"--fallback={fallback} needs capability {COUNTER!r}, which backend {target.name!r} "
            "does not have: let the key 'fallback_counts' of its descriptor name a callable that "
            "returns {operator: number of CPU fallbacks}"
        )


def _require_all_checks(config: pytest.Config, suite: Suite) -> None:
    """Refuse to rewrite expectations from a part of the checks, or without a file to rewrite."""
    if not suite.update_expectations:
        return
    if suite.shard or config.getoption("dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "--update-expectations needs all results in one process: run without -n and --shard, "
            "or merge the shards and use `python -m torch_conformance update-expectations`"
        )
    for session in suite.sessions.values():
        if session.expectations_file is None:
            raise pytest.UsageError(
                f"--update-expectations: backend {session.descriptor.name!r} has no expectations "
                "file yet: name one with --expectations FILE (it is created), and put "
                "'expectations: FILE' into its descriptor"
            )


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _sessions(config: pytest.Config) -> dict[str, Session]:
    names, files = _chosen(config)
    descriptors = [descriptor.load(Path(file)) for file in files]
    descriptors += [descriptor.find(name) for name in names]
    listed = _expectations(config)
    sessions = {}
    for found in descriptors:
        name = listed or found.expectations
        file = Path(name) if name else None
        to_create = config.getoption("--update-expectations") and file and not file.exists()
        sessions[found.name] = Session(
            found,
            Expectations.load(file) if file and not to_create else Expectations(),
            file,
        )
    return sessions


def _chosen(config: pytest.Config) -> tuple[list[str], list[str | Path]]:
    """Names and files of the backends: those of the command line, else those of the ini file."""
    names = config.getoption("--backend") or []
    files = config.getoption("--backend-file") or []
    if not names and not files:
        names, files = config.getini(INI_BACKEND), config.getini(INI_BACKEND_FILE)
    return list(dict.fromkeys(names)), list(files)


def _expectations(config: pytest.Config) -> str | Path | None:
    given: str | None = config.getoption("--expectations")
    if given:
        return given
    files: list[Path] = config.getini(INI_EXPECTATIONS)
    if len(files) > 1:
        raise pytest.UsageError(f"{INI_EXPECTATIONS}: name one file, not {len(files)}")
    return files[0] if files else None


def _path(file: str | None) -> Path | None:
    return Path(file) if file else None


def _named_report(config: pytest.Config, backends: int) -> str | None:
    """The file that --report names, perhaps with the backend's name left open."""
    given: str | None = config.getoption("--report")
    if given and backends > 1 and "{backend}" not in given:
        raise pytest.UsageError("--report needs {backend} in its name: there are several")
    return given


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, slash, count = text.partition("/")
    if slash and index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count):
        return int(index), int(count)
    raise pytest.UsageError(f"--shard {text!r}: expected I/N with 1 <= I <= N")


def _durations(name: str | None, shard: tuple[int, int] | None) -> Durations | None:
    """What the parts are cut by; None: alike in number, also where there is no such file yet."""
    if name is None:
        return None
    if shard is None:
        raise pytest.UsageError("--shard-by divides a run into parts: name one with --shard I/N")
    file = Path(name)
    try:
        return durations.load(file) if file.exists() else None
    except durations.DurationsError as error:
        raise pytest.UsageError(f"--shard-by {error}") from None


def selection(tier: str | None, dtypes: str | None) -> tuple[str, tuple[str, ...]]:
    """The breadth of the run, and the dtypes of the OpInfo tier that were named in its place."""
    default = PR if tier == PR_TIER else STANDARD
    named = tuple((dtypes or default).split(","))
    words = [name for name in named if name in DTYPE_WORDS]
    if not words:
        return default, named
    if len(named) > 1:
        raise pytest.UsageError(f"--dtypes {dtypes}: {words[0]!r} stands alone")
    return DTYPE_WORDS[words[0]], ()


def _folder(text: str | None) -> Path | None:
    if text is None:
        return None
    folder = Path(text).resolve()
    if not folder.is_dir():
        raise pytest.UsageError(f"--checks-dir {text}: no such directory")
    return folder


def _cli(config: pytest.Config) -> str:
    parts = ["pytest", _target(config.invocation_params.dir)]
    if config.getoption("--checks-dir"):
        parts.append(f"--checks-dir={config.getoption('--checks-dir')}")
    return " ".join(parts)


def _target(directory: Path) -> str:
    """What names the suite to a pytest in this directory: that of a checkout, or the package."""
    checkout = PACKAGE.parents[1]
    if (checkout / "pyproject.toml").is_file() and checkout.is_relative_to(directory):
        return checkout.relative_to(directory).as_posix()
    return f"--pyargs {PACKAGE.name}"
