# SPDX-License-Identifier: BSD-3-Clause
"""`make test` installs what its tests run."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = re.compile(r'"-m",\s*"(\w+)"')


def test_tests_run_no_tool_that_only_lint_installs() -> None:
    lines = (ROOT / "requirements" / "lint.txt").read_text().splitlines()
    of_lint = {line.partition("==")[0].replace("-", "_") for line in lines if "==" in line}
    assert "import_linter" in of_lint
    wrong = [
        f"{file.relative_to(ROOT)}: {module}"
        for file in sorted((ROOT / "test").rglob("*.py"))
        for module in RUN.findall(file.read_text())
        if module in of_lint
    ]
    assert not wrong, "move them to requirements/test.txt"
