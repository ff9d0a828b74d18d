# SPDX-License-Identifier: BSD-3-Clause
"""Runs the suite as a user would, in a process of its own, and reads what it left."""

from __future__ import annotations

import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nursery

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = (ROOT, ROOT / "conformance" / "src", ROOT / "reference_backend")
PLANTED, SLOW, LOST, RELIANT, MOODY, GREEDY, FILLING, RESTLESS, WOKEN = (
    HERE / name
    for name in (
        *("planted", "slow", "lost", "reliant", "moody", "greedy", "filling", "restless", "woken"),
    )
)


@dataclass
class Run:
    """A finished run of the suite."""

    code: int
    text: str
    report_file: Path

    @property
    def report(self) -> dict[str, Any]:
        """The report."""
        content: dict[str, Any] = json.loads(self.report_file.read_text())
        return content

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome by check id."""
        return {check["id"]: check["outcome"] for check in self.report["checks"]}

    def check(self, id: str) -> dict[str, Any]:
        """The record of one check."""
        found: dict[str, Any] = next(c for c in self.report["checks"] if c["id"] == id)
        return found

    @property
    def junit(self) -> ElementTree.Element:
        """The JUnit file beside the report."""
        return ElementTree.parse(self.report_file.with_suffix(".xml")).getroot()


def command(folder: Path, *options: str) -> list[str]:
    """The command line of a run with the checks of one directory only."""
    return [
        *(
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "torch_conformance.plugin",
            "-p",
            "no:cacheprovider",
        ),
        *("--report=report.json", f"--checks-dir={folder}", *options),
    ]


def environment(tmp_path: Path) -> dict[str, str]:
    """Planted checks and backends find each other and their files through these."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (*SOURCES, HERE, tmp_path))),
        "PLANTED_PID_FILE": str(tmp_path / "pids"),
        "PLANTED_MARKER": str(tmp_path / "marker"),
    }


def run(tmp_path: Path, folder: Path, *options: str, timeout: float = 180.0) -> Run:
    """Run the checks of a directory against the backend that the options name."""
    done = nursery.run_module(
        *command(folder, *options)[2:],
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=timeout,
    )
    return Run(done.returncode, done.stdout + done.stderr, tmp_path / "report.json")


def descriptor(tmp_path: Path, text: str, name: str = "subject") -> str:
    """The option that names a descriptor with this text."""
    file = tmp_path / f"{name}.yaml"
    file.write_text(text)
    return f"--backend-file={file}"
