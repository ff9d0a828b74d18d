# SPDX-License-Identifier: BSD-3-Clause
"""What the documents show is run, and what they point at exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from interpreter import Python

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Links to documents lie among the sources of the suite, for its wheel.
READMES = sorted(
    file
    for folder in ("csrc", "conformance")
    for file in (ROOT / folder).rglob("*.md")
    if not file.is_symlink()
)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """("file:line", code) of every fenced block in this language."""
    for document in DOCUMENTS:
        if document.parent.name == "walkthrough":
            continue  # Its blocks build on each other: test_walkthrough.py.
        text = document.read_text()
        for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{document.relative_to(ROOT)}:{line}", match.group(1)


PYTHON_BLOCKS = dict(blocks("python"))


@pytest.mark.parametrize("where", PYTHON_BLOCKS)
def test_python_in_the_documents_runs(python: Python, where: str) -> None:
    # With a trailing "# value" comment after print() meaning that this is what is printed.
    code = PYTHON_BLOCKS[where]
    # Users copy these programs: they have no races, but for those that show the sanitizer.
    sanitized = {} if "sanitizer" in code else {"PUONE_SANITIZE": "raise"}
    done = python(code, autoload=True, env={"PUONE_DRIVER": "sim", **sanitized})
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    if expected:
        assert done.stdout.splitlines() == expected


def test_there_is_python_in_the_documents() -> None:
    assert len(PYTHON_BLOCKS) >= 2


def test_make_targets_in_the_documents_exist() -> None:
    # The second is that of a backend which the scaffold has made.
    makefiles = [ROOT / "Makefile", ROOT / "reference_backend/torch_puone/new/files/Makefile"]
    text = "".join(file.read_text() for file in makefiles)
    targets = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"`make ([a-z-]+)", document.read_text()))
        assert named <= targets, document


def test_files_named_in_the_documents_exist() -> None:
    pattern = r"`((?:csrc|cmake|conformance|docs|reference_backend|requirements|test)/[\w./-]+)`"
    for document in DOCUMENTS:
        for name in re.findall(pattern, document.read_text()):
            # A driver for hardware is part of the layout before its directory is there.
            assert (ROOT / name).exists() or name == "csrc/drivers/cuda", f"{document}: {name}"


def test_local_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            assert (document.parent / target).exists(), f"{document}: {target}"


def test_tables_have_their_rows_on_separate_lines() -> None:
    for document in [*DOCUMENTS, *READMES]:
        for line in document.read_text().splitlines():
            if "|---|" in line:
                assert re.fullmatch(r"\s*\|(:?-+:?\|)+", line), f"{document}: {line}"
