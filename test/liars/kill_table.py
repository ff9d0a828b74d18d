# SPDX-License-Identifier: BSD-3-Clause
"""Liars and their judges: run both suites against a lying driver and see who catches the lie."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import yaml
from suites import LIBRARIES, run_pytest

LIARS = Path(__file__).parent / "hal" / "liars.yaml"
BAD = ("fail", "error", "crash", "timeout", "device_lost")


@dataclass(frozen=True)
class Liar:
    """One lie, and the requirements under which it must be caught."""

    id: str
    lie: str
    checks: tuple[str, ...]
    conformance: tuple[str, ...]
    hal: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What a suite says about a driver: its tests by requirement, all and failed."""

    ran: dict[str, int]
    failed: dict[str, int]

    def missed(self, requirements: Iterable[str]) -> list[str]:
        """The requirements under which nothing failed."""
        return [name for name in requirements if not self.failed.get(name)]

    def text(self, requirements: Iterable[str]) -> str:
        """Per requirement, how many of its tests failed."""
        return ", ".join(
            f"{name} {self.failed.get(name, 0)}/{self.ran.get(name, 0)}" for name in requirements
        )


def liars() -> dict[str, Liar]:
    """Every liar, by id."""
    document = yaml.safe_load(LIARS.read_text())
    return {
        name: Liar(
            name,
            fields["lie"],
            tuple(fields["checks"]),
            tuple(fields["conformance"]),
            tuple(fields["hal"]),
        )
        for name, fields in document["liars"].items()
    }


def conformance(lie: str, checks: Iterable[str], folder: Path) -> Verdict:
    """Run these checks of the conformance suite on puone over the lying driver."""
    report = folder / f"{lie}.json"
    arguments = [f"--check={check}" for check in checks]
    arguments += ["--backend=puone", "--workers=1", f"--report={report}"]
    log = _pytest(["conformance", *arguments], {**_told(lie), "PUONE_DRIVER": str(_liar())})
    assert report.exists(), log
    content = json.loads(report.read_text())
    assert content["complete"], f"the run against {lie} is incomplete\n{log}"
    records = content["checks"]
    return Verdict(
        _count(name for record in records for name in record["requirements"]),
        _count(
            name
            for record in records
            if record["outcome"] in BAD
            for name in record["requirements"]
        ),
    )


def hal(lie: str, requirements: Iterable[str], folder: Path) -> Verdict:
    """Run the HAL suite's tests of these requirements on the lying driver."""
    report = folder / f"{lie}.xml"
    arguments = [f"--requirement={name}" for name in requirements]
    arguments += [f"--driver={_liar()}", "--driver-deadline=10", f"--junitxml={report}"]
    log = _pytest(["conformance/hal", *arguments], _told(lie))
    assert report.exists(), log
    tests = list(ElementTree.parse(report).iter("testcase"))
    ran = [test for test in tests if test.find("skipped") is None]
    failed = [test for test in ran if len(test.findall("failure") + test.findall("error"))]
    return Verdict(_count(_requirements(ran)), _count(_requirements(failed)))


def _requirements(tests: Iterable[Element]) -> Iterator[str]:
    """What the HAL suite writes beside each test."""
    for test in tests:
        for item in test.iter("property"):
            if item.get("name") == "requirement":
                yield item.get("value", "")


def _count(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _liar() -> Path:
    return LIBRARIES / "libpuone_liar.so"


def _told(lie: str) -> dict[str, str]:
    return {"PUONE_LIAR": lie, "PUONE_LIAR_TARGET": str(LIBRARIES / "libpuone_sim.so")}


def _pytest(arguments: list[str], environment: dict[str, str]) -> str:
    done = run_pytest(["--tb=no", *arguments], environment)
    return done.stdout + done.stderr
