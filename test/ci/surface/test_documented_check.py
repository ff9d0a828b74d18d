# SPDX-License-Identifier: BSD-3-Clause
"""The example of `surface check` in the documents is what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trees import installed_tree

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit

ROOT = Path(__file__).parents[3]
COMMAND = "torch-backend-ci surface check --base 2.13.0 --patch "
PATCH = "docs/surface/examples/const-allocate.diff"


def transcript(document: str) -> str:
    """What the document says that the command prints."""
    text = (ROOT / document).read_text()
    found = re.search(rf"```console\n\$ {re.escape(COMMAND + PATCH)}\n(.*?)```\n", text, re.DOTALL)
    assert found, f"{document} has no transcript of {COMMAND}{PATCH}"
    return found[1]


@pytest.mark.nightly
def test_check_prints_what_its_document_shows(capsys: pytest.CaptureFixture[str]) -> None:
    base = str(installed_tree().root / "torch")
    assert main(["surface", "check", "--base", base, "--patch", str(ROOT / PATCH)]) == (
        Exit.FINDINGS
    )
    assert capsys.readouterr().out == transcript("docs/surface/check.md")


def test_the_readme_shows_the_beginning() -> None:
    shown = transcript("README.md")
    assert shown.endswith("[...]\n")
    assert transcript("docs/surface/check.md").startswith(shown.removesuffix("[...]\n"))
