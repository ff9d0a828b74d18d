# SPDX-License-Identifier: BSD-3-Clause
"""The report of a part of the checks never replaces that of a whole run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import harness
import pytest
import synthetic

from torch_conformance.cli import main
from torch_conformance.pytest_plugin.report_file import default

DIRECTORY = Path("build/conformance")


@pytest.mark.parametrize(
    ("tier", "differs_by", "shard", "name"),
    [
        (None, [], None, "chip.json"),
        (None, [], (1, 4), "chip-shard-1-of-4.json"),
        ("core", ["--tier=core"], None, "chip.core.json"),
        ("pr", ["--tier=pr", "--dtypes=pr"], (2, 4), "chip.pr-shard-2-of-4.json"),
        ("core", ["--tier=core", "--check=copy/*"], None, "chip.partial.json"),
        (None, ["--dtypes=pr"], None, "chip.partial.json"),
        (None, ["pytest (-k, --lf)"], None, "chip.partial.json"),
        (None, None, None, "chip.partial.json"),
    ],
)
def test_the_name_says_what_was_selected(
    tier: str | None, differs_by: list[str] | None, shard: tuple[int, int] | None, name: str
) -> None:
    assert default("chip", tier, differs_by, shard) == DIRECTORY / name


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["", "xdist"])
def test_repeating_a_check_leaves_the_whole_report_alone(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    whole = tmp_path / DIRECTORY / "cpu.json"
    whole.parent.mkdir(parents=True)
    whole.write_text("the report of hours")
    command = [
        part for part in harness.command(harness.PLANTED) if not part.startswith("--report=")
    ]
    done = subprocess.run(
        [*command, "--backend=cpu", "--check=planted/good:before_0", *options],
        cwd=tmp_path,
        env=harness.environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert whole.read_text() == "the report of hours"
    part = whole.with_name("cpu.partial.json")
    assert f"report: {part}" in done.stdout
    assert len(json.loads(part.read_text())["checks"]) == 1
    assert sorted(os.listdir(part.parent)) == ["cpu.json", "cpu.partial.json", "cpu.partial.xml"]


def test_verbs_say_which_report_they_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = synthetic.content()
    file = synthetic.write(tmp_path / "chip.json", content)
    main(["level", str(file)])
    line = capsys.readouterr().err
    assert line.startswith(f"{file}: {len(content['checks'])} checks of ")
    assert ", the standard selection, " in line
