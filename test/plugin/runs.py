# SPDX-License-Identifier: BSD-3-Clause
"""Runs pytest with the plugin on tests of a program, as its author does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Test:
    """How a test ended: "passed", "failed", "error" or "skipped", and all that was reported."""

    outcome: str
    text: str


@dataclass(frozen=True)
class Run:
    """A run of pytest, with its tests by name."""

    status: int
    output: str
    tests: dict[str, Test]

    def outcomes(self, name: str) -> dict[str, str]:
        """Those of a function for all of its parameters: {"ordinary": "passed", ...}."""
        found = {re.fullmatch(r"(\w+)\[(.*)\]", each): each for each in self.tests}
        return {
            match[2]: self.tests[each].outcome
            for match, each in found.items()
            if match and match[1] == name
        }


def run(
    where: Path, *options: str, environment: dict[str, str] | None = None, timeout: float = 120
) -> Run:
    """pytest in a process, on a file or directory of tests.

    The plugin is named, because the installation of a checkout may be older than its plugin.
    """
    folder = where if where.is_dir() else where.parent
    junit = folder / "junit.xml"
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    paths = [str(ROOT / "reference_backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "pytest_puone", "-p", "no:cacheprovider"),
            *("-c", os.devnull, "--rootdir", str(folder), f"--junitxml={junit}", *options),
            str(where),
        ],
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    tests = _tests(junit) if junit.exists() else {}
    junit.unlink(missing_ok=True)
    return Run(done.returncode, done.stdout + done.stderr, tests)


def _tests(junit: Path) -> dict[str, Test]:
    return {case.attrib["name"]: _test(case) for case in ET.parse(junit).iter("testcase")}


def _test(case: ET.Element) -> Test:
    outcomes = {"failure": "failed", "error": "error", "skipped": "skipped"}
    ended = [outcomes[child.tag] for child in case if child.tag in outcomes]
    text = "\n".join(" ".join([child.get("message", ""), child.text or ""]) for child in case)
    return Test(ended[0] if ended else "passed", text)
