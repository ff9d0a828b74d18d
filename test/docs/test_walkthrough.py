# SPDX-License-Identifier: BSD-3-Clause
"""The walkthrough's chapters are run in their order, as a newcomer would, in one directory.

Code with ``file=NAME`` is added to that file; the lines of a console block that begin with ``$``
are run, and what they print must be what the block shows, with ``...`` for anything.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "docs" / "walkthrough").glob("*.md"))
# The installation is run by test/suite/test_first_hour.py, which has an environment to spare.
RUN_ELSEWHERE = "pip install ./conformance"


class Block(NamedTuple):
    """A fenced block: its info string, its text, and where it is."""

    info: str
    text: str
    where: str


def blocks(chapter: Path) -> Iterator[Block]:
    """The fenced blocks of a chapter."""
    text = chapter.read_text()
    for match in re.finditer(r"^```([^\n]+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(match[1], match[2], f"{chapter.name}:{line}")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, expected output) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def shows(expected: str, printed: str) -> bool:
    """Whether the output is what the document shows; no output shown: any."""
    pattern = ".*".join(map(re.escape, expected.rstrip("\n").split("...")))
    return not expected or re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The newcomer's directory, beside the commands that an installation puts into the path."""
    base = tmp_path_factory.mktemp("walkthrough")
    (base / "bin").mkdir()
    modules = {"python": "", "pytest": "-m pytest -p torch_conformance.plugin -p no:cacheprovider"}
    for name, arguments in modules.items():
        command = base / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    work = base / "work"
    work.mkdir()
    return work


def run(command: str, folder: Path) -> str:
    """What a command prints."""
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PUONE_"))}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={
            **inherited,
            "PATH": path,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout


# With each change as far as the suite's first run; the rest takes minutes.
@pytest.mark.parametrize(
    "chapter",
    [
        pytest.param(each, id=each.stem, marks=[pytest.mark.nightly] if place > 2 else [])
        for place, each in enumerate(CHAPTERS)
    ],
)
def test_a_chapter_does_what_it_says(chapter: Path, folder: Path) -> None:
    for block in blocks(chapter):
        language, _, file = block.info.partition(" file=")
        if file:
            with (folder / file).open("a") as target:
                target.write(f"{block.text}\n\n")
            continue
        assert language == "console", f"{block.where}: a block that nobody runs"
        for command, expected in commands(block.text):
            if command == RUN_ELSEWHERE:
                continue
            printed = run(command, folder)
            assert shows(expected, printed), f"{block.where}: {command}\n{printed}"


def test_the_chapters_lead_from_one_to_the_next() -> None:
    assert [chapter.name[:3] for chapter in CHAPTERS] == [f"{i:02}-" for i in range(9)]
    for chapter, following in itertools.pairwise(CHAPTERS):
        assert f"]({following.name})" in chapter.read_text()
