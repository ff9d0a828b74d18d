# SPDX-License-Identifier: BSD-3-Clause
"""A lying driver before the HAL suite: its tests of the requirements that are to catch the lie."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from suites import run_pytest


@dataclass(frozen=True)
class Verdict:
    """What the HAL suite says about a driver: tests by requirement, all and failed."""

    ran: dict[str, list[str]]
    failed: dict[str, list[str]]


def judge(requirements: Iterable[str], environment: Mapping[str, str]) -> Verdict:
    """Run the tests of these requirements on the driver that the environment names."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        arguments = [f"--requirement={name}" for name in requirements]
        arguments += [f"--driver={environment['PUONE_DRIVER']}", "--driver-deadline=10"]
        done = run_pytest(
            ["--tb=no", "conformance/hal", *arguments, f"--junitxml={report}"], environment
        )
        assert report.exists(), done.stdout + done.stderr
        tests = list(ElementTree.parse(report).iter("testcase"))
    ran = [test for test in tests if test.find("skipped") is None]
    failed = [test for test in ran if len(test.findall("failure") + test.findall("error"))]
    return Verdict(_by_requirement(ran), _by_requirement(failed))


def _by_requirement(tests: Iterable[Element]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test in tests:
        for requirement in _requirements(test):
            found.setdefault(requirement, []).append(test.get("name", ""))
    return found


def _requirements(test: Element) -> Iterator[str]:
    """What the HAL suite writes beside each test."""
    for item in test.iter("property"):
        if item.get("name") == "requirement":
            yield item.get("value", "")
