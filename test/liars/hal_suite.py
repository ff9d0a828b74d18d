# SPDX-License-Identifier: BSD-3-Clause
"""A lying driver before the HAL suite: its tests of the requirements that are to catch the lie.

It runs in a fork of this process, which has imported pytest: a fresh interpreter takes longer than
the tests.
"""

from __future__ import annotations

import os
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from suites import ROOT

from torch_conformance.authoring.device import run_forked

TIME = 600.0
QUICK = ("--assert=plain", *(f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest")))

#: The names of tests by the requirement they verify.
ByRequirement = dict[str, list[str]]


def judge(
    requirements: Iterable[str], environment: Mapping[str, str], kernel: str | None = None
) -> tuple[ByRequirement, ByRequirement]:
    """Run the tests of these requirements on the environment's driver: all that ran, the failed.

    Of the known answers only those of `kernel`, if one is named: all take minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder) / "report.xml", Path(folder) / "log"
        arguments = [f"--requirement={name}" for name in requirements]
        arguments += [f"--driver={environment['PUONE_DRIVER']}", "--driver-deadline=10"]
        arguments += ["--should=fail"]
        arguments += [*QUICK, f"--junitxml={report}"]
        arguments += [f"-k=not test_known_answers or {kernel}"] if kernel else []
        ending = run_forked(lambda: _pytest(arguments, environment, log), TIME)
        if not report.exists():
            raise RuntimeError(f"the HAL suite ended with {ending}:\n{log.read_text()}")
        tests = list(ElementTree.parse(report).iter("testcase"))
    ran = [test for test in tests if test.find("skipped") is None]
    failed = [test for test in ran if len(test.findall("failure") + test.findall("error"))]
    return _by_requirement(ran), _by_requirement(failed)


def _pytest(arguments: list[str], environment: Mapping[str, str], log: Path) -> int:
    os.environ.update(environment)
    os.chdir(ROOT)
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    return int(pytest.main(["hal_conformance", *arguments]))


def _by_requirement(tests: Iterable[Element]) -> ByRequirement:
    found: ByRequirement = {}
    for test in tests:
        for requirement in _requirements(test):
            found.setdefault(requirement, []).append(test.get("name", ""))
    return found


def _requirements(test: Element) -> Iterator[str]:
    """What the HAL suite writes beside each test."""
    for item in test.iter("property"):
        if item.get("name") == "requirement":
            yield item.get("value", "")
