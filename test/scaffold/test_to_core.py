# SPDX-License-Identifier: BSD-3-Clause
"""The documented commands, run by themselves, lead from a checkout to level Core.

Minutes to a quarter of an hour, and the same with each torch: for the nightly workflow.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo import environment
from scaffolding import ROOT

DOCUMENT = (ROOT / "docs/own-backend.md").read_text()
# The environment is that of the tests, whose packages are linked: nothing is downloaded.
PREPARED = ("python3 -m venv ", ". venv/", "pip install ")
CORE_OR_MORE = ("Core", "Inference", "Training", "Multi-device", "Distributed training", "Compile")


def commands() -> Iterator[str]:
    """Those of the first block of the document."""
    (block, *_) = re.findall(r"^```console\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        assert line.startswith("$ ")
        yield line[2:]


class Shell:
    """A vendor's shell: commands in directories, in an environment of their own."""

    def __init__(self, directory: Path) -> None:
        self.where = directory
        (directory / "torch-puone").symlink_to(ROOT)
        tools = environment(directory / "venv") / "bin"
        hidden = ("PYTHONPATH", "VIRTUAL_ENV")
        self.variables = {key: text for key, text in os.environ.items() if key not in hidden}
        path = f"{tools}:{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
        self.variables["PATH"] = path

    def run(self, command: str) -> str:
        """What the command prints; it must succeed."""
        if command.startswith("cd "):
            self.where /= command[3:]
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.where,
            env=self.variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        return done.stdout


@pytest.mark.nightly
def test_the_documented_commands_lead_to_level_core(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for suite in ("conformance", "hal_conformance"):
        options = "--quiet --no-deps --no-build-isolation"
        shell.run(f"python -m pip install {options} ./torch-puone/{suite}")
    for command in commands():
        if not command.startswith(PREPARED):
            shell.run(command)
    report = shell.where / "build/conformance/mychip.json"
    assert len(json.loads(report.read_text())["checks"]) > 5000
    level = shell.run(f"python -m torch_conformance level {report}")
    assert re.match(rf"level of mychip: (?:{'|'.join(CORE_OR_MORE)})\b", level), level
    shell.run("make driver")


@pytest.mark.nightly
def test_a_backend_without_the_optional_parts_builds_and_works(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    tool = "python3 torch-puone/reference_backend/torch_puone/new"
    shell.run(f"{tool} small_chip --out small --without-distributed --without-compile")
    shell.run("cd small")
    shell.run("make build test")
