# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci dashboard grid`: the overview in small, for a README."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torch_backend_ci.dashboard import paths, runs
from torch_backend_ci.dashboard.model import NIGHTLY, Key, Run, Series
from torch_backend_ci.dashboard.read import in_series, line_order
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.github.markdown import code, link, shorten, table, text
from torch_backend_ci.output import say, show, write
from torch_backend_ci.results.store import Store
from torch_conformance.results import levels

BEGIN = "<!-- grid: made by `torch-backend-ci dashboard grid`, not by hand -->"
END = "<!-- grid: end -->"
DESCRIPTION = f"""
Write a Markdown table of backends and release lines of PyTorch: the level of the newest complete
run, and how many checks have an unexpected outcome. PyTorch's own CPU is the reference. A list
below the table names runs that are older than the newest nightly run, with the reason. With
--readme the table replaces the text between these two lines

  {BEGIN}
  {END}

of that file. With --check the file is only compared, and not written.
"""
EXAMPLE = """
example:
  torch-backend-ci dashboard grid --store docs/dashboard/store --readme README.md --check

Exit status: 0 written, or up to date; 1 --check, and the table differs; 2 unusable input.
"""
_MAX_REASON = 200  # bytes
_SECTION = re.compile(rf"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--store, --readme, --check, --site."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLE
    add = parser.add_argument
    add("--store", type=Path, required=True, metavar="D", help="made by `results add`")
    add("--readme", type=Path, metavar="F", help="the file to change; default: print the table")
    add("--check", action="store_true", help="only compare --readme")
    add("--site", default="", metavar="URL", help="address of the dashboard, for links")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the grid, or say that it is another one."""
    if args.check and not args.readme:
        raise CiError("--check needs --readme: the file whose grid is to be checked")
    made = render(Store(args.store).read(runs.read), args.site)
    if args.readme is None:
        show(made, None)
        return Exit.OK
    before = _read(args.readme)
    after = insert(before, made, str(args.readme))
    if not args.check:
        write(args.readme, after.encode())
    elif before != after:
        say(f"{args.readme}: the grid is not that of {args.store}: run this without --check")
        return Exit.FINDINGS
    return Exit.OK


def insert(document: str, grid: str, name: str = "the file") -> str:
    """The document with this grid; CiError if it has not exactly one place for it."""
    if len(_SECTION.findall(document)) != 1:
        raise CiError(f"{name} needs these two lines once, where the grid goes:\n{BEGIN}\n{END}")
    return _SECTION.sub(lambda _: grid, document)


def render(every: Sequence[Run], site: str = "") -> str:
    """The table with its notes; the runs are in the order of time."""
    if not every:
        return "No runs yet.\n"
    series = in_series(every)
    lines = sorted({key.line for key in series}, key=line_order, reverse=True)
    rows = [
        [code(backend), *(_cell(series, Key(backend, line), site) for line in lines)]
        for backend in _backends(series)
    ]
    said = (
        f"The newest whole run of each, as of {every[-1].started:%Y-%m-%d}: the level it reached, "
        "the checks that came out otherwise than they should."
    )
    grid = table(["backend", *map(_torch, lines)], rows)
    return "\n".join([grid, "", said, *_reservations(series), ""])


def _backends(series: Mapping[Key, Series]) -> list[str]:
    """By their names, references last."""
    found = {key.backend: (one.runs or one.others)[-1].is_reference for key, one in series.items()}
    return sorted(found, key=lambda backend: (found[backend], backend))


def _cell(all_series: Mapping[Key, Series], key: Key, site: str) -> str:
    series = all_series.get(key)
    if series is None:
        return "not run"
    if series.column is None:
        return "no whole run"
    level = _level(series.column)
    said = link(level, f"{site.rstrip('/')}/{paths.of_series(key)}") if site else level
    age = f", {_days(series.stale.days)} old" if series.stale else ""
    return f"{said}{age}<br>{series.column.bad:,} unexpected"


def _level(run: Run) -> str:
    if run.is_reference:
        return "reference"
    return f"**{_title(run)}**" if run.level else "no level"


def _title(run: Run) -> str:
    known = {level.name: level.title for level in levels.every()}
    return known.get(run.level or "") or text(run.title)


def _reservations(all_series: Mapping[Key, Series]) -> Iterator[str]:
    """Why cells are not of the newest nightly run: each reason once, with all its cells."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, series in all_series.items():
        if reason := _reason(series):
            alike[key.backend, reason].append(_torch(key.line))
    for (backend, reason), where in alike.items():
        yield f"- {code(backend)}, {', '.join(where)}: {text(shorten(reason, _MAX_REASON))}"


def _reason(series: Series) -> str:
    if series.stale:
        return f"{_days(series.stale.days)} old: {series.stale.reason}"
    if series.column is None:
        return series.others[-1].why_not or ""
    if series.column.level or series.column.is_reference:
        return ""
    return f"no level, as {_blocker(series.column)}"


def _blocker(run: Run) -> str:
    """The first thing in the way of the lowest level."""
    return next(f"{b.what} is {b.why}" for step in run.steps for b in step.blockers)


def _torch(line: str) -> str:
    return line if line == NIGHTLY else f"torch {line}"


def _days(count: int) -> str:
    return f"{count} day{'s' * (count != 1)}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CiError(f"cannot read {path}: {error}") from None
