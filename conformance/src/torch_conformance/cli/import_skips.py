# SPDX-License-Identifier: BSD-3-Clause
"""Convert a flat list of disabled upstream tests to capabilities, dtypes and patterns.

LIST is JSON (a map with tests as keys, or a list) or text with a test on each line:
`test_x (__main__.TestY)`, `path.py::TestY::test_x` or `test_x`. The output has keys of the
descriptor (as comments) and xfail entries that expire in 30 days. Then run the suite with
--update-expectations: checks that pass are removed, the others get their real status.

  python -m torch_conformance import-skips disabled.json --link https://example.org/1 -o known.yaml

Exit code 0: written; 4: the list cannot be read, or the file exists.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from torch_conformance.authoring import discovery
from torch_conformance.cli import CommandError
from torch_conformance.expectations.entry import XFAIL, Expectation
from torch_conformance.expectations.file import dump
from torch_conformance.expectations.skips import Rules, read, rules
from torch_conformance.expectations.update import REVIEW_TIME, UNREVIEWED

SUMMARY = "convert a list of disabled upstream tests to expectations"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The list, where it is from, where the rules go."""
    parser.add_argument("list", type=Path, metavar="LIST", help="file with the disabled tests")
    parser.add_argument("--link", required=True, help="address of the list or of its issue")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: standard output"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the rules; say on stderr what they stand for."""
    if arguments.output and arguments.output.exists() and not arguments.force:
        raise CommandError(f"{arguments.output} exists: choose another name, or add --force")
    try:
        tests = read(arguments.list.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{arguments.list}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{arguments.list}: {error}") from None
    if not tests:
        raise CommandError(f"{arguments.list}: no test in it")
    found = rules(tests, discovery.all_checks())
    text = "\n".join(_lines(found, arguments.list.name, arguments.link)) + "\n"
    if arguments.output:
        try:
            arguments.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{arguments.output}: {error.strerror}") from None
    else:
        sys.stdout.write(text)
    print("\n".join(_summary(found, len(tests))), file=sys.stderr)
    return 0


def _lines(found: Rules, source: str, link: str) -> Iterator[str]:
    yield f"# Imported from {source}."
    if found.dtypes or found.capabilities:
        yield "# For the descriptor; a run says whether it is true:"
    if found.dtypes:
        yield f"#   dtypes: {{unsupported: [{', '.join(sorted(found.dtypes))}]}}"
    if found.capabilities:
        absent = ", ".join(f"{name}: false" for name in sorted(found.capabilities))
        yield f"#   capabilities: {{{absent}}}"
    expires = datetime.date.today() + REVIEW_TIME
    entries = [
        Expectation(XFAIL, pattern, _reason(count, source), link, "", "fail", expires)
        for pattern, count in sorted(found.patterns.items())
    ]
    if entries:
        yield f"{XFAIL}:"
        yield dump(entries).rstrip()


def _reason(count: int, source: str) -> str:
    return f"{UNREVIEWED}: stands for {count} disabled upstream test(s) of {source}"


def _summary(found: Rules, tests: int) -> Iterator[str]:
    yield f"{tests} disabled upstream tests"
    for title, group in (
        ("dtypes that nearly no operator has", found.dtypes),
        ("capabilities that may be absent", found.capabilities),
    ):
        if group:
            yield f"{sum(group.values()):>7}  {title}: {_named(group)}"
    yield f"{sum(found.patterns.values()):>7}  in {len(found.patterns)} patterns over operators"
    if found.unknown:
        yield f"{sum(found.unknown.values()):>7}  of no check here: {_named(found.unknown)}"


def _named(group: Counter[str], most: int = 8) -> str:
    names = [f"{name} ({count})" for name, count in group.most_common(most)]
    return ", ".join(names) + (f" and {len(group) - most} more" if len(group) > most else "")
