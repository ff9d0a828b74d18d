# SPDX-License-Identifier: BSD-3-Clause
"""The transcript of docs/sanitizer.md is what its program prints."""

from __future__ import annotations

import re
from pathlib import Path

from interpreter import Python

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "sanitizer.md"


def test_the_program_prints_the_transcript(python: Python) -> None:
    text = DOCUMENT.read_text()
    found = re.search(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    # Fresh: the transcript has the whole stack.
    done = python(found[1], autoload=True, fresh=True, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") == found[2].rstrip("\n")
