# SPDX-License-Identifier: BSD-3-Clause
"""Every verb explains itself, and works in any terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import harness
import pytest
import synthetic

from torch_conformance.cli import VERBS, main


@pytest.mark.parametrize(
    "verb", ["report", "compare", "merge", "level", "badge", "submit", "verify"]
)
def test_the_help_of_a_verb_tells_its_exit_codes(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb in VERBS
    with pytest.raises(SystemExit) as end:
        main([verb, "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit code 0: " in text
    assert "4: " in text


@pytest.mark.parametrize(
    "arguments", [[], ["nosuch"], ["report"], ["compare", "a"], ["level", "-x"]]
)
def test_wrong_usage_has_the_exit_code_of_pytest(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 4


def test_a_terminal_without_letters_for_a_name_gets_other_ones(tmp_path: Path) -> None:
    report = synthetic.write(tmp_path / "chip.json", synthetic.content(backend="größer\x1b[2J"))
    done = subprocess.run(
        [sys.executable, "-m", "torch_conformance", "level", str(report)],
        env={**os.environ, "PYTHONPATH": str(harness.ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert r"level of gr\xf6\xdfer\ufffd[2J: " in done.stdout
